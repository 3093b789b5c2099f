# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects

from nova_ext_sched.weighers import relative_room
from tests.unit.request_filters import base as test_base
from tests.unit.weighers import preferences


def cell(shared, dedicated, pinned):
    return objects.NUMACell(
        cpuset={*range(shared)},
        pcpuset={*range(100, 100 + dedicated)},
        pinned_cpus={*range(100, 100 + pinned)},
    )


def pinning(shared, dedicated):
    """Return a request of a server with CPUs of both kinds."""
    wanted = objects.InstanceNUMACell(
        cpuset={*range(shared)}, pcpuset={*range(100, 100 + dedicated)}
    )
    flavor = test_base.flavor(extra_specs={})
    flavor.vcpus = shared + dedicated
    return {
        'flavor': flavor,
        'numa_topology': objects.InstanceNUMATopology(cells=[wanted]),
    }


@ddt.ddt
class RelativeRoomWeigherTestCase(preferences.PreferenceTestCase):
    weigher = relative_room.RelativeRoomWeigher

    def state(self, name='h', **fields):
        """Return a host where nothing is scarce but what is given."""
        state = self.host(name)
        plenty = {
            'vcpus_total': 10**6,
            'total_usable_ram_mb': 10**9,
            'free_ram_mb': 10**9,
            'total_usable_disk_gb': 10**9,
            'vcpus_used': 0,
            'disk_mb_used': 0,
            'numa_topology': None,
            **dict.fromkeys(
                [f'{name}_allocation_ratio' for name in ('cpu', 'ram', 'disk')]
            ),
        }
        for field, value in {**plenty, **fields}.items():
            setattr(state, field, value)
        return state

    def share(self, state, **request):
        other = self.state('other')
        first, _ = self.weigh([state, other], **request)
        return round(first / 100, 3)

    @ddt.data(
        ({'vcpus_total': 10, 'vcpus_used': 4}, 0.5),
        ({'vcpus_total': 10, 'vcpus_used': 4, 'cpu_allocation_ratio': 2.0},
         0.75),
        ({'total_usable_ram_mb': 640, 'free_ram_mb': 256}, 0.3),
        ({'total_usable_ram_mb': 640, 'free_ram_mb': 256,
          'ram_allocation_ratio': 1.5}, 0.533),
        # The disk that the request takes is 1 GiB.
        ({'total_usable_disk_gb': 10, 'disk_mb_used': 4096}, 0.5),
        ({'total_usable_disk_gb': 10, 'disk_mb_used': 4096,
          'disk_allocation_ratio': 2.0}, 0.75),
        ({'vcpus_total': 0, 'total_usable_disk_gb': 10}, 0.9),
    )  # fmt: skip
    @ddt.unpack
    def test_what_is_scarce(self, fields, share):
        flavor = test_base.flavor(extra_specs={})
        flavor.root_gb = 1
        state = self.state(**fields)
        self.assertEqual(share, self.share(state, flavor=flavor))

    @ddt.data(
        # Shared and dedicated CPUs, 4 of them taken; used of both kinds; what
        # is asked of each kind.
        ((0, 8), 0, 4, (0, 2), 0.25),
        ((8, 8), 8, 10, (0, 2), 0.25),
        ((8, 8), 8, 10, (1, 0), 0.125),
        ((8, 8), 8, 10, (1, 1), 0.125),
        # Of an old release, one set for both kinds.
        ((8, None), 8, 6, (1, 0), 0.125),
    )
    @ddt.unpack
    def test_dedicated_cpus(self, cpus, total, used, asked, share):
        shared, dedicated = cpus
        one = cell(shared, dedicated or 0, min(4, dedicated or 0))
        if dedicated is None:
            one.pcpuset = one.cpuset
        state = self.state(
            vcpus_total=total,
            vcpus_used=used,
            numa_topology=objects.NUMATopology(cells=[one]),
        )
        self.assertEqual(share, self.share(state, **pinning(*asked)))

    def test_sizes_do_not_count(self):
        """Nor does nova stretch what differs little."""
        large = self.state('l', total_usable_ram_mb=6400, free_ram_mb=3200)
        small = self.state('s', total_usable_ram_mb=640, free_ram_mb=384)
        self.assertEqual(
            [49, 50], [round(w, 6) for w in self.weigh([large, small])]
        )
        self.set(relative_room_weight_multiplier=-10.0)
        self.assertEqual(
            [-4.9, -5], [round(w, 6) for w in self.weigh([large, small])]
        )
