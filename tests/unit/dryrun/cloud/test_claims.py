# SPDX-License-Identifier: Apache-2.0

"""What a claim changes of the scheduler's memory."""

from unittest import mock

from nova import objects
from nova.scheduler import host_manager
from nova.virt import hardware
import testtools

from nova_ext_sched.dryrun.cloud import claims
from tests.unit.dryrun.cloud import clouds
from tests.unit.request_filters import base


class HostStateTestCase(testtools.TestCase):
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
        found = clouds.make_request(nic={'NET': 1})
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
            claims.consume(copy, self.spec, clouds.make_request(), 'uuid')
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
        claims.consume(copy, self.spec, clouds.make_request(), 'uuid')
        copy.instances['uuid'] = None
        copy.numa_topology = hardware.numa_usage_from_instance_numa(
            empty, mine
        )
        self.assertEqual(2, copy.numa_topology.cells[0].cpu_usage)
        claims.leave(copy, self.spec, 'uuid', mine)
        after = vars(copy)
        self.assertEqual(0, copy.numa_topology.cells[0].cpu_usage)
        self.assertEqual(0, copy.numa_topology.cells[0].memory_usage)
        for name in before.keys() - {'numa_topology', 'num_io_ops', 'updated'}:
            self.assertEqual(before[name], after[name], name)
