# SPDX-License-Identifier: Apache-2.0

"""Finds hosts that take a new server once a few others have left.

Of a host that is tried, first one server leaves, then two, and so on: sets
whose allocations are as large as what is lacking, the smallest first. nova's
filters say whether the new server may come then, which NUMA cells and devices
decide, too. The first set whose servers all have a place opens the host.

A server that leaves goes to the first of these where it has a place:

1. a host that can take no new server, whatever leaves it;
2. one that can, was promised none, and is not among those that are tried next;
3. one that was promised to a new server;
4. any other.

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
import itertools
import math
import typing

from nova_ext_sched import plan_format
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import promised

#: Hosts that are tried at most: of these the fewest servers must leave.
MOST_HOSTS = 100
# Of so many hosts the servers are prepared together.
_AT_ONCE = 25
# The most sets of so many servers of a host that are compared with what is
# lacking; of more, the largest servers leave.
_MOST_SETS = 5000
# The most sets of a host that nova is asked about.
_MOST_ASKED = 100

# About what a server takes of a resource class; placement knows it exactly.
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
    :ivar leaving: the servers that leave it before, in this order, and the
        UUID of the compute node where each goes
    """

    node: str
    leaving: Sequence[tuple[servers.Size, str]]

    @property
    def servers(self) -> frozenset[str]:
        """The UUIDs of those that leave."""
        return frozenset(size.uuid for size, _ in self.leaving)


@dataclasses.dataclass(kw_only=True)
class Openings:
    """Finds hosts that take a new server, and who leaves them before.

    :param elsewhere: UUIDs of hosts that new servers may not come to
    :param never: UUIDs of hosts that get no server of a move
    :param is_cold: whether servers that run may be moved cold, too
    :ivar places: the destinations of servers
    :ivar promises: the new servers that were promised a host
    :ivar movables: the servers of the hosts that were looked at
    :ivar able: UUIDs of hosts that may take a new server, tried or not
    :ivar takers: UUIDs of those that do once all have left that may
    :ivar unknown: UUIDs of hosts where it is not known what placement would
        offer once servers have left
    :ivar refused: the hosts that servers are not to go to, by UUID, as a
        promise would not hold
    :ivar given_up: UUIDs of hosts that cannot be promised
    """

    coming: newcomers.Newcomers
    elsewhere: frozenset[str]
    never: frozenset[str]
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
        self.promises = promised.Promised(self.coming)
        self._on: dict[str, list[servers.Size]] = {}
        # What placement may offer a new server, by host.
        self._requests: Mapping[str, Sequence[claims.Request]] = {}
        # What servers hold, by UUID; as placement said it, by host.
        self._held: dict[str, _Amounts] = {}
        self._said: dict[str, Mapping[str, ledger.Body]] = {}

    def prepare(self) -> None:
        """Find the hosts that are tried, while no fork is open.

        :raises placement.PlacementFailed: placement does not answer
        """
        with self.promises.crowded({}) as future:
            ranked = self._rank(future)
        self.able = {*ranked}
        for start in range(0, len(ranked), _AT_ONCE):
            if len(self.takers) >= MOST_HOSTS:
                break
            self.advance(0, 'Preparing servers')
            nodes = ranked[start : start + _AT_ONCE]
            self._prepare(nodes)
            with self.begin(), self.promises.crowded(self.movables):
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
        """Sort UUIDs of hosts by how few servers must leave, fewest first."""
        cloud = self._cloud
        for sizes in cloud.ask_cells(servers.select_sizes).values():
            for size in sizes:
                if node := cloud.find_node(size.host, size.node):
                    self._on.setdefault(node, []).append(size)
        self._requests = self._read_requests(future)
        resources = self.coming.shared.resources
        if any(one.get_num_of_suffixed_groups() for one in resources):
            self.unknown = {
                uuid for uuid in self._on if not self._requests.get(uuid)
            } - self.elsewhere
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
            if uuid not in self.elsewhere and state.host not in cloud.unmapped
        ]
        known = shared.requests | shared.refused
        return future.open(shared.resources, nodes, known)

    def list_roomiest(self, most: int) -> list[str]:
        """Sort UUIDs of hosts, those with room for most new servers first.

        :param most: number of hosts wanted
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
        not_to = {self._cloud.hosts[uuid].host for uuid in self.never}
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
        """Prepare a server, or return why the plan must not move it."""
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
        """Return the servers that may leave a host."""
        return [
            size
            for size in self._on.get(node, ())
            if size.uuid not in future.moved
            and not isinstance(self.movables[size.uuid], Exception)
        ]

    def report(self) -> None:
        """Report how many new servers have a host that had none before."""
        while self._reported < len(self.promises):
            self._reported += 1
            self.advance()

    def find(
        self, future: fork.Fork, rest: int, tried: Set[frozenset[str]]
    ) -> Opening | None:
        """Return the host that takes a new server after the fewest moves.

        :param future: the fork that is open, with all that were promised
        :param rest: number of new servers without a host
        :param tried: UUIDs of servers that are not to leave together
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
            aims = self._aim(node, following)
            host.most = len(best.leaving) - 1 if best else math.inf
            best = self._open(node, host, aims, placed) or best
        return best

    def _aim(self, node: str, following: Set[str]) -> list[frozenset[str]]:
        """Return the barred hosts for leaving servers, try after try.

        :param following: UUIDs of hosts that are tried next
        """
        taken = frozenset(self.promises.nodes)
        later = frozenset(following) - {node} - taken
        return [
            taken.union(self.able, self.never),
            taken.union(later, self.never),
            later | self.never,
            self.never,
        ]

    def _open(
        self,
        node: str,
        host: '_Host',
        aims: Sequence[frozenset[str]],
        placed: dict[object, bool],
    ) -> Opening | None:
        """Move servers off a host so that it takes a new one.

        :param aims: as :meth:`_aim` returned
        :param placed: as of :meth:`_has_place`
        """
        asked = 0
        for leaving in host.choose():
            # In a full cloud hardly any has a place, and most are alike.
            if not all(placed.get(self._key(one), True) for one in leaving):
                continue
            asked += 1
            if asked > _MOST_ASKED:
                break
            if not self._takes_without(node, leaving):
                continue
            # Each, so that the sets of all that have none are left out.
            if all([self._has_place(one, aims, placed) for one in leaving]):
                if moves := self._try(node, leaving, aims):
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
        aims: Sequence[frozenset[str]],
        placed: dict[object, bool],
    ) -> bool:
        """Return whether a server has a place before any other moves.

        :param aims: as :meth:`_aim` returned
        :param placed: keeps the answers, one for equivalent servers of a host
        """
        key = self._key(size)
        if key not in placed:
            # The last aim bars least. Where hosts share providers, the best
            # host may be one that no move can name.
            cloud = self._cloud
            shared = cloud.providers.served.keys() - cloud.states.keys()
            asked = aims if shared else aims[-1:]
            placed[key] = self._find_place(size, asked) is not None
        return placed[key]

    def _try(
        self,
        node: str,
        leaving: Sequence[servers.Size],
        aims: Sequence[frozenset[str]],
    ) -> list[tuple[servers.Size, str]]:
        """Try to move servers off their host; return their destinations.

        One that has no place after others goes before them.
        """
        order = [*leaving]
        for _ in leaving:
            moves: list[tuple[servers.Size, str]] = []
            with self._cloud.fork() as trial:
                for size in order:
                    prepared = self.movables[size.uuid]
                    target = self._find_place(size, aims)
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
        self, size: servers.Size, aims: Iterable[frozenset[str]]
    ) -> typing.Any:
        """Return the HostState of a named host that takes a server.

        None where it has no place.
        """
        prepared = typing.cast(movable.Movable, self.movables[size.uuid])
        refused = self.refused.get(size.uuid, set())
        for barred in aims:
            try:
                target = self.places.find(prepared, barred | refused)
            except placement.PlacementFailed:
                raise
            except Exception:
                # It stays.
                return None
            if target is not None and destinations.can_be_named(
                target, self._cloud
            ):
                return target
        return None


