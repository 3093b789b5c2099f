# SPDX-License-Identifier: Apache-2.0

"""What a claim changes of the scheduler's memory."""

import types
from unittest import mock

from nova import objects
from nova.pci import stats
from nova.scheduler import host_manager
from nova.virt import hardware
import testtools

from nova_ext_sched.dryrun.cloud import claims
from tests.unit.dryrun.cloud import clouds


class HostStateTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.state = host_manager.HostState('host', 'host', 'cell')
        self.state.num_io_ops = 7
        self.state.limits = {'numa_topology': 'of an earlier request'}
        self.spec = clouds.make_spec()

    def test_the_original_stays(self):
        copy = claims.copy_state(self.state)
        self.assertEqual({}, copy.limits)
        members = {'members': ['uuid'], 'hosts': []}
        self.spec.instance_group = objects.InstanceGroup(**members)
        group = objects.RequestGroup(requester_id='port')
        self.spec.requested_resources = [group]
        found = clouds.make_request(nic={'NET': 1})
        found['mappings']['port'] = ['nic']
        claims.consume(copy, self.spec, found, 'uuid')
        self.assertEqual((1, -64), (copy.vcpus_used, copy.free_ram_mb))
        # Builds end.
        self.assertEqual((1, 0), (copy.num_instances, copy.num_io_ops))
        # It is a member of its group, and has the providers of its port.
        self.assertEqual(['uuid'], list(copy.instances))
        self.assertEqual(['host'], self.spec.instance_group.hosts)
        [group] = self.spec.requested_resources
        self.assertEqual(['nic'], group.provider_uuids)
        self.assertEqual({}, self.state.instances)
        state = self.state
        self.assertEqual((0, 7), (state.vcpus_used, state.num_io_ops))

    def test_requests_for_filters(self):
        """Whatever a filter does to them, the others stay."""
        found = clouds.make_request(host={'VCPU': 1}, nic={'NET': 1})
        before = repr(found)
        [copy] = claims.copy_requests([found])
        self.assertEqual(found, copy)
        copy['allocations']['nic']['resources']['NET'] = 2
        copy['mappings'][''].remove('nic')
        del copy['allocations']['host']
        copy['more'] = True
        self.assertEqual(before, repr(found))

    def test_numa_cells_are_for_one_server(self):
        """nova writes those that it finds into the request."""

        def consume(state, spec_obj, uuid):
            spec_obj.numa_topology = objects.InstanceNUMATopology(cells=[])

        manager = claims.manager.SchedulerManager
        with mock.patch.object(manager, '_consume_selected_host', consume):
            copy = claims.copy_state(self.state)
            claims.consume(copy, self.spec, clouds.make_request(), 'uuid')
        self.assertIsNone(self.spec.numa_topology)

    def test_numa_cells_are_written_into_a_copy(self):
        """nova adds pinned CPUs to those that a cell has."""
        cell = objects.InstanceNUMACell(
            id=-1, cpuset=set(), pcpuset={0, 1}, memory=64, cpu_pinning={0: 4}
        )
        found = objects.InstanceNUMATopology(cells=[cell])
        copy = claims.copy_topology(found)
        self.assertEqual(repr(found), repr(copy))
        [mine] = copy.cells
        mine.id, mine.pagesize = 1, 4
        mine.pin(1, 5)
        self.assertEqual({0: 4, 1: 5}, mine.cpu_pinning)
        self.assertEqual({0: 4}, cell.cpu_pinning)
        self.assertEqual((-1, None), (cell.id, cell.pagesize))

    def test_several_at_once(self):
        """They leave what as many leave one after the other."""
        one, other = map(claims.copy_state, [self.state] * 2)
        request = clouds.make_request()
        for number in range(3):
            claims.consume(one, self.spec, request, f'{number}')
        claims.consume_alike(other, self.spec, 3)
        one.updated = other.updated
        self.assertEqual(vars(one), vars(other))
        self.assertEqual(3, other.num_instances)

    def test_a_server_that_leaves(self):
        """Its CPUs are free again, and the NUMA cell is as it was."""
        common = {'id': 0, 'pcpuset': set()}
        cell = objects.InstanceNUMACell(cpuset={0, 1}, memory=64, **common)
        mine = objects.InstanceNUMATopology(cells=[cell])
        pages = objects.NUMAPagesTopology(size_kb=4, total=9**6, used=0)
        common |= {'cpu_usage': 0, 'memory_usage': 0, 'pinned_cpus': set()}
        common |= {'mempages': [pages], 'siblings': [], 'socket': None}
        cell = objects.NUMACell(cpuset={1, 2, 3}, memory=512, **common)
        copy = claims.copy_state(self.state)
        before = dict(vars(copy))
        claims.consume(copy, self.spec, clouds.make_request(), 'uuid')
        copy.instances['uuid'] = None
        cells = objects.NUMATopology(cells=[cell])
        copy.numa_topology = hardware.numa_usage_from_instance_numa(
            cells, mine
        )
        self.assertEqual(2, copy.numa_topology.cells[0].cpu_usage)
        claims.leave(copy, self.spec, 'uuid', claims.Taken(mine))
        after = vars(copy)
        [cell] = copy.numa_topology.cells
        self.assertEqual((0, 0), (cell.cpu_usage, cell.memory_usage))
        for name in before.keys() - {'numa_topology', 'num_io_ops', 'updated'}:
            self.assertEqual(before[name], after[name], name)


