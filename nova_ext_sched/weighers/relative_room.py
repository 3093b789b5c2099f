# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of relative room: the host with the largest free share first."""

from collections.abc import Iterator
from collections.abc import Sequence
import typing

from nova_ext_sched.policy import relative_room
from nova_ext_sched.weighers import base
from nova_ext_sched.weighers import room


class RelativeRoomWeigher(base.PolicyWeigher):
    """Prefer the host with the largest free share of its scarcest resource.

    :mod:`nova_ext_sched.policy.relative_room` makes the decision, from what
    nova-compute last reported and this scheduler has placed since:

    ====================  ==================================================
    resource              of the host
    ====================  ==================================================
    RAM, vCPUs and disk   the record of the compute node and its allocation
                          ratios; what is reserved counts as used
    dedicated CPUs        its NUMA topology; nova's count of used vCPUs has
                          them too, and is less these where the host has
                          both kinds
    what was set in       unknown: an allocation ratio or a reserved amount
    placement alone       of an inventory
    ====================  ==================================================
    """

    policies = (relative_room.DECLARATION,)
    # nova does not stretch 0.50 and 0.51 to 0 and 1.
    minval, maxval = 0.0, 1.0

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float]:
        asked = room.read_asked(spec_obj)
        pinned = room.count_pinned(spec_obj)
        return [
            relative_room.find_share(_read_amounts(state, asked, pinned))
            for state in states
        ]


def _read_amounts(
    state: typing.Any, asked: room.Asked, pinned: int
) -> Iterator[tuple[float, float, float]]:
    # As policy.relative_room.find_share takes them.
    used = state.vcpus_used
    if state.numa_topology is not None:
        dedicated, taken = _read_dedicated(state.numa_topology)
        if dedicated:
            used = max(0, used - taken)
            yield dedicated, taken, pinned
    total = state.vcpus_total * (state.cpu_allocation_ratio or 1.0)
    yield total, used, asked.vcpus - pinned
    total_mb = state.total_usable_ram_mb
    yield (
        total_mb * (state.ram_allocation_ratio or 1.0),
        total_mb - state.free_ram_mb,
        asked.memory_mb,
    )
    total = state.total_usable_disk_gb * (state.disk_allocation_ratio or 1.0)
    yield total * 1024, state.disk_mb_used, asked.disk_mb


def _read_dedicated(topology: typing.Any) -> tuple[int, int]:
    # How many dedicated CPUs there are beside the shared ones, and how many of
    # them are taken.
    dedicated = taken = 0
    for cell in topology.cells:
        # Records of old releases have one set for both kinds.
        if cell.pcpuset != cell.cpuset:
            dedicated += len(cell.pcpuset)
            taken += len(cell.pinned_cpus & cell.pcpuset)
    return dedicated, taken
