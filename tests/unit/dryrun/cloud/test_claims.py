# SPDX-License-Identifier: Apache-2.0

"""Claims that are counted and not made."""

import types
from unittest import mock

from nova import objects
from nova.scheduler import host_manager
from nova.virt import hardware
import testtools

from nova_ext_sched.dryrun.cloud import claims
from tests.unit.request_filters import base


def summary(**resources):
    """Return a provider's summary: of each class what it has and uses."""
    return {
        'resources': {
            name: {'capacity': capacity, 'used': used}
            for name, (capacity, used) in resources.items()
        }
    }


def request(**allocations):
    """Return an allocation request: of each provider what it gives."""
    return {
        'allocations': {
            provider: {'resources': resources}
            for provider, resources in allocations.items()
        },
        'mappings': {'': list(allocations)},
    }


class ClaimsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.claims = claims.Claims(
            {
                'host': summary(VCPU=(10, 2), MEMORY_MB=(100, 100)),
                'disks': summary(DISK_GB=(30, 0)),
            }
        )

    def test_until_a_class_is_full(self):
        three = request(host={'VCPU': 3})
        self.assertTrue(self.claims.take(three))
        self.assertEqual(5, self.claims.get_free('host', 'VCPU'))
        self.assertTrue(self.claims.take(three))
        self.assertFalse(self.claims.take(three))
        self.assertEqual(['VCPU'], self.claims.find_lacking(three))
        # The last two are still there.
        self.assertTrue(self.claims.take(request(host={'VCPU': 2})))
        self.assertEqual(0, self.claims.get_free('host', 'VCPU'))

    def test_all_of_it_or_nothing(self):
        both = request(host={'VCPU': 1, 'MEMORY_MB': 1}, disks={'DISK_GB': 31})
        self.assertEqual(
            ['DISK_GB', 'MEMORY_MB'], self.claims.find_lacking(both)
        )
        self.assertFalse(self.claims.take(both))
        self.assertEqual(8, self.claims.get_free('host', 'VCPU'))
        self.assertEqual(30, self.claims.get_free('disks', 'DISK_GB'))

    def test_what_is_given_back(self):
        self.claims.give_back(request(host={'MEMORY_MB': 60}))
        self.assertEqual(60, self.claims.get_free('host', 'MEMORY_MB'))
        self.assertTrue(self.claims.take(request(host={'MEMORY_MB': 60})))
        self.assertEqual(0, self.claims.get_free('host', 'MEMORY_MB'))
        # Of what nothing is known yet.
        self.claims.give_back(request(new={'VCPU': 2}))
        self.claims.learn({'new': summary(VCPU=(4, 4))})
        self.assertEqual(2, self.claims.get_free('new', 'VCPU'))

    def test_copy(self):
        self.claims.take(request(host={'MEMORY_MB': 60}))
        before = self.claims.get_free('host', 'MEMORY_MB')
        copy = self.claims.copy()
        self.assertTrue(copy.take(request(host={'MEMORY_MB': before})))
        self.assertEqual(0, copy.get_free('host', 'MEMORY_MB'))
        self.assertEqual(before, self.claims.get_free('host', 'MEMORY_MB'))
        self.claims.learn({'new': summary(VCPU=(4, 4))})
        self.assertEqual(0, copy.get_free('new', 'VCPU'))


class HostStateTestCase(testtools.TestCase):
    """What a claim changes of the scheduler's memory."""

    def setUp(self):
        super().setUp()
        self.state = host_manager.HostState('host', 'host', 'cell')
        self.state.num_io_ops = 7
        self.state.limits = {'numa_topology': 'of an earlier request'}
        self.spec = base.request_spec()
        self.spec.numa_topology = None
        self.spec.pci_requests = None
        self.spec.requested_resources = []
        self.spec.instance_group = None

    def test_the_original_stays(self):
        copy = claims.copy_state(self.state)
        self.assertEqual({}, copy.limits)
        self.spec.instance_group = objects.InstanceGroup(
            members=['uuid'], hosts=[]
        )
        self.spec.requested_resources = [
            objects.RequestGroup(requester_id='port')
        ]
        found = request(nic={'NET': 1})
        found['mappings']['port'] = ['nic']
        claims.consume(copy, self.spec, found, 'uuid')
        self.assertEqual(1, copy.vcpus_used)
        self.assertEqual(-64, copy.free_ram_mb)
        self.assertEqual(1, copy.num_instances)
        # Builds end.
        self.assertEqual(0, copy.num_io_ops)
        # It is a member of its group, and has the providers of its port.
        self.assertEqual(['uuid'], list(copy.instances))
        self.assertEqual(['host'], self.spec.instance_group.hosts)
        [group] = self.spec.requested_resources
        self.assertEqual(['nic'], group.provider_uuids)
        self.assertEqual(0, self.state.vcpus_used)
        self.assertEqual({}, self.state.instances)
        self.assertEqual(7, self.state.num_io_ops)

    def test_numa_cells_are_for_one_server(self):
        """nova writes those that it finds into the request."""

        def consume(state, spec_obj, uuid):
            spec_obj.numa_topology = objects.InstanceNUMATopology(cells=[])

        with mock.patch.object(
            claims.manager.SchedulerManager, '_consume_selected_host', consume
        ):
            copy = claims.copy_state(self.state)
            claims.consume(copy, self.spec, request(), 'uuid')
        self.assertIsNone(self.spec.numa_topology)

    def test_a_server_that_leaves(self):
        """Its CPUs are free again, and the NUMA cell is as it was."""
        mine = objects.InstanceNUMATopology(
            cells=[
                objects.InstanceNUMACell(
                    id=0, cpuset={0, 1}, pcpuset=set(), memory=64
                )
            ]
        )
        empty = objects.NUMATopology(
            cells=[
                objects.NUMACell(
                    id=0,
                    cpuset={1, 2, 3},
                    pcpuset=set(),
                    memory=512,
                    cpu_usage=0,
                    memory_usage=0,
                    mempages=[
                        objects.NUMAPagesTopology(
                            size_kb=4, total=9**6, used=0
                        )
                    ],
                    pinned_cpus=set(),
                    siblings=[],
                    socket=None,
                )
            ]
        )
        copy = claims.copy_state(self.state)
        before = dict(vars(copy))
        claims.consume(copy, self.spec, request(), 'uuid')
        copy.instances['uuid'] = None
        copy.numa_topology = hardware.numa_usage_from_instance_numa(
            empty, mine
        )
        self.assertEqual(2, copy.numa_topology.cells[0].cpu_usage)
        claims.leave(
            copy,
            self.spec,
            types.SimpleNamespace(uuid='uuid', numa_topology=mine),
        )
        after = vars(copy)
        self.assertEqual(0, copy.numa_topology.cells[0].cpu_usage)
        self.assertEqual(0, copy.numa_topology.cells[0].memory_usage)
        for name in before.keys() - {'numa_topology', 'num_io_ops', 'updated'}:
            self.assertEqual(before[name], after[name], name)