DEVICE = {
    'vendor_id': '8086',
    'product_id': '154c',
    'dev_type': 'type-VF',
    'numa_node': 1,
}


def make_device(number=1, **values):
    """Return a nova PciDevice that a server has."""
    common = {
        'compute_node_id': 1,
        'address': f'0000:81:00.{number}',
        'parent_addr': '0000:81:00.0',
        'status': 'allocated',
        'request_id': 'own',
    }
    return objects.PciDevice(extra_info={}, **DEVICE, **common | values)


class DevicesTestCase(testtools.TestCase):
    """What nova's own filter of pools says of devices that come back."""

    def setUp(self):
        super().setUp()
        self.state = host_manager.HostState('host', 'host', 'cell')
        self.state.pci_stats = stats.PciDeviceStats(None)
        self.spec = clouds.make_spec()

    def ask(self, *specs, count=1):
        """Let the request be for devices of a physical network."""
        request = objects.InstancePCIRequest(
            count=count,
            request_id='own',
            spec=[*specs] or [{'physical_network': 'red'}],
            numa_policy=None,
        )
        found = objects.InstancePCIRequests(requests=[request])
        self.spec.pci_requests = found

    def read(self, *devices):
        asked = self.spec.pci_requests
        known = {'pci_devices': [*devices], 'pci_requests': asked}
        server = types.SimpleNamespace(numa_topology=None, **known)
        return claims.read_taken(server)

    def fits(self):
        asked = self.spec.pci_requests.requests
        found = self.state.pci_stats
        return found.support_requests(asked, provider_mapping=None)

    def test_those_of_one_that_stands_there(self):
        self.ask()
        taken = self.read(make_device(), make_device(2))
        self.assertFalse(self.fits())
        claims.leave(self.state, self.spec, 'uuid', taken)
        # nova's pool of both.
        pool = {**DEVICE, 'address': '0000:81:00.0', 'count': 2}
        pool |= {'physical_network': 'red', 'remote_managed': 'false'}
        self.assertEqual([pool], self.state.pci_stats.pools)
        for expected, number in ((True, 2), (False, 3)):
            self.ask(count=number)
            self.assertEqual(expected, self.fits())
        # A tag that it may have, or not.
        self.ask({'physical_network': 'red', 'trusted': 'true'})
        self.assertFalse(self.fits())

    def test_what_all_alternatives_ask_for(self):
        one, other = ({'physical_network': 'red', 'x': x} for x in 'ab')
        self.ask(one, other)
        [pool] = self.read(make_device()).pools
        self.assertEqual('red', pool['physical_network'])
        self.assertNotIn('x', pool)

    def test_those_of_which_nobody_knows(self):
        """Of a failed host too, on their way, or for a request now gone."""
        self.ask()
        for devices in (
            (make_device(), make_device(compute_node_id=2)),
            (make_device(status='claimed'),),
            (make_device(request_id='other'),),
            (),
        ):
            self.assertEqual([], [*self.read(*devices).pools])

    def test_one_that_came_leaves(self):
        """Each pool is as it was, whether or not it was used up."""
        self.ask({'vendor_id': '8086'}, count=3)
        pools = [
            {**DEVICE, 'address': address, 'count': number}
            for address, number in (('1', 1), ('2', 5))
        ]
        self.state.pci_stats.pools = [dict(one) for one in pools]
        state = claims.copy_state(self.state)
        found = clouds.make_request(host={'VCPU': 1})
        taken = claims.consume(state, self.spec, found, 'uuid')
        counts = {one['address']: one['count'] for one in taken.pools}
        self.assertEqual({'1': 1, '2': 2}, counts)
        self.assertEqual([3], [one['count'] for one in state.pci_stats.pools])
        claims.leave(state, self.spec, 'uuid', taken)
        state.pci_stats.pools.sort(key=lambda one: one['address'])
        self.assertEqual(pools, state.pci_stats.pools)

    def test_what_fits_is_tried_on_a_copy(self):
        self.ask({'vendor_id': '8086'}, count=3)
        pool = {'vendor_id': '8086', 'numa_node': 1, 'count': 4}
        self.state.pci_stats.pools = [dict(pool)]
        self.state = claims.copy_state(self.state)
        self.assertEqual([True, True], [self.fits(), self.fits()])
        self.assertEqual([pool], self.state.pci_stats.pools)
