# SPDX-License-Identifier: Apache-2.0

"""Tells full hosts from hosts that are too small.

If cmp-01 lacks 8 VCPU, placement does not say whether it has 4 in all, or 16
of which most are in use. Placement's answer to a request for one VCPU does: it
lists every host that has one free, with its capacity and its use. For any
other host, these are looked up

1. in the answers for the other resource classes of the request, which list
   all classes of a host;
2. on the host itself and the providers below it, one by one, for the first 32
   that are in none of these answers.

Sharing providers are asked about one by one: while one is full, no answer
contains it.

Only an inventory says what a provider gives a single server (``min_unit``,
``max_unit``, ``step_size``), and how much is reserved. 32 inventories are
read, the same number of each capacity. If those of one capacity agree, all
others of that capacity are assumed to be the same; if they differ, the others
count as unknown.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import enum
import itertools
import typing

from nova_ext_sched import grouping
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals

#: The most hosts that are asked one by one, and inventories that are read.
MOST = 32


class Supply(enum.IntEnum):
    """The room of a provider for an amount; a host counts by its best one.

    Unlike is one that lacks what else a numbered group asks for.
    """

    UNKNOWN = enum.auto()
    WITHOUT = enum.auto()
    UNLIKE = enum.auto()
    TOO_SMALL = enum.auto()
    OTHER_UNITS = enum.auto()
    RESERVED = enum.auto()
    UNSURE = enum.auto()
    FULL = enum.auto()


#: What is said of hosts; in braces the resource class.
WORDS = {
    Supply.FULL: 'are full ({})',
    Supply.UNSURE: 'lack {}',
    Supply.OTHER_UNITS: 'cannot give one server such an amount ({})',
    Supply.RESERVED: 'have {} reserved',
    Supply.TOO_SMALL: 'are too small ({})',
    Supply.WITHOUT: 'have no {}',
    Supply.UNLIKE: 'have no {}',
    Supply.UNKNOWN: 'lack {}',
}

# Hosts that a smaller flavor helps.
_SMALL = (Supply.RESERVED, Supply.TOO_SMALL)

# nova-compute's options that reserve resources. Of bare metal nodes, ironic's
# driver reserves them.
_RESERVED_BY = {
    'VCPU': 'reserved_host_cpus',
    'MEMORY_MB': 'reserved_host_memory_mb',
    'DISK_GB': 'reserved_host_disk_mb',
}
_UNITS = {'MEMORY_MB': ' MB', 'DISK_GB': ' GB'}
_RESERVED_NODE = (
    ', as bare metal in maintenance, cleaning or not available has'
)


class Units(typing.NamedTuple):
    """The limits of an inventory for one server, by placement's names.

    :ivar reserved: the reserved amount if the capacity is too small, else 0
    """

    max_unit: int
    min_unit: int = 1
    step_size: int = 1
    reserved: int = 0


def explain(
    providers: placement.Providers,
    part: query.Part,
    classes: Collection[str],
    refused: Collection[str],
    hosts: int,
) -> tuple[dict[str, refusals.Refusal], conclusion.Capacity, dict[str, int]]:
    """Explain why hosts lack an amount, and what they have.

    :param providers: placement's answers about them
    :param part: the part of the query with the resource class and the amount
    :param classes: the names of the request's resource classes
    :param refused: UUIDs of the hosts that lack it
    :param hosts: number of all hosts
    :returns: the refusals, by UUID; numbers of hosts; the most that one
        server could get, by UUID
    """
    resource, _, number = part.value.partition(':')
    amount = int(number)
    rooms = dict.fromkeys(refused, Supply.UNKNOWN)
    free: dict[str, int] = {}
    read = list(_read(providers, resource, classes, refused))
    units = _read_units(
        providers,
        resource,
        amount,
        {
            provider: inventory['capacity']
            for _, provider, inventory in read
            if inventory is not None
        },
    )
    details: dict[str, str] = {}
    for uuid, provider, inventory in read:
        room = Supply.WITHOUT
        if inventory is not None:
            given = units[provider]
            room = classify(amount, inventory['capacity'], given)
            if given is not None:
                largest = _find_largest(inventory, given)
                free[uuid] = max(free.get(uuid, 0), largest)
                whole = inventory['capacity'] + given.reserved
                unit = _UNITS.get(resource, '')
                details[uuid] = f'{given.reserved:,} of {whole:,}{unit}'
        rooms[uuid] = max(rooms[uuid], room)
    capacity = _count(resource, amount, rooms.values(), hosts)
    return _refuse(resource, rooms, details), capacity, free


def find_without(
    providers: placement.Providers,
    part: query.Part,
    classes: Collection[str],
    hosts: Collection[str],
) -> set[str]:
    """Return the hosts without inventory of a resource class.

    :param hosts: UUIDs; the others as of :func:`explain`
    """
    resource = part.value.partition(':')[0]
    read = list(_read(providers, resource, classes, hosts))
    having = {uuid for uuid, _, inventory in read if inventory is not None}
    return {uuid for uuid, _, _ in read} - having


def _find_largest(inventory: Mapping[str, int], units: Units) -> int:
    """Return the largest amount that an inventory can give one server now."""
    most = min(units.max_unit, inventory['capacity'] - inventory['used'])
    most -= most % units.step_size
    return most if most >= units.min_unit else 0


def _count(
    resource: str, amount: int, rooms: Collection[Supply], hosts: int
) -> conclusion.Capacity:
    """Count the hosts that are full, and those that never give the amount.

    :param rooms: the room of each host that lacks the amount
    :param hosts: number of all hosts
    """
    counts = collections.Counter(rooms)
    return conclusion.Capacity(
        resource,
        amount,
        large_enough=hosts - len(rooms) + counts[Supply.FULL],
        full=counts[Supply.FULL],
        too_small=counts[Supply.TOO_SMALL]
        + counts[Supply.OTHER_UNITS]
        + counts[Supply.RESERVED],
        without=counts[Supply.WITHOUT],
        unknown=counts[Supply.UNKNOWN] + counts[Supply.UNSURE],
    )


def _refuse(
    resource: str, rooms: Mapping[str, Supply], details: Mapping[str, str]
) -> dict[str, refusals.Refusal]:
    """Return the refusals of hosts that lack an amount, by UUID.

    :param rooms: the room of each host
    :param details: the reserved amount of each host, in words
    """
    # A host that never had the amount cannot be freed.
    words = {
        room: reasons.refusal_by_resource(
            text.format(resource),
            resource,
            lifts=room in (Supply.FULL, Supply.UNKNOWN),
            acts=refusals.free(resource)
            if room == Supply.FULL
            else (refusals.SMALLER,) * (room in _SMALL),
            is_full=room == Supply.FULL,
        )
        for room, text in WORDS.items()
    }
    phrase = words[Supply.RESERVED].phrase
    if option := _RESERVED_BY.get(resource):
        phrase = f'are too small by what {option} keeps back'
    elif resource.startswith('CUSTOM_'):
        phrase += _RESERVED_NODE
    refusal_of = {uuid: words[room] for uuid, room in rooms.items()}
    for uuid, room in rooms.items():
        if room == Supply.RESERVED:
            detail = details[uuid]
            refusal_of[uuid] = words[room]._replace(
                phrase=phrase, detail=detail
            )
    return refusal_of


def classify(amount: int, capacity: int, units: Units | None) -> Supply:
    """Classify the room of a provider for an amount that is not free.

    :param units: the limits of the provider; None if unknown
    """
    if units is None:
        return Supply.UNSURE
    if amount > min(capacity + units.reserved, units.max_unit):
        return Supply.TOO_SMALL
    if amount < units.min_unit or amount % units.step_size:
        return Supply.OTHER_UNITS
    return Supply.FULL if amount <= capacity else Supply.RESERVED


def _read_units(
    providers: placement.Providers,
    resource: str,
    amount: int,
    capacities: dict[str, int],
) -> dict[str, Units | None]:
    """Read the limits of providers for one server; None if unknown.

    If no inventory of a capacity is read that is too small, nothing of it
    counts as reserved.

    :param capacities: capacities of the providers, by UUID
    """
    # Capacities that are large enough come first.
    ranked = sorted(
        capacities, key=lambda uuid: (capacities[uuid] < amount, uuid)
    )
    kinds = grouping.by_key((capacities[uuid], uuid) for uuid in ranked)
    # The first provider of each capacity, then the second of each.
    order = itertools.chain(*itertools.zip_longest(*kinds.values()))
    units: dict[str, Units | None] = {}
    for uuid in itertools.islice(filter(None, order), MOST):
        stored = providers.get_stored(uuid).get(resource, {})
        capacity = capacities[uuid]
        reserved = 0
        if capacity < amount:
            whole = int(
                stored.get('total', 0) * stored.get('allocation_ratio', 1)
            )
            reserved = max(0, whole - capacity)
        units[uuid] = Units(
            stored.get('max_unit', capacity),
            stored.get('min_unit', 1),
            stored.get('step_size', 1),
            reserved,
        )
    for capacity, uuids in kinds.items():
        asked = {units[uuid] for uuid in uuids if uuid in units}
        if not asked and capacity < amount:
            asked = {Units(capacity)}
        agreed = asked.pop() if len(asked) == 1 else None
        for uuid in uuids:
            units.setdefault(uuid, agreed)
    return units


def _read(
    providers: placement.Providers,
    resource: str,
    classes: Collection[str],
    hosts: Collection[str],
) -> Iterator[tuple[str, str, Mapping[str, int] | None]]:
    """Yield the inventories of hosts' providers; None for a host without.

    Hosts of which nothing could be read are left out.

    :returns: UUIDs of the host and the provider, and its capacity and use
    """
    missing = set(hosts)
    # Sharing providers: in no summary unless they have a unit free.
    for uuid, served in providers.served.items():
        if mine := missing & served:
            inventory = providers.get_inventories(uuid).get(resource)
            if inventory is not None:
                yield from ((host, uuid, inventory) for host in mine)
    for name in (resource, *sorted(set(classes) - {resource})):
        if not missing:
            return
        known = set()
        for uuid, summary in providers.get_summaries(name).items():
            root = summary['root_provider_uuid']
            if root in missing:
                known.add(root)
                yield root, uuid, summary['resources'].get(resource)
        missing -= known
    for host in sorted(missing)[:MOST]:
        for uuid in {host, *providers.get_tree(host)}:
            yield host, uuid, providers.get_inventories(uuid).get(resource)
