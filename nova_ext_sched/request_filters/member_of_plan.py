# SPDX-License-Identifier: Apache-2.0

"""Chooses the aggregates that fit into a placement query with a bound.

What a query does not say of a policy, the policy's host filter judges. Who
does that if the query has no room for all decides what goes in:

============  ==========================  ================================
who judges    a required set              forbidden aggregates
============  ==========================  ================================
a host        as far as there is room,    as far as there is room then,
filter        those with most hosts that  those with most hosts first
              the request can use first
nobody        all                         all
nobody: the   those that hold the forced  those that hold the forced hosts
host is       hosts; one that does not    or nodes
forced        if none does
============  ==========================  ================================

Required sets go before what is forbidden, because they leave fewer hosts, and
small sets before large ones. To make room for them, forbidden aggregates of
the request filters before leave the query, those with the fewest hosts first,
if a host filter judges them too.

A part of a required set opens nothing, but it leaves out hosts that the
request could use: if those of the part are full, the request has no host.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import enum
import typing

from nova_ext_sched.policy import verdict

Hosts = Mapping[str, Collection[str]]


class Judge(enum.Enum):
    """The stage that judges aggregates which the query leaves out."""

    HOST_FILTER = 'host filter'
    NOBODY = 'nobody'
    FORCED = 'nobody, because an administrator forced the host'


class Before(typing.NamedTuple):
    """Aggregates that earlier filters put into the query.

    :ivar required: sets of UUIDs
    :ivar forbidden: UUIDs
    :ivar removable: aggregates that a host filter judges too
    :ivar room: number of entries that the query can still take
    """

    required: Collection[frozenset[str]]
    forbidden: frozenset[str]
    removable: frozenset[str]
    room: int


class Part(typing.NamedTuple):
    """A required set of UUIDs, and the part of it that the query names."""

    whole: frozenset[str]
    chosen: frozenset[str]


class Plan(typing.NamedTuple):
    """The changes to a query for one policy.

    :ivar required: sets that it gets
    :ivar forbidden: UUIDs that it gets
    :ivar removed: forbidden UUIDs that leave it
    :ivar rest: UUIDs that the policy forbids and the query does not
    :ivar too_many: kinds of aggregates that go in without room for them, the
        number, and the room
    """

    required: list[Part]
    forbidden: frozenset[str]
    removed: frozenset[str]
    rest: frozenset[str]
    too_many: list[tuple[str, int, int]]


def make(
    before: Before,
    resolved: verdict.Resolution,
    judge: Judge,
    get_hosts: Callable[[], Hosts],
    get_forced: Callable[[], Set[str]],
) -> Plan:
    """Return the aggregates of a policy that the query names.

    :param get_hosts: the hosts of each aggregate that has one, by UUID; both
        functions are called only where there is not room for all
    :param get_forced: the UUIDs of the aggregates that hold the forced hosts
    """
    room = max(0, before.room - len(resolved.traits))
    removed: frozenset[str] = frozenset()
    too_many = []
    parts = []
    sets = dict.fromkeys(map(frozenset, resolved.required))
    added = sorted(sets.keys() - set(before.required), key=_by_size)
    for whole in added:
        chosen = whole
        if judge is Judge.FORCED and len(whole) > room:
            # nova looks at the forced hosts alone. If no aggregate holds one,
            # any says so.
            chosen = (whole & get_forced()) or frozenset([min(whole)])
        missing = min(len(chosen) - room, len(before.removable) - len(removed))
        if missing > 0:
            ranked = _rank(before.removable - removed, get_hosts())
            removed |= frozenset(ranked[-missing:])
            room += missing
        if len(chosen) > room:
            if judge is Judge.HOST_FILTER:
                # It takes all the room: no set after it is a part.
                usable = _find_usable(before, added, resolved, get_hosts())
                ranked = _rank(whole, get_hosts(), usable)
                chosen = frozenset(ranked[:room])
            else:
                too_many.append(('required', len(chosen), room))
        room = max(0, room - len(chosen))
        parts.append(Part(whole, chosen))

    present = before.forbidden - removed
    forbidden = frozenset(resolved.forbidden)
    chosen = forbidden - present
    if len(chosen) > room:
        if judge is Judge.HOST_FILTER:
            chosen = frozenset(_rank(chosen, get_hosts())[:room])
        elif judge is Judge.FORCED:
            chosen &= get_forced()
        else:
            too_many.append(('forbidden', len(chosen), room))
    rest = forbidden.union(resolved.covered) - chosen - present
    return Plan(parts, chosen, removed, rest, too_many)


def _by_size(uuids: frozenset[str]) -> tuple[int, list[str]]:
    return len(uuids), sorted(uuids)


def _union(uuids: Iterable[str], hosts: Hosts) -> set[str]:
    return {host for uuid in uuids for host in hosts.get(uuid, ())}


def _find_usable(
    before: Before,
    added: Iterable[frozenset[str]],
    resolved: verdict.Resolution,
    hosts: Hosts,
) -> set[str]:
    # The hosts that are in every set and in nothing that is forbidden.
    found = set.intersection(
        *(_union(uuids, hosts) for uuids in (*before.required, *added))
    )
    closed = before.forbidden.union(resolved.forbidden, resolved.covered)
    return found - _union(closed, hosts)


def _rank(
    uuids: Iterable[str],
    hosts: Hosts,
    usable: set[str] | frozenset[str] = frozenset(),
) -> list[str]:
    """Sort aggregates, those with the most usable hosts first."""

    def key(uuid: str) -> tuple[int, int, str]:
        own = hosts.get(uuid, ())
        return -len(usable.intersection(own)), -len(own), uuid

    return sorted(uuids, key=key)
