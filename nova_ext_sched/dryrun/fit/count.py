# SPDX-License-Identifier: Apache-2.0

"""Counts how many servers of one request each host takes.

A host takes the next server if nova-scheduler would let it: placement has an
allocation candidate that fits what is left, and every enabled filter passes
that nova asks for each server. Then it gets the server, by nova's own
accounting. The first refusal is the host's end.

===========================  ==============================================
request, filters             how hosts are counted
===========================  ==============================================
no server group; all         one of each kind: hosts of one kind have the
filters are nova's or ours   same aggregates, the same use and the same room
                             in placement
the same, and each server    by halving: a host that has room for 40 is asked
takes the same of a host     about the 40th; where a filter refuses that one,
(:func:`.likeness.are_even`  about the 20th, and so on
and one candidate of the
host's own)
no server group, filters     each host, in rounds: each that is left takes a
of others                    server (:mod:`..cloud.fork`)
a server group               each host, one after the other in the
                             scheduler's order: what one takes may close
                             another (affinity, failure domains)
===========================  ==============================================
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import itertools
import typing

from oslo_utils import uuidutils

from nova_ext_sched import fields
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.fit import number
from nova_ext_sched.dryrun.fit import swap
from nova_ext_sched.policy import failure_domain

#: No hypervisor runs as many servers. A host that takes them takes any number.
MOST = 20_000


def fill(
    future: fork.Fork,
    spec_obj: typing.Any,
    choose: Callable[[str], Sequence[typing.Any]],
) -> Iterator[tuple[str, typing.Any]]:
    """Add servers, one after the other, until no host takes one.

    Their claims stay in the fork.

    :param spec_obj: a nova RequestSpec
    :param choose: takes the UUID of the next server, and returns the nova
        HostStates that take one each; nothing ends it
    :returns: of each server that came its UUID, and the HostState that was
        chosen
    """
    is_going = True
    while is_going:
        uuid = uuidutils.generate_uuid()
        is_going = False
        for state in choose(uuid):
            # Another host may have taken what they share in this round.
            if future.come(uuid, spec_obj, state):
                is_going = True
                yield uuid, state
            uuid = uuidutils.generate_uuid()


@dataclasses.dataclass(eq=False)
class HostCount:
    """The number of servers on one host, and on each equivalent host.

    :ivar state: its nova HostState, as the servers that came have left it
    :ivar uuids: its own, and those of the other hosts of its kind
    :ivar servers: number of servers that came
    :ivar end: the refusal of one more; None if that was not asked
    """

    state: typing.Any
    uuids: list[str]
    servers: int = 0
    end: refusals.Refusal | None = None

    @property
    def fit(self) -> number.Fit:
        """The number of servers that each host takes."""
        if self.end:
            return number.Fit(self.servers)
        if self.servers < MOST:
            return number.Fit(self.servers, number.State.OR_MORE)
        return number.Fit(self.servers, number.State.UNLIMITED)


class _Turns:
    """Hosts that take servers by turns, until each has refused one.

    :param ask: returns the hosts, of some, that take the server of a UUID
    :ivar by_uuid: all of them
    """

    def __init__(
        self,
        ask: Callable[[fork.Fork, list[HostCount], str], list[HostCount]],
        future: fork.Fork,
        rooms: Sequence[HostCount],
    ) -> None:
        self._ask, self._future = ask, future
        self._open = [*rooms]
        self.by_uuid = {room.state.uuid: room for room in rooms}

    def choose(self, uuid: str) -> Sequence[typing.Any]:
        """Return the HostStates of the hosts that take the next server."""
        self._open = self._ask(self._future, self._open, uuid)
        return [room.state for room in self._open]


class Counts:
    """Counts the servers on the hosts that a request may use.

    :param cloud: where the servers come, in a fork
    :param spec_obj: a nova RequestSpec, which explain's stages have judged
    :param states: nova HostStates of the hosts left, the scheduler's best
        first
    :param candidates: placement's answer
    :param key_of: returns what :func:`.likeness.key_of_state` does, by UUID.
        None where a host represents itself alone and each server is to be
        claimed, because the caller goes on from the fork
    :ivar tied: once they are measured, UUIDs of hosts of which only the sum is
        known: what one takes another lacks, and the scheduler's order decides
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        spec_obj: typing.Any,
        states: Iterable[typing.Any],
        candidates: placement.Candidates,
        key_of: Callable[[str], object] | None = None,
    ) -> None:
        self._cloud = cloud
        self._ctxt = process.context()
        self._spec_obj = spec_obj
        # Explain has asked all filters. Those that nova asks once for several
        # servers depend on no claim, and are not asked again.
        self._filters = [
            one
            for one in cloud.enabled_filters
            if fields.host_filters_run(spec_obj)
            and one.run_filter_for_index(1)
        ]
        self._group = spec_obj.instance_group
        self._requests = query.by_provider(candidates.requests)
        self._swap = swap.Swap(cloud.providers, candidates.queries)
        # Summaries by the root of their tree: placement lists whole trees.
        self._trees: dict[str, dict[str, typing.Any]] = {}
        for uuid, one in candidates.summaries.items():
            tree = self._trees.setdefault(one['root_provider_uuid'], {})
            tree[uuid] = one
        self._is_even = key_of is not None and likeness.are_even(
            self._filters, spec_obj
        )
        is_shared = likeness.are_shared(self._filters, spec_obj)
        rooms: dict[object, HostCount] = {}
        for state in states:
            uuid = state.uuid
            key: object = uuid
            if key_of and is_shared:
                key = likeness.of_host(
                    uuid,
                    key_of(uuid),
                    self._requests[uuid],
                    candidates.summaries,
                    self._trees.get(uuid, {}),
                )
            rooms.setdefault(key, HostCount(state, [])).uuids.append(uuid)
        self._rooms = list(rooms.values())
        self.tied: list[Set[str]] = []

    def measure(self, future: fork.Fork) -> dict[str, HostCount]:
        """Measure the room of each host, by UUID.

        :param future: gets the servers, but for those that represent others
            or are counted by halving
        :raises reasons.FilterFailed: a filter raised what nova does not
            expect
        """
        remaining = list(self._rooms)
        with self._borrowed():
            if self._is_even:
                even = [
                    one for one in remaining if self._has_one_candidate(one)
                ]
                remaining = [
                    one
                    for one in remaining
                    if not self._has_one_candidate(one)
                ]
                self._halve(future, even)
            # In a group, a server that came to one node may close the next: a
            # nova-compute may have several nodes.
            turns = (
                [remaining]
                if self._group is None
                else [[one] for one in remaining]
            )
            for rooms in turns:
                self._fill(future, rooms)
            self.tied = self._find_tied(future)
        return {uuid: room for room in self._rooms for uuid in room.uuids}

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[None]:
        """Restore the request after the block."""
        spec_obj, group = self._spec_obj, self._group
        uuid = spec_obj.instance_uuid
        if group is not None:
            members, hosts = group.members, group.hosts
            group.members = [*members]
        try:
            yield
        finally:
            spec_obj.instance_uuid = uuid
            if group is not None:
                group.members, group.hosts = members, hosts

    # Each takes the same.

    def _has_one_candidate(self, room: HostCount) -> bool:
        """Return whether a host has one candidate, on its own provider."""
        uuid = room.state.uuid
        requests = self._requests[uuid]
        return len(requests) == 1 and requests[0]['allocations'].keys() == {
            uuid
        }

    def _halve(self, future: fork.Fork, rooms: Sequence[HostCount]) -> None:
        """Count servers by bisection where a host's first refusal is final."""
        refused: dict[str, int] = {}
        asked: dict[str, int] = {}
        for room in rooms:
            [request] = self._requests[room.state.uuid]
            fits = future.ledger.count_fitting(request, MOST)
            if fits < MOST:
                room.end = refusals.full(
                    future.ledger.find_lacking(request, fits)
                )
            refused[room.state.uuid] = fits + 1
            # Most hosts end because they are full: so the last server that
            # they have room for is asked about first.
            asked[room.state.uuid] = fits
        while asked := {uuid: one for uuid, one in asked.items() if one}:
            mine = [one for one in rooms if one.state.uuid in asked]
            tried = [self._take(one, asked[one.state.uuid]) for one in mine]
            self._filter(tried)
            for room, attempt in zip(mine, tried, strict=True):
                uuid = room.state.uuid
                if attempt.end is None:
                    room.servers = asked[uuid]
                else:
                    refused[uuid], room.end = asked[uuid], attempt.end
                asked[uuid] = (room.servers + refused[uuid]) // 2
                if asked[uuid] == room.servers:
                    asked[uuid] = 0

    def _take(self, room: HostCount, number: int) -> HostCount:
        """Return a host's state before the last of a number of servers."""
        state = claims.copy_state(room.state)
        state.allocation_candidates = [*self._requests[state.uuid]]
        claims.consume_alike(state, self._spec_obj, number - 1)
        return HostCount(state, room.uuids)

    # One after the other.

    def _fill(self, future: fork.Fork, rooms: Sequence[HostCount]) -> None:
        turns = _Turns(self._ask, future, rooms)
        for _, state in fill(future, self._spec_obj, turns.choose):
            turns.by_uuid[state.uuid].servers += 1
            if self._group is not None:
                self._group.hosts = [*self._group.hosts, state.host]

    def _ask(
        self, future: fork.Fork, rooms: Sequence[HostCount], uuid: str
    ) -> list[HostCount]:
        """Return the hosts that take another server now.

        :param uuid: that of the server
        """
        self._spec_obj.instance_uuid = uuid
        if self._group is not None:
            # nova-api makes the server a member before it is placed.
            self._group.members.append(uuid)
        for room in rooms:
            # The host as the servers that came have left it.
            [room.state] = self._cloud.get_host_states_by_uuids(
                self._ctxt, [room.state.uuid], self._spec_obj
            )
        open_ = [room for room in rooms if room.servers < MOST]
        return self._filter(self._offer(future, open_))

    def _offer(
        self, future: fork.Fork, rooms: Sequence[HostCount]
    ) -> list[HostCount]:
        """Set the candidates of hosts that placement would offer now."""
        remaining = []
        for room in rooms:
            lacking: set[str] = set()
            offered = []
            for request in self._requests[room.state.uuid]:
                if names := future.ledger.find_lacking(request):
                    lacking.update(names)
                else:
                    offered.append(request)
            if not offered:
                offered = self._find_next(future, room.state.uuid)
            room.state.allocation_candidates = offered
            if offered:
                remaining.append(room)
            else:
                room.end = refusals.full(sorted(lacking))
        return remaining

    def _find_next(self, future: fork.Fork, uuid: str) -> list[claims.Request]:
        """Return a candidate of a host that placement did not list."""
        requests, tree = self._requests[uuid], self._trees.get(uuid, {})
        made = self._swap.find(requests, tree, future.ledger)
        found = [*itertools.islice(made, 1)]
        requests += found
        return found

    def _filter(self, rooms: list[HostCount]) -> list[HostCount]:
        """Return the hosts that pass every filter."""
        for host_filter in self._filters:
            if not rooms:
                break
            why = reasons.ask_filter(
                host_filter, self._spec_obj, [room.state for room in rooms]
            )
            for room in rooms:
                room.end = why.get(room.state.uuid)
            rooms = [room for room in rooms if room.end is None]
        return rooms

    def _find_tied(self, future: fork.Fork) -> list[Set[str]]:
        # Each host takes a server at the beginning. One that took none, or
        # that its failure domain ended, shares its room with other hosts of
        # the group.
        if self._group is not None and any(
            not one.servers
            or (one.end and one.end.cause == failure_domain.DECLARATION.name)
            for one in self._rooms
        ):
            return [{uuid for one in self._rooms for uuid in one.uuids}]
        # Hosts are tied where a provider that they share has too little left.
        users: dict[str, set[str]] = collections.defaultdict(set)
        for one in self._rooms:
            uuid = one.state.uuid
            for request in self._requests[uuid]:
                for key, amount in ledger.amounts(request['allocations']):
                    if amount > future.ledger.get_free(*key):
                        users[key[0]].add(uuid)
        return [uuids for uuids in users.values() if len(uuids) > 1]
