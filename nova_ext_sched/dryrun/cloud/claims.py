# SPDX-License-Identifier: Apache-2.0

"""Claims resources of hosts in nova-scheduler's memory, and gives them back.

nova-scheduler claims the resources of a server twice: in placement, which all
schedulers share (:mod:`.ledger`), and in its own memory
(HostState.consume_from_request), where the filters see the claim when the next
server is placed.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import types
import typing

from nova.objects import fields
from nova.objects import instance as nova_instance
from nova.pci import stats
from nova.scheduler import manager
from nova.virt import hardware

_Kind = typing.TypeVar('_Kind')

# An allocation request of placement's answer, in nova's form.
Request = Mapping[str, typing.Any]


# Equal PCI devices, in nova's form: their properties and tags, and their
# number in ``count``.
Pool = Mapping[str, typing.Any]


class Taken(typing.NamedTuple):
    """Resources of a server on its host that its request does not name.

    :ivar topology: the nova InstanceNUMATopology, or None
    :ivar pools: its PCI devices
    """

    topology: typing.Any
    pools: Sequence[Pool] = ()


class Coming(nova_instance.Instance):
    """A server that no database has, on the hosts of a fork.

    nova reads its image as that of any other server.

    :param cctxt: a context of the cell of its host
    :param image: the nova ImageMeta of its request, or None
    """

    def __init__(self, cctxt: typing.Any, uuid: str, image: object) -> None:
        super().__init__(cctxt, uuid=uuid, system_metadata={})
        self._image = image

    @classmethod
    def obj_name(cls) -> str:
        """Return the object name that nova's lists expect."""
        return 'Instance'

    @property
    def image_meta(self) -> typing.Any:
        """The image metadata that nova would have stored with the server."""
        return self._image


class _Devices(stats.PciDeviceStats):
    """A host's devices, which nova copies to see whether a request fits."""

    def __deepcopy__(self, memo: object) -> '_Devices':
        """Copy the counts alone: no request changes the NUMA cells."""
        return _copy_devices(self)


def _copy_devices(devices: typing.Any) -> _Devices:
    found = _copy_flat(devices, _Devices)
    # A flat copy is enough: the values are strings and numbers.
    found.pools = [dict(one) for one in devices.pools]
    return found


def _copy_flat(copied: typing.Any, kind: type[_Kind]) -> _Kind:
    """Return a copy of an object as another class, as of :func:`copy.copy`.

    That takes five times as long, and a plan copies each host for each server
    that may go there.
    """
    found = kind.__new__(kind)
    vars(found).update(vars(copied))
    return found


def copy_state(state: typing.Any) -> typing.Any:
    """Copy a nova HostState, for claims."""
    copied = _copy_flat(state, type(state))
    copied.instances = dict(state.instances)
    copied.limits = {}
    if state.pci_stats is not None:
        copied.pci_stats = _copy_devices(state.pci_stats)
    return copied


def copy_topology(topology: typing.Any) -> typing.Any:
    """Copy a nova InstanceNUMATopology, for claims; None stays None.

    nova writes the host's cells and CPUs into it. nova's own copy checks each
    CPU again, which takes longer than to place a server.
    """
    if topology is None:
        return None
    copied = copy.copy(topology)
    copied.cells = [copy.copy(cell) for cell in topology.cells]
    for cell in copied.cells:
        if cell.cpu_pinning:
            cell.cpu_pinning = dict(cell.cpu_pinning)
    return copied


def copy_requests(requests: Iterable[Request]) -> list[Request]:
    """Copy allocation requests for filters, which remove some.

    nova's deep copy takes longer than the filters.
    """
    return [
        {
            **request,
            'allocations': {
                uuid: {**one, 'resources': dict(one['resources'])}
                for uuid, one in request['allocations'].items()
            },
            'mappings': {
                suffix: [*uuids]
                for suffix, uuids in request['mappings'].items()
            },
        }
        for request in requests
    ]


def consume(
    state: typing.Any,
    spec_obj: typing.Any,
    request: Request,
    instance_uuid: str,
) -> Taken:
    """Claim one more server from a host, as nova-scheduler does.

    :param state: the result of :func:`copy_state`
    :param spec_obj: a nova RequestSpec. The server becomes a member of its
        server group; nothing else of it changes
    :param request: the allocation request that is claimed
    :returns: the server's resources on the host
    """
    devices = state.pci_stats
    before = [dict(one) for one in devices.pools] if devices else []
    # nova writes the cells and CPUs that it finds into the request.
    topology = copy_topology(spec_obj.numa_topology)
    for group in spec_obj.requested_resources:
        group.provider_uuids = request['mappings'][group.requester_id]
    manager.SchedulerManager._consume_selected_host(
        state, spec_obj, instance_uuid
    )
    taken, spec_obj.numa_topology = spec_obj.numa_topology, topology
    state.num_io_ops = 0
    return Taken(taken, [*_find_taken(before, devices)] if before else ())


