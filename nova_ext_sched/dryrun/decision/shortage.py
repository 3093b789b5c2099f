# SPDX-License-Identifier: Apache-2.0

"""Hosts that are full, told apart from hosts that are too small.

Placement says only which hosts have an amount free. The capacity and the use
of a resource class stand in the summaries of allocation candidates for one
unit of it, a single request for all hosts. A host that has not one unit free
is in none of them; candidates for the other classes of the request have its
summary too. The few hosts that are then left are asked one by one.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import enum

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
    FULL = enum.auto()


_WORDS = {
    _Room.FULL: 'are full ({})',
    _Room.TOO_SMALL: 'are too small ({})',
    _Room.WITHOUT: 'have no {}',
    _Room.UNKNOWN: 'lack {}',
}


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
    # An overcommitted host has a greater capacity than it gives a single
    # server (max_unit). Hosts of the same capacity are taken for hosts of the
    # same kind: one of each is asked.
    limits: dict[int, int] = {}
    for uuid, provider, one in _read(providers, resource, classes, refused):
        room = _Room.WITHOUT
        if one is not None:
            most = one['capacity']
            if most >= amount and len(limits) < _MOST and most not in limits:
                asked = providers.get_inventories(provider)
                limits[most] = asked.get(resource, {}).get('max_unit', most)
            most = min(most, limits.get(most, most))
            left = min(most, one['capacity'] - one['used'])
            free[uuid] = max(free.get(uuid, 0), left)
            room = _Room.FULL if most >= amount else _Room.TOO_SMALL
        rooms[uuid] = max(rooms[uuid], room)
    counts = collections.Counter(rooms.values())
    capacity = matrix.Capacity(
        resource,
        amount,
        large_enough=hosts - len(refused) + counts[_Room.FULL],
        full=counts[_Room.FULL],
        too_small=counts[_Room.TOO_SMALL],
        without=counts[_Room.WITHOUT],
        unknown=counts[_Room.UNKNOWN],
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
