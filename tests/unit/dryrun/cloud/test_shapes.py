# SPDX-License-Identifier: Apache-2.0

"""Which host, empty, takes all that another can ever hold."""

import ddt
from nova import objects
import nova.conf
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import shapes
from tests.unit.dryrun.cloud import clouds

conf.register_opts(nova.conf.CONF)


def make_topology(*cells, pages=()):
    """Return a nova NUMATopology; of each cell its CPUs."""
    return objects.NUMATopology(
        cells=[
            objects.NUMACell(
                id=number,
                cpuset={*range(cpus)},
                pcpuset=set(),
                memory=512,
                siblings=[{cpu} for cpu in range(cpus)],
                mempages=[
                    objects.NUMAPagesTopology(
                        size_kb=2048, total=total, used=0, reserved=1
                    )
                    for total in pages
                ],
            )
            for number, cpus in enumerate(cells)
        ]
    )


@ddt.ddt
class ShapesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud('')
        for name in 'ab':
            self.cloud.add_node(name, name)
        self.devices = []
        self.cloud.ask_cells = lambda *_: {'cell1': self.devices}

    def check(self, *lacking):
        """Check what b lacks to replace a; a then lacks nothing of b."""
        there, back = self.compare()
        self.assertEqual([*lacking], there)
        return back

    def compare(self):
        """Return what b lacks to replace a, and a to replace b."""
        # What placement said is kept.
        self.cloud.providers = placement.Providers(self.cloud.client)
        found = shapes.Shapes(self.cloud)
        a, b = found.get('a'), found.get('b')
        return a.find_lacking(b), b.find_lacking(a)

    def test_equal(self):
        self.cloud.server.hold('server', a={'VCPU': 4})
        self.assertEqual([], self.check())

    @ddt.data(
        ({'max_unit': 2}, {}, []),
        ({}, {'max_unit': 2}, ['less MEMORY_MB', 'less VCPU']),
        ({}, {'min_unit': 2}, ['less MEMORY_MB', 'less VCPU']),
        ({}, {'step_size': 2}, ['less MEMORY_MB', 'less VCPU']),
        ({}, {'reserved': 1}, ['less MEMORY_MB', 'less VCPU']),
        ({}, {'allocation_ratio': 2.0}, []),
        ({'allocation_ratio': 2.0}, {}, ['less MEMORY_MB', 'less VCPU']),
    )
    @ddt.unpack
    def test_inventories(self, mine, other, lacking):
        self.cloud.server.providers['a'].limits = mine
        self.cloud.server.providers['b'].limits = other
        self.check(*lacking)

    def test_traits(self):
        """It may have more of the hardware's, and no other custom ones."""
        providers = self.cloud.server.providers
        providers['a'].traits = {'HW_X', 'COMPUTE_STATUS_DISABLED'}
        self.assertEqual([], self.check('no HW_X'))
        providers['b'].traits = {'HW_X', 'HW_Y'}
        self.assertEqual(['no HW_Y'], self.check())
        providers['b'].traits |= {'CUSTOM_A'}
        self.check('not its traits')

    def test_nested_providers(self):
        self.cloud.server.add('a1', 'a', ['HW_X'], VGPU=2)
        nested = 'less resources of its nested providers'
        self.assertEqual([], self.check(nested))
        self.cloud.server.add('b1', 'b', ['HW_X'], VGPU=1)
        self.check(nested)
        self.cloud.server.add('b2', 'b', ['HW_X'], VGPU=2)
        self.assertEqual([nested], self.check())

    def test_devices(self):
        kind = '8086', '1533', 'type-PCI', 0
        self.devices = [('a', *kind), ('a', *kind), ('b', *kind)]
        self.assertEqual([], self.check('less devices'))
        self.devices += [('b', *kind[:3], 1)]
        self.check('less devices')
        self.devices += [('b', *kind)]
        self.assertEqual(['less devices'], self.check())

    def test_numa(self):
        states = self.cloud.states
        cut = 'not NUMA cells cut like its own'
        states['a'].numa_topology = make_topology(2, 2)
        for other in (None, make_topology(4)):
            states['b'].numa_topology = other
            self.assertEqual([cut] * 2, [one[0] for one in self.compare()])
        states['b'].numa_topology = make_topology(2, 2)
        self.assertEqual([], self.check())
        states['a'].numa_topology = make_topology(2, pages=[4])
        states['b'].numa_topology = make_topology(2, pages=[3])
        self.assertEqual([], self.check('less pages of 2048 KiB'))

    @ddt.data(
        ('cell_uuid', 'other', 'not its cell'),
        ('hypervisor_type', 'other', 'not its hypervisor'),
        ('supported_instances', ['x'], 'not its hypervisor'),
    )
    @ddt.unpack
    def test_the_same(self, name, value, lacking):
        for state in self.cloud.states.values():
            state.hypervisor_type = state.hypervisor_version = 1
        setattr(self.cloud.states['b'], name, value)
        self.assertEqual([lacking], self.check(lacking))

    def test_shared(self):
        self.cloud.server.add('pool', traits=[clouds.SHARES], DISK_GB=9)
        self.cloud.server.members = {'agg': ['pool', 'a']}
        shared = 'not the resources that it shares with others'
        self.assertEqual([shared], self.check(shared))