def consume_alike(
    state: typing.Any, spec_obj: typing.Any, number: int
) -> None:
    """Claim several servers from a host that each take the same.

    :param state: the result of :func:`copy_state`
    :param spec_obj: a nova RequestSpec without server group, NUMA topology
        and devices; it does not change
    :param number: number of servers
    """
    if not number:
        return
    before = dict(vars(state))
    manager.SchedulerManager._consume_selected_host(state, spec_obj)
    for name, value in vars(state).items():
        if isinstance(value, int):
            taken = value - before[name]
            setattr(state, name, value + (number - 1) * taken)
    state.num_io_ops = 0


def _find_taken(before: Sequence[Pool], devices: typing.Any) -> Iterator[Pool]:
    """Yield the devices that were taken from a nova PciDeviceStats."""
    for pool in before:
        remaining = _find_pool(devices.pools, pool)
        count = pool['count'] - (remaining['count'] if remaining else 0)
        if count:
            yield {**pool, 'count': count}


def _find_pool(pools: Iterable[typing.Any], wanted: Pool) -> typing.Any:
    """Return the pool of equal devices, even an empty one, or None."""
    empty = {**wanted, 'count': 0}
    return next((one for one in pools if one | {'count': 0} == empty), None)


def read_taken(instance: typing.Any) -> Taken:
    """Read the resources of a server on its host.

    :param instance: the nova Instance, with its NUMA topology, PCI devices
        and requests
    """
    devices = [
        device
        for device in instance.pci_devices
        if device.status == fields.PciDeviceStatus.ALLOCATED
    ]
    # A server that was evacuated has devices of the failed host, too.
    if len({one.compute_node_id for one in devices}) != 1:
        return Taken(instance.numa_topology)
    pools = stats.PciDeviceStats(
        None, dev_filter=_Tags(instance.pci_requests.requests)
    )
    for one in devices:
        pools.add_device(one)
    # Without the list of devices, as nova-scheduler has pools.
    return Taken(instance.numa_topology, [*pools])


class _Tags:
    """Stands in for [pci] device_spec, which only nova-compute knows.

    A device gets the tags that its own server's request asked for. It may have
    more tags: a request that asks for those does not find it.

    :param requests: nova InstancePCIRequests
    """

    def __init__(self, requests: Iterable[typing.Any]) -> None:
        self._specs = {one.request_id: one.spec for one in requests}

    def get_devspec(self, device: typing.Any) -> typing.Any:
        """Return a device's spec with its tags; None if it has none."""
        specs = self._specs.get(device.request_id)
        if not specs:
            return None
        known = (
            *stats.PciDeviceStats.pool_keys,
            *stats.PciDeviceStats.ignored_spec_tags,
        )
        # Only tags that all specs have in common: the first has all of these.
        tags = {
            key: value
            for key, value in specs[0].items()
            if key not in known and all(one.get(key) == value for one in specs)
        }
        return types.SimpleNamespace(get_tags=lambda: tags)


def leave(
    state: typing.Any,
    spec_obj: typing.Any,
    instance_uuid: str,
    taken: Taken,
) -> None:
    """Give a server's resources back to its host, undoing :func:`consume`.

    :param state: the result of :func:`copy_state`
    :param spec_obj: the server's nova RequestSpec
    :param taken: its resources there
    """
    disk_gb = spec_obj.root_gb + spec_obj.ephemeral_gb
    state.free_disk_mb += disk_gb * 1024
    state.free_ram_mb += spec_obj.memory_mb
    state.vcpus_used -= spec_obj.vcpus
    state.num_instances -= 1
    state.instances.pop(instance_uuid, None)
    if state.numa_topology and taken.topology:
        state.numa_topology = hardware.numa_usage_from_instance_numa(
            state.numa_topology, taken.topology, free=True
        )
    if state.pci_stats:
        pools = state.pci_stats.pools
        for taken_pool in taken.pools:
            pool = _find_pool(pools, taken_pool)
            if pool is None:
                pools.append(dict(taken_pool))
            else:
                pool['count'] += taken_pool['count']
        # The least special first, as nova has them.
        pools.sort(key=len)