@dataclasses.dataclass
class _Host:
    """A host, and the servers that can leave it.

    :param lacking: of each candidate of the host what of it is not free
    :param standing: the servers that may leave
    :param held: the amounts that servers hold, by UUID
    :param tried: UUIDs of servers that are not to leave together
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

        Of as many, those first that are smallest together; in each set the
        largest first.
        """
        least = self.count_least()
        most = min(self.most, len(self.standing))
        by_size = sorted(self.standing, key=self._measure, reverse=True)
        number = int(least) if least <= most else len(self.standing) + 1
        while number <= most:
            if math.comb(len(by_size), number) > _MOST_SETS:
                grown = self._grow(by_size)
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
        """Yield growing sets of servers, those that free most first."""
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
        """Return a sort key: most of the lacking amounts, then smallest."""
        share = sum(
            min(self._get(size, key), amount) / amount
            for key, amount in lacking.items()
        )
        return share, -self._measure(size)

    def _is_enough(self, leaving: Collection[servers.Size]) -> bool:
        if frozenset(size.uuid for size in leaving) in self.tried:
            return False
        return any(
            all(
                sum(self._get(size, key) for size in leaving) >= amount
                for key, amount in lacking.items()
            )
            for lacking in self.lacking
        )

    def _measure(self, size: servers.Size) -> float:
        """Measure a server by the lacking amounts, or by memory."""
        lacking = min(self.lacking, key=len)
        if not lacking:
            return size.memory_mb
        return sum(
            self._get(size, key) / amount for key, amount in lacking.items()
        )

    def _get(self, size: servers.Size, key: ledger.Key) -> int:
        return self.held[size.uuid].get(key, 0)


def _estimate(lacking: _Amounts, standing: Collection[servers.Size]) -> int:
    """Estimate how many servers must leave a host, by their rows.

    A row knows no swap and no resources of the flavor: where all servers seem
    too few, the host is tried last.
    """
    least = 1
    for (_, name), amount in lacking.items():
        if name in _SIZES:
            sizes = sorted(getattr(size, _SIZES[name]) for size in standing)
            totals = enumerate(itertools.accumulate(reversed(sizes)), 1)
            enough = (number for number, total in totals if total >= amount)
            least = max(least, next(enough, len(standing)))
    return least
