# SPDX-License-Identifier: Apache-2.0

"""What a claim leaves of a host in nova-scheduler's memory.

nova-scheduler claims what it picks twice: in placement, which all schedulers
share (:mod:`.ledger`), and in its own memory
(HostState.consume_from_request), where the filters see it when the next server
is placed.
"""

from collections.abc import Mapping
import copy
import typing

from nova.scheduler import manager
from nova.virt import hardware

# nova's form of an allocation request, one of placement's answer.
Request = Mapping[str, typing.Any]


def copy_state(state: typing.Any) -> typing.Any:
    """Return a nova HostState of its own, for claims."""
    found = copy.copy(state)
    found.instances = dict(state.instances)
    found.limits = {}
    found.pci_stats = copy.copy(state.pci_stats)
    if found.pci_stats is not None:
        # Their values are texts and numbers.
        found.pci_stats.pools = [dict(one) for one in state.pci_stats.pools]
    return found


def consume(
    state: typing.Any,
    spec_obj: typing.Any,
    request: Request,
    instance_uuid: str,
) -> typing.Any:
    """Take from a host what one more server uses, as nova-scheduler does.

    :param state: of :func:`copy_state`
    :param spec_obj: a nova RequestSpec. The server becomes a member of its
        server group; else it stays as it was
    :param request: the allocation request that is claimed
    :returns: the nova InstanceNUMATopology that it gets there, or None
    """
    # nova writes the cells and CPUs that it finds into the request.
    topology = copy.deepcopy(spec_obj.numa_topology)
    for group in spec_obj.requested_resources:
        group.provider_uuids = request['mappings'][group.requester_id]
    manager.SchedulerManager._consume_selected_host(
        state, spec_obj, instance_uuid
    )
    taken, spec_obj.numa_topology = spec_obj.numa_topology, topology
    state.num_io_ops = 0
    return taken


def leave(
    state: typing.Any,
    spec_obj: typing.Any,
    instance_uuid: str,
    topology: typing.Any,
) -> None:
    """Give back to a host what a server on it uses: :func:`consume` undone.

    Its PCI devices stay taken: which pool they came from is not known here.

    :param state: of :func:`copy_state`
    :param spec_obj: the server's nova RequestSpec
    :param topology: the nova InstanceNUMATopology that it has there, or None
    """
    disk_gb = spec_obj.root_gb + spec_obj.ephemeral_gb
    state.free_disk_mb += disk_gb * 1024
    state.free_ram_mb += spec_obj.memory_mb
    state.vcpus_used -= spec_obj.vcpus
    state.num_instances -= 1
    state.instances.pop(instance_uuid, None)
    if state.numa_topology and topology:
        state.numa_topology = hardware.numa_usage_from_instance_numa(
            state.numa_topology, topology, free=True
        )
