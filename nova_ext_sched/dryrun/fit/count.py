# SPDX-License-Identifier: Apache-2.0

"""Counts how many servers of one request each host takes.

A host takes the next server if nova-scheduler would let it: placement has an
allocation candidate that fits what is free, and the host passes every enabled
filter that nova runs for each server. Then it gets the server, by nova's own
accounting. Counting on a host ends at its first refusal.

===========================  ==============================================
request, filters             how hosts are counted
===========================  ==============================================
no server group; all         one of each kind: hosts of one kind have the
filters are nova's or ours   same aggregates, the same use and the same room
                             in placement
as above, and every server   by halving: a host that has room for 40 is asked
takes equal amounts          about the 40th; if a filter refuses that one,
(:func:`.likeness.are_even`, about the 20th, and so on
and one candidate, on the
host's own provider)
no server group,             every host, in rounds: each host still open
third-party filters          takes one server (:mod:`..cloud.fork`)
a server group               every host, one after the other in the
                             scheduler's order: what one host takes may close
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
import enum
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
from nova_ext_sched.dryrun.fit import swap
from nova_ext_sched.policy import failure_domain

#: No hypervisor runs as many servers. A host that takes them takes any number.
MOST = 20_000


class State(enum.IntEnum):
    """The meaning of a number of servers; in a sum the last one decides."""

    #: So many fit, and no more.
    COUNTED = enum.auto()
    #: So many fit. Nobody has counted further.
    OR_MORE = enum.auto()
    #: Any number fits.
    UNLIMITED = enum.auto()
    #: How many fit is not known.
    UNKNOWN = enum.auto()


class Fit(typing.NamedTuple):
    """A number of servers that fit.

    :ivar servers: the number counted
    """

    servers: int = 0
    state: State = State.COUNTED


def add_up(fits: Iterable[Fit]) -> Fit:
    """Return how many servers fit on hosts together."""
    servers, state = 0, State.COUNTED
    for one in fits:
        servers += one.servers
        state = max(state, one.state)
    return Fit(servers, state)


@dataclasses.dataclass(eq=False)
class HostCount:
    """The number of servers on one host, and on each equivalent host.

    :ivar state: the nova HostState, with the servers that came
    :ivar uuids: UUIDs of the host, and of the other hosts of its kind
    :ivar servers: number of servers that came
    :ivar end: the refusal of one more server; None if none was refused
    """

    state: typing.Any
    uuids: list[str]
    servers: int = 0
    end: refusals.Refusal | None = None

    @property
    def fit(self) -> Fit:
        """The number of servers that each host takes."""
        if self.end:
            return Fit(self.servers)
        if self.servers < MOST:
            return Fit(self.servers, State.OR_MORE)
        return Fit(self.servers, State.UNLIMITED)


class Counts:
    """Counts the servers on the hosts that a request may use.

    :param cloud: the cloud to which the servers come, in a fork
    :param spec_obj: a nova RequestSpec that all steps of the scheduler judged
    :param states: nova HostStates of the hosts that passed, the scheduler's
        best first
    :param candidates: placement's answer
    :param key_of: returns a host's likeness key
        (:func:`.likeness.key_of_state`) by UUID. None to count every host by
        itself and to leave all claims in the fork, from which the caller goes
        on
    :ivar tied: after :meth:`measure`, sets of UUIDs of hosts of which only
        the sum is known: what one host takes another lacks, and the
        scheduler's order decides
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
        # All filters were asked before. Those that nova runs once for several
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
        counts: dict[object, HostCount] = {}
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
            counts.setdefault(key, HostCount(state, [])).uuids.append(uuid)
        self._counts = list(counts.values())
        self.tied: list[Set[str]] = []

    def measure(self, future: fork.Fork) -> dict[str, HostCount]:
        """Count the servers of each host, by UUID.

        :param future: gets the servers, except on hosts that another host
            represents, and on hosts that are counted by halving
        :raises reasons.FilterFailed: a filter raised what nova does not
            expect
        """
        remaining = list(self._counts)
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
            # With a group, one node at a time: nodes of one nova-compute
            # (ironic) may close each other.
            turns = (
                [remaining]
                if self._group is None
                else [[one] for one in remaining]
            )
            for counts in turns:
                self._fill(future, counts)
            self.tied = self._find_tied(future)
        return {uuid: count for count in self._counts for uuid in count.uuids}

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

    # Counting by bisection.

    def _has_one_candidate(self, count: HostCount) -> bool:
        """Return whether a host has one candidate, on its own provider."""
        uuid = count.state.uuid
        requests = self._requests[uuid]
        return len(requests) == 1 and requests[0]['allocations'].keys() == {
            uuid
        }

    def _halve(self, future: fork.Fork, counts: Sequence[HostCount]) -> None:
        """Count servers by bisection where a host's first refusal is final."""
        refused: dict[str, int] = {}
        tested: dict[str, int] = {}
        for count in counts:
            [request] = self._requests[count.state.uuid]
            fits = future.ledger.count_fitting(request, MOST)
            if fits < MOST:
                count.end = refusals.full(
                    future.ledger.find_lacking(request, fits)
                )
            refused[count.state.uuid] = fits + 1
            # Most hosts end because they are full, so the last server for
            # which they have room is asked about first.
            tested[count.state.uuid] = fits
        while tested := {uuid: one for uuid, one in tested.items() if one}:
            mine = [one for one in counts if one.state.uuid in tested]
            tried = [self._take(one, tested[one.state.uuid]) for one in mine]
            self._filter(tried)
            for count, attempt in zip(mine, tried, strict=True):
                uuid = count.state.uuid
                if attempt.end is None:
                    count.servers = tested[uuid]
                else:
                    refused[uuid], count.end = tested[uuid], attempt.end
                tested[uuid] = (count.servers + refused[uuid]) // 2
                if tested[uuid] == count.servers:
                    tested[uuid] = 0

    def _take(self, count: HostCount, servers: int) -> HostCount:
        """Return a count whose state has all but the last of some servers."""
        state = claims.copy_state(count.state)
        state.allocation_candidates = [*self._requests[state.uuid]]
        claims.consume_alike(state, self._spec_obj, servers - 1)
        return HostCount(state, count.uuids)

    # Counting by claims.

    def _fill(self, future: fork.Fork, counts: Sequence[HostCount]) -> None:
        """Give hosts servers by turns, until each has refused one.

        Their claims stay in the fork.
        """
        is_going = True
        while is_going:
            uuid = uuidutils.generate_uuid()
            counts = self._ask(future, counts, uuid)
            is_going = False
            for count in counts:
                # Another host may have taken what they share in this turn.
                if future.come(uuid, self._spec_obj, count.state):
                    is_going = True
                    count.servers += 1
                    if self._group is not None:
                        host = count.state.host
                        self._group.hosts = [*self._group.hosts, host]
                uuid = uuidutils.generate_uuid()

    def _ask(
        self, future: fork.Fork, counts: Sequence[HostCount], uuid: str
    ) -> list[HostCount]:
        """Put the next server into the request; return hosts that take it.

        The state of each host is read again, and :attr:`HostCount.end` says
        why a host does not take the server.

        :param uuid: the server's
        """
        self._spec_obj.instance_uuid = uuid
        if self._group is not None:
            # nova-api makes the server a member before it is placed.
            self._group.members.append(uuid)
        for count in counts:
            # With the servers that came.
            [count.state] = self._cloud.get_host_states_by_uuids(
                self._ctxt, [count.state.uuid], self._spec_obj
            )
        open_ = [count for count in counts if count.servers < MOST]
        return self._filter(self._offer(future, open_))

    def _offer(
        self, future: fork.Fork, counts: Sequence[HostCount]
    ) -> list[HostCount]:
        """Set the fitting candidates of hosts; return the hosts with any."""
        remaining = []
        for count in counts:
            lacking: set[str] = set()
            offered = []
            for request in self._requests[count.state.uuid]:
                if names := future.ledger.find_lacking(request):
                    lacking.update(names)
                else:
                    offered.append(request)
            if not offered:
                offered = self._find_next(future, count.state.uuid)
            count.state.allocation_candidates = offered
            if offered:
                remaining.append(count)
            else:
                count.end = refusals.full(sorted(lacking))
        return remaining

    def _find_next(self, future: fork.Fork, uuid: str) -> list[claims.Request]:
        """Make one more candidate of a host, which placement did not list.

        :returns: a list with it, empty if there is none; it is kept for later
        """
        requests, tree = self._requests[uuid], self._trees.get(uuid, {})
        made = self._swap.find(requests, tree, future.ledger)
        found = [*itertools.islice(made, 1)]
        requests += found
        return found

    def _filter(self, counts: list[HostCount]) -> list[HostCount]:
        """Return the hosts that pass every filter."""
        for host_filter in self._filters:
            if not counts:
                break
            why = reasons.ask_filter(
                host_filter, self._spec_obj, [count.state for count in counts]
            )
            for count in counts:
                count.end = why.get(count.state.uuid)
            counts = [count for count in counts if count.end is None]
        return counts

    def _find_tied(self, future: fork.Fork) -> list[Set[str]]:
        # Every host takes a server at first: it has passed all filters. One
        # that got none, or that its failure domain closed, competes with the
        # others for servers of the group: only their sum is known.
        if self._group is not None and any(
            not one.servers
            or (one.end and one.end.cause == failure_domain.DECLARATION.name)
            for one in self._counts
        ):
            return [{uuid for one in self._counts for uuid in one.uuids}]
        # Hosts are tied if a provider that they share lacks room for one more.
        users: dict[str, set[str]] = collections.defaultdict(set)
        for one in self._counts:
            uuid = one.state.uuid
            for request in self._requests[uuid]:
                for key, amount in ledger.amounts(request['allocations']):
                    if amount > future.ledger.get_free(*key):
                        users[key[0]].add(uuid)
        return [uuids for uuids in users.values() if len(uuids) > 1]
