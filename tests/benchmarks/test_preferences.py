# SPDX-License-Identifier: Apache-2.0

"""Each weigher that asks no question, beside nova's RAM and PCI weighers.

10,000 HostStates in 100 aggregates, half of them with NUMA cells of shared and
dedicated CPUs, one in ten with PCI devices. In processor time, all in one run.
"""

import logging
import os
import statistics
import time

import ddt
from nova import objects
from nova.pci import stats
from nova.scheduler import weights
from nova.scheduler.weights import pci
from nova.scheduler.weights import ram

from nova_ext_sched.weighers import own_hosts
from nova_ext_sched.weighers import preferred_aggregates
from nova_ext_sched.weighers import relative_room
from nova_ext_sched.weighers import special_hosts
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))
RACKS = 100
ROUNDS = 7


def make_state(number, rack):
    state = filters_base.host_state(f'h{number}', *rack)
    state.vcpus_total, state.vcpus_used = 64, number % 60
    state.total_usable_ram_mb, state.free_ram_mb = 2**19, number * 40
    state.total_usable_disk_gb, state.disk_mb_used = 4096, number
    state.cpu_allocation_ratio, state.ram_allocation_ratio = 4.0, 1.0
    state.disk_allocation_ratio = 1.0
    if number % 2:
        cells = [
            objects.NUMACell(
                cpuset={*range(first, first + 16)},
                pcpuset={*range(first + 16, first + 32)},
                pinned_cpus={*range(first + 16, first + 24)},
            )
            for first in (0, 32)
        ]
        state.numa_topology = objects.NUMATopology(cells=cells)
    state.pci_stats = stats.PciDeviceStats(objects.NUMATopology())
    if not number % 10:
        state.pci_stats.pools = [{'count': 4}]
    return state


@ddt.ddt
class PreferencesTest(test_base.RequestFilterTestCase):
    level = logging.INFO

    def setUp(self):
        super().setUp()
        self.set(
            enable_isolated_aggregate_filtering=True,
            placement_req_default_forbidden_member_prefix=['reservation:'],
        )
        zone = filters_base.aggregate('zone', availability_zone='az1')
        racks = [
            (
                zone,
                filters_base.aggregate(
                    f'rack{number}',
                    preference=str(number),
                    special='VGPU',
                    metadata={'trait:CUSTOM_A': 'required'},
                ),
            )
            for number in range(RACKS)
        ]
        self.states = [
            make_state(number, racks[number % RACKS])
            for number in range(HOSTS)
        ]
        self.spec = test_base.request_spec(
            flavor=test_base.flavor(extra_specs={'hw:mem': '1'}),
            pci_requests=None,
            numa_topology=None,
        )

    def measure(self, *weighers):
        weigh = weights.HostWeightHandler().get_weighed_objects
        taken = []
        for _ in range(ROUNDS):
            start = time.process_time()
            weigh([one() for one in weighers], self.states, self.spec)
            taken.append(time.process_time() - start)
        return statistics.median(taken) * 1000

    @ddt.data(
        relative_room.RelativeRoomWeigher,
        preferred_aggregates.PreferredAggregatesWeigher,
        own_hosts.OwnHostsWeigher,
        special_hosts.SpecialHostsWeigher,
    )
    def test_at_most_two_of_nova(self, weigher):
        none = self.measure()
        theirs = self.measure(ram.RAMWeigher, pci.PCIWeigher) - none
        ours = self.measure(weigher) - none
        print(
            f'\nPREFERENCES {HOSTS} hosts: {weigher.__name__} {ours:.1f} ms; '
            f'RAMWeigher and PCIWeigher {theirs:.1f} ms'
        )
        self.assertLessEqual(ours, theirs)
