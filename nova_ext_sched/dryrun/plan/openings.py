# SPDX-License-Identifier: Apache-2.0

"""Finds hosts that take a new server once a few others have left.

For each host it tries sets of one server, then of two, and so on: the smallest
sets first whose allocations cover what the host lacks. nova's filters then
decide whether the new server fits, including its NUMA cells and devices. The
first set whose servers all have a destination opens the host.

A server that leaves goes to the first of these that takes it:

1. a host that can take no new server, whatever leaves it;
2. a host that can take one but is promised to none, and is not about to be
   tried;
3. a host that is promised to a new server;
4. any other host.

nova itself would choose the emptiest host as a rule, and so spend the room for
the next new server.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import functools
import itertools
import math
import typing

from nova_ext_sched import grouping
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import plans

#: No more hosts are added to those that are tried once there are this many.
#: Hosts that must lose the fewest servers come first.
MOST_HOSTS = 100
# Number of hosts whose servers are prepared at once.
_AT_ONCE = 25
# The most sets of one size that are compared with what a host lacks. If there
# are more, _Host._grow chooses servers instead.
_MOST_SETS = 5000
# The most sets of a host that nova is asked about.
_MOST_ASKED = 100

# The field of servers.Size that approximates a server's use of each resource
# class; placement knows it exactly.
_SIZES: Mapping[str, str] = {
    'VCPU': 'vcpus',
    'PCPU': 'vcpus',
    'MEMORY_MB': 'memory_mb',
    'DISK_GB': 'disk_gb',
}

#: Lacking or held amounts, by provider and resource class.
_Amounts = Mapping[ledger.Key, int]


class Opening(typing.NamedTuple):
    """A host that takes a new server.

    :ivar node: UUID of its compute node
    :ivar leaving: the servers that leave it first, in this order, each with
        the UUID of the compute node where it goes
    """

    node: str
    leaving: Sequence[tuple[servers.Size, str]]

    @property
    def servers(self) -> frozenset[str]:
        """The UUIDs of the servers that leave."""
        return frozenset(size.uuid for size, _ in self.leaving)


@dataclasses.dataclass(kw_only=True)
class Openings:
    """Finds hosts that take a new server, and the servers that leave first.

    :param coming: the new servers that need hosts
    :param closed_to_new: UUIDs of hosts that new servers may not come to
    :param closed_to_moves: UUIDs of hosts that get no server of a move
    :param is_cold: whether running servers may be moved cold, too
    :param advance: reports progress
    :ivar places: finds the destinations of servers
    :ivar promises: the new servers that were promised a host
    :ivar movables: the prepared servers of hosts, by UUID
    :ivar able: UUIDs of hosts that may take a new server, tried or not
    :ivar takers: UUIDs of hosts that take a new server once every movable
        server has left
    :ivar unknown: UUIDs of hosts where it is not known what placement would
        offer once servers have left
    :ivar refused: by server UUID, the UUIDs of hosts that it must not go to,
        because a promise would break
    :ivar given_up: UUIDs of hosts that cannot be promised
    """

    coming: newcomers.Newcomers
    closed_to_new: frozenset[str]
    closed_to_moves: frozenset[str]
    is_cold: bool
    advance: progress.Advance
    movables: dict[str, movable.Movable | Exception] = dataclasses.field(
        default_factory=dict
    )
    able: set[str] = dataclasses.field(default_factory=set)
    takers: list[str] = dataclasses.field(default_factory=list)
    unknown: set[str] = dataclasses.field(default_factory=set)
    refused: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    given_up: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.places = self.coming.places
        self._cloud = self.places.cloud
        self._reported = 0
        self.promises = newcomers.Promised(self.coming)
        # Servers by UUID of their compute node.
        self._on: dict[str, list[servers.Size]] = {}
        # Allocation requests that a new server may get, by compute node.
        self._requests: Mapping[str, Sequence[claims.Request]] = {}
        # Amounts that each server holds, by UUID.
        self._held: dict[str, _Amounts] = {}
        # Placement's answers with these amounts, by compute node.
        self._said: dict[str, Mapping[str, ledger.Body]] = {}

    def prepare(self) -> None:
        """Find the hosts to try. Call it before a fork is opened.

        :raises placement.PlacementFailed: placement does not answer
        """
        with self.promises.with_promised({}) as future:
            ranked = self._rank(future)
        self.able = {*ranked}
        for start in range(0, len(ranked), _AT_ONCE):
            if len(self.takers) >= MOST_HOSTS:
                break
            self.advance(0, 'Preparing servers')
            nodes = ranked[start : start + _AT_ONCE]
            self._prepare(nodes)
            with self.begin(), self.promises.with_promised(self.movables):
                self.takers += filter(self._may_take, nodes)
            self.able -= {*nodes} - {*self.takers}

    @contextlib.contextmanager
    def begin(self) -> Iterator[fork.Fork]:
        """Open the fork of a plan, on the cloud as it is."""
        with self._cloud.fork() as future:
            future.count_under_way()
            for node, held in self._said.items():
                future.tell_held(node, held)
            yield future

    def _rank(self, future: fork.Fork) -> list[str]:
        """Read servers and candidates of all hosts, and sort the hosts.

        :returns: UUIDs of hosts, those first that the fewest servers must
            leave
        """
        cloud = self._cloud
        self._on = grouping.by_key(
            (node, size)
            for sizes in cloud.ask_cells(servers.select_sizes).values()
            for size in sizes
            if (node := cloud.find_node(size.host, size.node))
        )
        self._requests = self._read_requests(future)
        resources = self.coming.shared.resources
        if any(one.get_num_of_suffixed_groups() for one in resources):
            self.unknown = {
                uuid for uuid in self._on if not self._requests.get(uuid)
            } - self.closed_to_new
        least = {
            node: min(
                _estimate(lacking, self._on[node])
                for lacking in self._find_lacking(future, node)
            )
            for node, requests in self._requests.items()
            if requests and node in self._on
        }
        return sorted(least, key=least.__getitem__)

    def _read_requests(
        self, future: fork.Fork
    ) -> dict[str, list[claims.Request]]:
        """Return the allocation requests for a new server, by host."""
        cloud, shared = self._cloud, self.coming.shared
        # nova creates nothing on a host in no cell mapping.
        nodes = [
            uuid
            for uuid, state in cloud.states.items()
            if uuid not in self.closed_to_new
            and state.host not in cloud.unmapped
        ]
        known = shared.requests | shared.refused
        # All hosts are looked at, and the full ones are in no answer yet.
        for form in shared.resources:
            cloud.providers.read_all(query.get_unnumbered(form))
        return future.open(shared.resources, nodes, known)

    def list_roomiest(self, most: int) -> list[str]:
        """Sort UUIDs of hosts, those with room for most new servers first.

        :param most: number up to which new servers are counted on a host
        """
        with self._cloud.fork() as future:
            count = future.ledger.count_fitting
            rooms = {
                node: max(count(one, most) for one in requests)
                for node, requests in self._read_requests(future).items()
                if requests
            }
        return sorted(rooms, key=rooms.__getitem__, reverse=True)

    def _find_lacking(self, future: fork.Fork, node: str) -> list[_Amounts]:
        """Return the lacking amounts of each candidate of a host."""
        return [
            {
                key: amount - free
                for key, amount in ledger.amounts(request['allocations'])
                if (free := future.ledger.get_free(*key)) < amount
            }
            for request in self._requests[node]
        ]

    def _prepare(self, nodes: Iterable[str]) -> None:
        """Read the servers of hosts, and what each holds."""
        leaving = [
            plans.make_leaving(size, size.host)
            for node in nodes
            for size in self._on[node]
        ]
        not_to = {
            self._cloud.nodes[uuid].host for uuid in self.closed_to_moves
        }
        for uuid, prepared in departures.prepare(
            self.places, leaving, not_to
        ).items():
            self.movables[uuid] = self._allow(prepared)
        for node in nodes:
            held = self._said[node] = self._cloud.providers.get_held(node)
            for size in self._on[node]:
                allocations = held.get(size.uuid, ledger.NOTHING)
                self._held[size.uuid] = dict(
                    ledger.amounts(allocations['allocations'])
                )

    def _allow(
        self, prepared: movable.Movable | Exception
    ) -> movable.Movable | Exception:
        """Return a prepared server, or why the plan must not move it.

        It must not if the server runs and nova can move it only cold, unless
        the operator allows that.
        """
        if (
            isinstance(prepared, Exception)
            or prepared.method == movable.LIVE
            or self.is_cold
            or prepared.why_cold == plan_format.STOPPED
        ):
            return prepared
        return admission.NotMovable(
            'it runs, and nova moves it only cold (--cold allows that)', ''
        )

    def _may_take(self, node: str) -> bool:
        with self._cloud.fork() as future:
            standing = self._list_movable(future, node)
            return bool(standing) and self._takes_without(node, standing)

    def _takes_without(
        self, node: str, leaving: Iterable[servers.Size]
    ) -> bool:
        """Return whether a host takes a new server once others are gone."""
        with self._cloud.fork() as trial:
            for size in leaving:
                prepared = self.movables[size.uuid]
                typing.cast(movable.Migration, prepared).leave(trial)
            return self.promises.find_on(node) is not None

    def _list_movable(
        self, future: fork.Fork, node: str
    ) -> list[servers.Size]:
        """Return the servers of a host that can move, and have not yet."""
        return [
            size
            for size in self._on.get(node, ())
            if size.uuid not in future.moved
            and not isinstance(self.movables[size.uuid], Exception)
        ]

    def report(self) -> None:
        """Report the new servers that were promised a host since last time."""
        while self._reported < len(self.promises):
            self._reported += 1
            self.advance()

    def find(
        self, future: fork.Fork, rest: int, tried: Set[frozenset[str]]
    ) -> Opening | None:
        """Return the host that takes a new server after the fewest moves.

        :param future: the open fork, with all promised new servers
        :param rest: number of new servers without a host
        :param tried: sets of servers that must not leave together, as UUIDs
        """
        hosts = {
            node: _Host(
                self._find_lacking(future, node),
                self._list_movable(future, node),
                self._held,
                tried,
            )
            for node in self.takers
            if node not in self.given_up
        }
        least = {node: host.count_least() for node, host in hosts.items()}
        ranked = [node for node in least if least[node] < math.inf]
        ranked.sort(key=least.__getitem__)
        best: Opening | None = None
        placed: dict[object, bool] = {}
        for node in ranked:
            if best and least[node] >= len(best.leaving):
                break
            host = hosts[node]
            self.advance(0, f'Trying {self._cloud.states[node].host}')
            following = frozenset(ranked[: rest + 1])
            barred_sets = self._list_barred(node, following)
            host.most = len(best.leaving) - 1 if best else math.inf
            best = self._open(node, host, barred_sets, placed) or best
        return best

    def _list_barred(
        self, node: str, following: Set[str]
    ) -> list[frozenset[str]]:
        """Return the sets of barred hosts to try in turn for leaving servers.

        The strictest comes first; see the description of this module.

        :param following: UUIDs of hosts that are about to be tried
        """
        taken = frozenset(self.promises.nodes)
        later = frozenset(following) - {node} - taken
        return [
            taken.union(self.able, self.closed_to_moves),
            taken.union(later, self.closed_to_moves),
            later | self.closed_to_moves,
            self.closed_to_moves,
        ]

    def _open(
        self,
        node: str,
        host: '_Host',
        barred_sets: Sequence[frozenset[str]],
        placed: dict[object, bool],
    ) -> Opening | None:
        """Find the smallest set of servers whose moves open a host.

        :param barred_sets: the result of :meth:`_list_barred`
        :param placed: see :meth:`_has_place`
        :returns: None if there is no such set
        """
        number = 0
        for leaving in host.choose():
            # In a full cloud hardly any server has a destination, and most
            # are equivalent.
            if not all(placed.get(self._key(one), True) for one in leaving):
                continue
            number += 1
            if number > _MOST_ASKED:
                break
            if not self._takes_without(node, leaving):
                continue
            # A list, not a generator: every server is asked, so that later
            # sets with a server without a destination are skipped.
            if all(
                [self._has_place(one, barred_sets, placed) for one in leaving]
            ):
                if moves := self._try(node, leaving, barred_sets):
                    return Opening(node, moves)
        return None

    def _key(self, size: servers.Size) -> object:
        """Return a key that is equal for equivalent servers of a host."""
        prepared = typing.cast(movable.Movable, self.movables[size.uuid])
        like = prepared.like
        if not like or not like.is_whole or size.uuid in self.refused:
            return size.uuid
        return size.host, size.node, prepared.method, like.shared

    def _has_place(
        self,
        size: servers.Size,
        barred_sets: Sequence[frozenset[str]],
        placed: dict[object, bool],
    ) -> bool:
        """Return whether a server has a destination before any other moves.

        :param barred_sets: the result of :meth:`_list_barred`
        :param placed: keeps the answers, one for equivalent servers of a host
        """
        key = self._key(size)
        if key not in placed:
            # The last set bars fewest hosts, so it alone is enough. But if
            # hosts share providers, its best host may be one that a move
            # cannot name: then try all sets.
            cloud = self._cloud
            shared = cloud.providers.served.keys() - cloud.states.keys()
            tried = barred_sets if shared else barred_sets[-1:]
            placed[key] = self._find_place(size, tried) is not None
        return placed[key]

    def _try(
        self,
        node: str,
        leaving: Sequence[servers.Size],
        barred_sets: Sequence[frozenset[str]],
    ) -> list[tuple[servers.Size, str]]:
        """Try to move servers off their host; return their destinations.

        A server that has no destination once others moved is tried first next
        time.
        """
        order = [*leaving]
        for _ in leaving:
            moves: list[tuple[servers.Size, str]] = []
            with self._cloud.fork() as trial:
                for size in order:
                    prepared = self.movables[size.uuid]
                    target = self._find_place(size, barred_sets)
                    if target is None or not typing.cast(
                        movable.Movable, prepared
                    ).go(trial, target):
                        break
                    moves.append((size, target.uuid))
                else:
                    is_enough = self.promises.find_on(node) is not None
                    return moves if is_enough else []
            order.remove(size)
            order.insert(0, size)
        return []

    def _find_place(
        self, size: servers.Size, barred_sets: Iterable[frozenset[str]]
    ) -> typing.Any:
        """Return the HostState of a destination that a move can name, or None.

        :param barred_sets: sets of barred hosts, which are tried in turn
        """
        prepared = typing.cast(movable.Movable, self.movables[size.uuid])
        refused = self.refused.get(size.uuid, set())
        for barred in barred_sets:
            target = movable.attempt(
                functools.partial(self.places.find, prepared, barred | refused)
            )
            if isinstance(target, Exception):
                # The server stays where it is.
                return None
            if target is not None and self.places.can_be_named(target):
                return target
        return None


@dataclasses.dataclass
class _Host:
    """A host, and the servers that can leave it.

    :param lacking: for each of the host's candidates, the amounts that are not
        free
    :param standing: the servers that may leave
    :param held: the amounts that servers hold, by UUID
    :param tried: sets of servers that must not leave together, as UUIDs
    :param most: largest number of servers to leave
    """

    lacking: Sequence[_Amounts]
    standing: Sequence[servers.Size]
    held: Mapping[str, _Amounts]
    tried: Set[frozenset[str]]
    most: float = math.inf

    def count_least(self) -> float:
        """Return the least number of servers to leave; inf if impossible."""
        return min(map(self._count_least, self.lacking), default=math.inf)

    def _count_least(self, lacking: _Amounts) -> float:
        least: float = 1 if self.standing else math.inf
        for key, amount in lacking.items():
            amounts = sorted(
                (self._get(size, key) for size in self.standing), reverse=True
            )
            totals = enumerate(itertools.accumulate(amounts), 1)
            enough = (number for number, total in totals if total >= amount)
            least = max(least, next(enough, math.inf))
        return least

    def choose(self) -> Iterator[list[servers.Size]]:
        """Yield sets of servers that may be enough, the fewest first.

        Sets of equal length come smallest total first; within a set the
        largest server comes first.
        """
        least = self.count_least()
        most = min(self.most, len(self.standing))
        if least > most:
            return
        by_size = sorted(self.standing, key=self._measure, reverse=True)
        number = int(least)
        while number <= most:
            if math.comb(len(by_size), number) > _MOST_SETS:
                grown = filter(self._is_new, self._grow(by_size))
                yield from itertools.takewhile(
                    lambda leaving: len(leaving) <= most, filter(None, grown)
                )
                return
            enough = filter(
                self._is_enough, itertools.combinations(by_size, number)
            )
            yield from map(
                list,
                sorted(enough, key=lambda set_: sum(map(self._measure, set_))),
            )
            number += 1

    def _grow(
        self, standing: Sequence[servers.Size]
    ) -> Iterator[list[servers.Size]]:
        """Yield a set of servers that is enough, and then larger ones.

        The first set frees what the candidate needs that lacks the fewest
        resource classes, without servers that it can do without. Each further
        set has one server more, the largest first.
        """
        remaining, leaving = [*standing], list[servers.Size]()
        fewest = min(self.lacking, key=len)
        lacking = dict(fewest)
        while remaining and lacking:
            size = max(remaining, key=lambda one: self._rank(lacking, one))
            remaining.remove(size)
            leaving.append(size)
            lacking = {
                key: amount - self._get(size, key)
                for key, amount in lacking.items()
                if amount > self._get(size, key)
            }
        for size in [*leaving]:
            fewer = [one for one in leaving if one is not size]
            if self._is_enough(fewer):
                leaving = fewer
        yield leaving
        for size in standing:
            if size not in leaving:
                leaving = [*leaving, size]
                yield leaving

    def _rank(
        self, lacking: _Amounts, size: servers.Size
    ) -> tuple[float, float]:
        """Return a sort key: most of what is lacking, then smallest."""
        share = sum(
            min(self._get(size, key), amount) / amount
            for key, amount in lacking.items()
        )
        return share, -self._measure(size)

    def _is_new(self, leaving: Collection[servers.Size]) -> bool:
        return frozenset(size.uuid for size in leaving) not in self.tried

    def _is_enough(self, leaving: Collection[servers.Size]) -> bool:
        """Return whether an untried set frees what some candidate lacks."""
        return self._is_new(leaving) and any(
            all(
                sum(self._get(size, key) for size in leaving) >= amount
                for key, amount in lacking.items()
            )
            for lacking in self.lacking
        )

    def _measure(self, size: servers.Size) -> float:
        """Measure a server by the lacking amounts; by memory if none lacks."""
        lacking = min(self.lacking, key=len)
        if not lacking:
            return size.memory_mb
        return sum(
            self._get(size, key) / amount for key, amount in lacking.items()
        )

    def _get(self, size: servers.Size, key: ledger.Key) -> int:
        return self.held[size.uuid].get(key, 0)


def _estimate(lacking: _Amounts, standing: Collection[servers.Size]) -> int:
    """Estimate from the instances table how many servers must leave a host.

    The table has no swap and no custom resources. If all servers together seem
    too small, their number is returned, because that may be wrong.
    """
    least = 1
    for (_, name), amount in lacking.items():
        if name in _SIZES:
            sizes = sorted(getattr(size, _SIZES[name]) for size in standing)
            totals = enumerate(itertools.accumulate(reversed(sizes)), 1)
            enough = (number for number, total in totals if total >= amount)
            least = max(least, next(enough, len(standing)))
    return least
