# SPDX-License-Identifier: Apache-2.0

"""Remembers the hosts and members of server groups.

nova shows a weigher only the hosts that still take a server, so that the
others come from elsewhere:

=====================================  =====================================
hosts and members                      come from
=====================================  =====================================
hosts that still take a server, and    the HostStates that nova shows
the members that nova-compute reported
hosts that our filters refused for     :mod:`nova_ext_sched.request_state`
the group's sake
hosts without room, which placement    the memory of this scheduler: those
does not return                        that may fill up soon stay for ten
                                       minutes
members that no host reported: not     nova's databases; those of a cell that
yet claimed, deleted or failed         does not answer are left out
members on a host that was full        their allocations in placement, if the
before nova-compute claimed them       scheduler is new to the group and
                                       stage 1 did not ask
=====================================  =====================================

How many members a host takes is what it holds and what fits on it yet, at most
the rule of the group. A member is held once nova-compute claimed its place;
until then it is one that fits, wherever it was sent. Free vCPUs, memory and
disk are read as nova's own weighers read them. What they do not know (NUMA,
PCI devices, allocation ratios that were set in placement only) may leave
fewer: then servers go on to the next host.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import itertools
import math
import operator
import threading
import typing

import cachetools
from nova import context as nova_context

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import round_robin
from nova_ext_sched.queries import group_members
from nova_ext_sched.weighers import room

LOG_ONCE = log_once.LogOnce(__name__)

_SECONDS = 600
# Hosts of all groups together: some 12 MB.
_HOSTS = 40_000
# What a group takes besides, in hosts.
_GROUP = 3


class ServerGroups:
    """Hosts and members of groups; a scheduler has one such object."""

    def __init__(self) -> None:
        # By group and host. Most groups have no small host.
        self._small: cachetools.TTLCache[
            str, cachetools.TTLCache[str, round_robin.Host]
        ] = cachetools.TTLCache(
            _HOSTS, _SECONDS, getsizeof=lambda hosts: len(hosts) + _GROUP
        )
        # nova-scheduler works in threads, or in greenlets.
        self._lock = threading.Lock()

    def find(
        self,
        spec_obj: typing.Any,
        states: Collection[typing.Any],
        rule: float,
        limit: int | None = None,
        key: str = '',
    ) -> round_robin.Assignment:
        """Return the hosts and the members of a request's group.

        :param spec_obj: nova's RequestSpec, with a server group
        :param states: the HostStates that the filters left, and those that
            they refused for the group's sake
        :param rule: how many members a host may hold, 1 or more; infinite
            where nothing refuses one
        :param limit: how many a failure domain may hold; None if the request
            does not ask for that
        :param key: the metadata key of failure domains
        """
        group = spec_obj.instance_group
        uuid = _uuid(group)
        living = group_members.get_living(
            group, fields.get_field(spec_obj, 'instance_uuid')
        )
        stage_1 = request_state.of(spec_obj).group.members
        # What host states say of the others would change nothing.
        unsettled = frozenset(living).difference(
            stage_1.find_claimed() if stage_1 else ()
        )
        seen = _read_states(
            spec_obj,
            states,
            unsettled,
            # More than the group can need makes no difference.
            min(rule, round_robin.count_rounds(len(living))),
            _read_hosts(states, rule, None if limit is None else key),
        )
        # It has a host that it moves from.
        moves = bool(fields.get_field(spec_obj, 'ignore_hosts'))
        members = self._find_members(spec_obj, living, seen, moves)
        claimed = {**seen.reported, **members.places}
        small = _count_room(seen, claimed, rule)
        hosts = self._remember(uuid, small) | seen.hosts | small
        places = _add_sent(claimed, {**seen.sent, **members.allocated})
        hosts |= _find_others(spec_obj, places, hosts, seen)
        return round_robin.Assignment(
            uuid, hosts, places, math.inf if limit is None else limit, moves
        )

    def _find_members(
        self,
        spec_obj: typing.Any,
        living: list[str],
        seen: '_Seen',
        moves: bool,
    ) -> group_members.Members:
        """Return the members, as stage 1 and the databases know them."""
        group = spec_obj.instance_group
        stage_1 = request_state.of(spec_obj).group.members
        settled = stage_1.hosts if stage_1 else {}
        asked = [
            uuid
            for uuid in living
            # No host state shows whether others move, too.
            if uuid not in settled and (moves or uuid not in seen.reported)
        ]
        with self._lock:
            is_new = _uuid(group) not in self._small
        # Stage 1 asked placement about each of them.
        members = _ask(group, asked, is_new and not stage_1)
        if not stage_1:
            return members
        # nova-compute may have claimed some since.
        return group_members.Members(
            {**stage_1.places, **members.places}, stage_1.allocated
        )

    def _remember(
        self, uuid: str, small: Mapping[str, round_robin.Host]
    ) -> dict[str, round_robin.Host]:
        """Remember hosts of a group; return all that are remembered.

        :param uuid: that of the group
        """
        # More hosts than there is memory for are a ValueError.
        with self._lock, contextlib.suppress(ValueError):
            known = self._small.get(uuid)
            if known is None:
                known = cachetools.TTLCache(_HOSTS, _SECONDS)
            known.update(small)
            self._small[uuid] = known
            return dict(known)
        return {}


def _uuid(group: typing.Any) -> str:
    return fields.get_field(group, 'uuid') or ''


class _Seen(typing.NamedTuple):
    """The hosts and members of host states, by host.

    Not by node: the host holds members, and a service of ironic has many
    nodes.

    :ivar fits: how many more servers fit, of hosts that may have no room left
        before the group is full
    :ivar reported: the hosts of members, by UUID
    :ivar sent: the same of members that this scheduler sent to a host of
        ``fits``: nova puts a stub there at once; the free room is what
        nova-compute last wrote
    """

    hosts: dict[str, round_robin.Host]
    fits: dict[str, int]
    reported: dict[str, group_members.Places]
    sent: dict[str, frozenset[str]]


def _read_states(
    spec_obj: typing.Any,
    states: Collection[typing.Any],
    members: frozenset[str],
    most: float,
    hosts: dict[str, round_robin.Host],
) -> _Seen:
    small: dict[str, int] = {}
    reported: dict[str, group_members.Places] = {}
    sent: dict[str, frozenset[str]] = {}
    asked = room.read_asked(spec_obj)
    for state in _find_tight(states, asked, most):
        fits = _count_fitting(state, asked)
        if fits <= most:
            # Placement says that one fits.
            small[state.host] = small.get(state.host, 0) + max(1, int(fits))
    # Most of thousands of hosts hold no member.
    clear = map(members.isdisjoint, [state.instances for state in states])
    for state in itertools.compress(states, map(operator.not_, clear)):
        on = frozenset((state.host,))
        for uuid in members.intersection(state.instances):
            # nova's threads take servers out that leave the host.
            instance = state.instances.get(uuid)
            if instance is None:
                continue
            if state.host in small and 'host' not in instance:
                sent[uuid] = on
            elif uuid in reported:
                reported[uuid] |= on
            else:
                reported[uuid] = on
    return _Seen(hosts, small, reported, sent)


def _read_hosts(
    states: Collection[typing.Any], rule: float, key: str | None
) -> dict[str, round_robin.Host]:
    if key is None:
        host = round_robin.Host(round_robin.ONE_DOMAIN, rule)
        return dict.fromkeys([state.host for state in states], host)
    hosts = {}
    # Hosts share the aggregates of the scheduler's memory.
    known: dict[tuple[typing.Any, ...], round_robin.Host] = {}
    for state in states:
        aggregates = tuple(state.aggregates)
        shared = known.get(aggregates)
        if shared is None:
            metadata = map(fields.aggregate_metadata, aggregates)
            domains = failure_domain.read_domains(metadata, key)
            shared = known[aggregates] = round_robin.Host(domains, rule)
        hosts[state.host] = shared
    return hosts


def _count_room(
    seen: _Seen, claimed: Mapping[str, group_members.Places], rule: float
) -> dict[str, round_robin.Host]:
    """Return the hosts that may have no room left before the group is full."""
    if not seen.fits:
        return {}
    held = _count(claimed)
    return {
        name: seen.hosts[name]._replace(room=min(rule, held[name] + fits))
        for name, fits in seen.fits.items()
    }


def _add_sent(
    claimed: Mapping[str, group_members.Places],
    sent: Mapping[str, frozenset[str]],
) -> dict[str, group_members.Places]:
    """Return the places of members, with those to which they were sent."""
    places = dict(claimed)
    for member, to in sent.items():
        on = places.get(member, to)
        # A member that moves has an allocation where it comes from.
        if None in on and not to <= on:
            places[member] = (on | to) - {None}
    return places


def _find_others(
    spec_obj: typing.Any,
    places: Mapping[str, group_members.Places],
    hosts: Mapping[str, round_robin.Host],
    seen: _Seen,
) -> dict[str, round_robin.Host]:
    """Return the hosts of members that are no candidates.

    They have no room for more, or for others than the members.
    """
    spread = request_state.of(spec_obj).group.spread
    domains = spread.domains if spread else {}
    unknown = frozenset() if spread else round_robin.ONE_DOMAIN
    others = {}
    for name, number in _count(places).items():
        if name is not None and name not in seen.hosts:
            host = hosts.get(name) or round_robin.Host(
                domains.get(name, unknown), number
            )
            others[name] = host._replace(room=max(host.room, number))
    return others


def _ask(
    group: typing.Any, uuids: list[str], is_new: bool
) -> group_members.Members:
    ctxt = nova_context.get_admin_context()
    # A weigher only orders hosts, with what is known. nova and the filters
    # judge them.
    try:
        if is_new:
            return group_members.get_members(ctxt, group, uuids, _warn)
        places = group_members.get_places(ctxt, group, uuids, _warn)
        return group_members.Members(places, {})
    except Exception as exc:
        fault = exc
    # Not in the clause: oslo.log would append the exception, uncleaned.
    _warn(fault)
    return group_members.Members({}, {})


def _warn(exc: Exception) -> None:
    LOG_ONCE.warning(
        f'Where servers of a server group go that nova-compute has not '
        f'claimed yet is not known, because nova or placement did not '
        f'answer: {messages.say_error(exc)}. Servers that are created at the '
        'same time can choose the same host.',
        key=type(exc).__name__,
    )


def _count(
    places: Mapping[str, group_members.Places],
) -> collections.Counter[str | None]:
    return collections.Counter(itertools.chain.from_iterable(places.values()))


def _find_tight(
    states: Iterable[typing.Any], asked: room.Asked, most: float
) -> list[typing.Any]:
    """Return the states where more servers than ``most`` may not fit.

    Those without a reported total, too. In one pass, because most of thousands
    have room.
    """
    vcpus, memory_mb, disk_mb = ((most + 1) * amount for amount in asked)
    return [
        state
        for state in states
        if state.vcpus_total * (state.cpu_allocation_ratio or 1.0)
        < state.vcpus_used + vcpus
        or state.total_usable_ram_mb
        * ((state.ram_allocation_ratio or 1.0) - 1.0)
        < memory_mb - state.free_ram_mb
        or state.total_usable_disk_gb
        * 1024
        * (state.disk_allocation_ratio or 1.0)
        < state.disk_mb_used + disk_mb
    ]


def _count_fitting(state: typing.Any, asked: room.Asked) -> float:
    """Count how many more servers fit; a total of 0 was not reported."""
    vcpus, memory_mb, disk_mb = asked
    fits = math.inf
    if vcpus and state.vcpus_total:
        total = state.vcpus_total * (state.cpu_allocation_ratio or 1.0)
        fits = (total - state.vcpus_used) // vcpus
    if memory_mb and state.total_usable_ram_mb:
        total = state.total_usable_ram_mb
        more = total * ((state.ram_allocation_ratio or 1.0) - 1.0)
        fits = min(fits, (state.free_ram_mb + more) // memory_mb)
    if disk_mb and state.total_usable_disk_gb:
        total = state.total_usable_disk_gb * 1024
        total *= state.disk_allocation_ratio or 1.0
        fits = min(fits, (total - state.disk_mb_used) // disk_mb)
    return fits
