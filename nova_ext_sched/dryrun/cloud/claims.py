# SPDX-License-Identifier: Apache-2.0

"""Claims that are counted and not made: what they leave of hosts.

nova-scheduler claims what it picks twice: in placement, which all schedulers
share (an allocation request of nova.scheduler.utils.claim_resources), and in
its own memory (HostState.consume_from_request), where the filters see it when
the next server is placed. Here both are counted, and nothing is written.
"""

import collections
from collections.abc import Iterator
from collections.abc import Mapping
import copy
import typing

from nova.scheduler import manager
from nova.virt import hardware

# nova's form of an allocation request, one of placement's answer.
Request = Mapping[str, typing.Any]


class Claims:
    """What is claimed of the providers of one answer of placement.

    :param summaries: placement's provider summaries, by UUID. A sharing
        provider is one of them, so that hosts which share it share its room.
    """

    def __init__(self, summaries: Mapping[str, typing.Any]) -> None:
        self._summaries = dict(summaries)
        self._claimed = collections.Counter[tuple[str, str]]()

    def find_lacking(self, request: Request) -> list[str]:
        """Return the resource classes of which a provider has too little.

        What no claim changes (traits, ``max_unit``, ``step_size``) placement
        has looked at before it offered the allocation request.
        """
        return sorted(
            {
                name
                for (provider, name), amount in _amounts(request)
                if amount > self.get_free(provider, name)
            }
        )

    def get_free(self, provider: str, name: str) -> int:
        """Return what a provider has left of a resource class."""
        found = self._summaries[provider]['resources'][name]
        taken = found['used'] + self._claimed[provider, name]
        return int(found['capacity'] - taken)

    def take(self, request: Request) -> bool:
        """Claim an allocation request; return whether there was room."""
        if self.find_lacking(request):
            return False
        self._claimed.update(dict(_amounts(request)))
        return True

    def give_back(self, request: Request) -> None:
        """Count as free what an allocation request holds."""
        self._claimed.subtract(dict(_amounts(request)))

    def copy(self) -> 'Claims':
        """Return others that begin with these, and learn the same."""
        found = copy.copy(self)
        found._claimed = self._claimed.copy()
        return found

    def learn(self, summaries: Mapping[str, typing.Any]) -> None:
        """Add provider summaries of another answer; claims stay."""
        self._summaries.update(summaries)


def copy_state(state: typing.Any) -> typing.Any:
    """Return a nova HostState of its own, for claims."""
    found = copy.copy(state)
    found.instances = dict(state.instances)
    found.limits = {}
    found.pci_stats = copy.copy(state.pci_stats)
    if found.pci_stats is not None:
        found.pci_stats.pools = copy.deepcopy(state.pci_stats.pools)
    return found


def consume(
    state: typing.Any,
    spec_obj: typing.Any,
    request: Request,
    instance_uuid: str,
) -> None:
    """Take from a host what one more server uses, as nova-scheduler does.

    :param state: of :func:`copy_state`
    :param spec_obj: a nova RequestSpec. The server becomes a member of its
        server group; else it stays as it was
    :param request: the allocation request that is claimed
    """
    # nova writes the cells and CPUs that it finds into the request.
    topology = copy.deepcopy(spec_obj.numa_topology)
    for group in spec_obj.requested_resources:
        group.provider_uuids = request['mappings'][group.requester_id]
    manager.SchedulerManager._consume_selected_host(
        state, spec_obj, instance_uuid
    )
    spec_obj.numa_topology = topology
    state.num_io_ops = 0


def leave(
    state: typing.Any, spec_obj: typing.Any, instance: typing.Any
) -> None:
    """Give back to a host what a server on it uses: :func:`consume` undone.

    Its PCI devices stay taken: which pool they came from is not known here.

    :param state: of :func:`copy_state`
    :param spec_obj: the server's nova RequestSpec
    :param instance: the nova Instance, with its NUMA topology
    """
    disk_gb = spec_obj.root_gb + spec_obj.ephemeral_gb
    state.free_disk_mb += disk_gb * 1024
    state.free_ram_mb += spec_obj.memory_mb
    state.vcpus_used -= spec_obj.vcpus
    state.num_instances -= 1
    state.instances.pop(instance.uuid, None)
    if state.numa_topology and instance.numa_topology:
        state.numa_topology = hardware.numa_usage_from_instance_numa(
            state.numa_topology, instance.numa_topology, free=True
        )


def _amounts(request: Request) -> Iterator[tuple[tuple[str, str], int]]:
    for provider, one in request['allocations'].items():
        for name, amount in one['resources'].items():
            yield (provider, name), amount
