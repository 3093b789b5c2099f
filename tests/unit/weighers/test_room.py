# SPDX-License-Identifier: Apache-2.0

from nova import objects
import testtools

from nova_ext_sched.weighers import room
from tests.unit.request_filters import base


class RoomTestCase(testtools.TestCase):
    def test_asked(self):
        flavor = base.flavor()
        flavor.root_gb, flavor.ephemeral_gb, flavor.swap = 3, 2, 7
        for is_bfv, disk_mb in ((False, 5127), (True, 2055)):
            spec = base.request_spec(flavor=flavor, is_bfv=is_bfv)
            self.assertEqual((1, 64, disk_mb), room.read_asked(spec))
        self.assertEqual((0, 0, 0), room.read_asked(objects.RequestSpec()))

    def test_pinned(self):
        cells = [
            objects.InstanceNUMACell(cpuset=set(), pcpuset={0, 1}, memory=1),
            objects.InstanceNUMACell(cpuset={2}, pcpuset={3}, memory=1),
        ]
        topology = objects.InstanceNUMATopology(cells=cells)
        spec = base.request_spec(numa_topology=topology)
        self.assertEqual(3, room.count_pinned(spec))
        self.assertEqual(0, room.count_pinned(base.request_spec()))
        spec = base.request_spec(numa_topology=None)
        self.assertEqual(0, room.count_pinned(spec))
