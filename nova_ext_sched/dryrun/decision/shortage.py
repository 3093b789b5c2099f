# SPDX-License-Identifier: Apache-2.0

"""Hosts that are full, told apart from hosts that are too small.

Placement says only which hosts have an amount free. The capacity and the use
of a resource class stand in the summaries of allocation candidates for one
unit of it, a single request for all hosts. A host that has not one unit free
is in none of them; candidates for the other classes of the request have its
summary too. The few hosts that are then left are asked one by one.

What a provider gives a single server (``min_unit``, ``max_unit``,
``step_size``) stands in its inventory alone. The inventories of some are read,
of each capacity as many; where they agree, the others of that capacity are
taken for the same, and where they don't, nothing is said of these.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import enum
import itertools
import typing

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals

# Hosts that are asked one by one, and inventories whose limits are read.
_MOST = 32


class _Room(enum.IntEnum):
    """What a provider has of an amount; a host has the best of its own."""

    UNKNOWN = enum.auto()
    WITHOUT = enum.auto()
    TOO_SMALL = enum.auto()
    OTHER_UNITS = enum.auto()
    UNSURE = enum.auto()
    FULL = enum.auto()


_WORDS = {
    _Room.FULL: 'are full ({})',
    _Room.UNSURE: 'lack {}',
    _Room.OTHER_UNITS: 'give no server such an amount ({})',
    _Room.TOO_SMALL: 'are too small ({})',
    _Room.WITHOUT: 'have no {}',
    _Room.UNKNOWN: 'lack {}',
}


class _Units(typing.NamedTuple):
    """What an inventory gives a single server, by placement's names."""

    max_unit: int
    min_unit: int = 1
    step_size: int = 1


def explain(
    providers: placement.Providers,
    part: query.Part,
    classes: Collection[str],
    refused: Collection[str],
    hosts: int,
) -> tuple[dict[str, refusals.Refusal], matrix.Capacity, dict[str, int]]:
    """Return why hosts lack an amount, and what they have.

    :param providers: what placement says of them
    :param part: of the query, with the resource class and the amount
    :param classes: the names of the request's resource classes
    :param refused: UUIDs of the hosts that lack it
    :param hosts: how many there are in all
    :returns: the refusals, by UUID; numbers of hosts; the most that one
        server could get, by UUID
    """
    resource, _, number = part.value.partition(':')
    amount = int(number)
    rooms = dict.fromkeys(refused, _Room.UNKNOWN)
    free: dict[str, int] = {}
    read = list(_read(providers, resource, classes, refused))
    units = _read_units(
        providers,
        resource,
        {
            provider: one['capacity']
            for _, provider, one in read
            if one is not None and one['capacity'] >= amount
        },
    )
    for uuid, provider, one in read:
        room = _Room.WITHOUT
        if one is not None:
            given = units.get(provider, _Units(one['capacity']))
            room = _judge(amount, one['capacity'], given)
            if given is not None:
                most = min(given.max_unit, one['capacity'] - one['used'])
                most -= most % given.step_size
                left = most if most >= given.min_unit else 0
                free[uuid] = max(free.get(uuid, 0), left)
        rooms[uuid] = max(rooms[uuid], room)
    counts = collections.Counter(rooms.values())
    capacity = matrix.Capacity(
        resource,
        amount,
        large_enough=hosts - len(refused) + counts[_Room.FULL],
        full=counts[_Room.FULL],
        too_small=counts[_Room.TOO_SMALL] + counts[_Room.OTHER_UNITS],
        without=counts[_Room.WITHOUT],
        unknown=counts[_Room.UNKNOWN] + counts[_Room.UNSURE],
    )
    # Nothing frees a host that never had the amount.
    words = {
        room: reasons.refusal_by_resource(
            text.format(resource),
            resource,
            lifts=room in (_Room.FULL, _Room.UNKNOWN),
        )
        for room, text in _WORDS.items()
    }
    return {uuid: words[room] for uuid, room in rooms.items()}, capacity, free


def _judge(amount: int, capacity: int, units: _Units | None) -> _Room:
    """Return what a provider has of an amount that is not free.

    :param units: None where they are not known
    """
    if units is None:
        return _Room.UNSURE
    if amount > min(capacity, units.max_unit):
        return _Room.TOO_SMALL
    if amount < units.min_unit or amount % units.step_size:
        return _Room.OTHER_UNITS
    return _Room.FULL


def _read_units(
    providers: placement.Providers, resource: str, capacities: dict[str, int]
) -> dict[str, _Units | None]:
    """Return what providers give a single server; None where it is unknown.

    :param capacities: of the providers, by UUID
    """
    kinds: dict[int, list[str]] = collections.defaultdict(list)
    for uuid, capacity in sorted(capacities.items()):
        kinds[capacity].append(uuid)
    # The first of each capacity, then the second of each.
    order = itertools.chain(*itertools.zip_longest(*kinds.values()))
    units: dict[str, _Units | None] = {}
    for uuid in itertools.islice(filter(None, order), _MOST):
        one = providers.get_stored(uuid).get(resource, {})
        units[uuid] = _Units(
            one.get('max_unit', capacities[uuid]),
            one.get('min_unit', 1),
            one.get('step_size', 1),
        )
    for uuids in kinds.values():
        asked = {units[uuid] for uuid in uuids if uuid in units}
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
    """Yield what the providers of hosts have of a class; None for nothing.

    Nothing is yielded of a host of which nothing could be read.

    :returns: UUIDs of the host and the provider, and its capacity and use
    """
    missing = set(hosts)
    for name in (resource, *sorted(set(classes) - {resource})):
        if not missing:
            return
        found = set()
        for uuid, summary in providers.get_summaries(name).items():
            root = summary['root_provider_uuid']
            served = providers.served.get(uuid, ())
            for host in missing.intersection((root, *served)):
                found.add(host)
                yield host, uuid, summary['resources'].get(resource)
        missing -= found
    for host in missing if len(missing) <= _MOST else ():
        yield host, host, providers.get_inventories(host).get(resource)
