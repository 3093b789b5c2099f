# SPDX-License-Identifier: Apache-2.0

"""Few moves after which a number of new servers fit.

Those that fit now come first, each where the scheduler prefers then, so that
no move spends their room. For each of the others hosts are tried, those first
of which the fewest servers must leave; the host that takes it after the fewest
moves is kept. On a host that is tried

1. servers leave, the largest share of what is lacking first, until the new
   server may come;
2. each of the moves is left out again, if the new server still may come after
   the others.

No server moves twice, and none moves so that another one can.

====================================  ====================================
a server that leaves goes             unless it has no place there
====================================  ====================================
to a host that takes no such new      to one that takes some, but is none of
server, whatever leaves               those to be tried next and took none;
                                      then to one that took one; then to any
====================================  ====================================

nova's favourite is as a rule the emptiest host, which would spend the room for
the next one.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import itertools
import math
import typing

from nova import exception as nova_exception
from oslo_utils import uuidutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import batches
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

#: Hosts that are tried at most: of these the fewest servers must leave.
MOST_HOSTS = 100
# Those whose servers are prepared at once.
_AT_ONCE = 25

# What a server takes of a host's own resource classes.
_SIZES: Mapping[str, str] = {
    'VCPU': 'vcpus',
    'PCPU': 'vcpus',
    'MEMORY_MB': 'memory_mb',
    'DISK_GB': 'disk_gb',
}


def make(
    cloud: snapshot.Snapshot,
    wanted: question.Question,
    count: int,
    where: Set[str] | None = None,
    is_cold: bool = False,
    not_to: Set[str] = frozenset(),
    advance: progress.Advance = progress.silent,
) -> plans.Room:
    """Return few moves after which a number of new servers fit.

    :param wanted: one of them
    :param where: names of the hosts that they may come to; None for all
    :param is_cold: whether servers that run may be moved cold, too
    :param not_to: names of hosts that get no server of a move
    :param advance: called after each new server
    :raises exception.InvalidValue: what is named does not exist, or nova-api
        would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """
    ctxt = process.context(wanted.project)
    flavor = request.get_flavor(ctxt, wanted.flavor)
    image = request.get_image(ctxt, wanted)
    spec_obj = request.build(ctxt, cloud, wanted, flavor, image)
    if spec_obj.force_hosts or spec_obj.force_nodes:
        raise exception.InvalidValue(
            where='--availability-zone',
            expected='a zone alone: --host names where there is to be room',
            got=wanted.availability_zone,
        )
    try:
        request.set_up_group(ctxt, spec_obj)
    except nova_exception.UnsupportedPolicyException as exc:
        raise exception.InvalidValue(
            where='--server-group',
            expected='a policy that nova-conductor takes',
            got=exc.format_message(),
        ) from exc
    places = _Places(cloud)
    places.begin(frozenset())
    coming = newcomers.Newcomers(places, spec_obj)
    search = _Search(places, coming, where, is_cold, not_to)
    plan = planner.leave_out_gone(cloud, search.make(count, advance))
    room_on = search.room_on
    return plans.Room(
        **vars(plan)
        | {
            'services': plan.services
            | cloud.services_of(filter(None, room_on))
        },
        flavor=messages.clean(flavor.name),
        count=count,
        fit_now=search.fit_now,
        room_on=room_on,
        in_the_way=search.in_the_way,
    )


class _Places(destinations.Destinations):
    """Where servers that leave go.

    :ivar aims: UUIDs of hosts that are no destinations first, and of those
        then; nothing for new servers
    """

    aims: Sequence[frozenset[str]] = ()

    def find(self, mine: movable.Movable) -> typing.Any:
        """Return where a server would go; with aims a host that is told."""
        if not self.aims:
            return super().find(mine)
        for barred in self.aims:
            self.barred = barred
            target = super().find(mine)
            if target is not None and self.is_named(target):
                return target
        return None

    def is_named(self, target: typing.Any) -> bool:
        """Return whether nova takes a server where it is told its host."""
        [request, *_] = target.allocation_candidates
        return destinations.uses_only(request, target.uuid, self.cloud)


class _Search:
    """Finds the moves.

    :param places: where servers may go
    :param coming: the new servers
    :param where: as of :func:`make`; the others too
    :ivar room_on: as of :class:`.plans.Room`, once the moves are made;
        ``fit_now`` and ``in_the_way`` too
    """

    def __init__(
        self,
        places: _Places,
        coming: newcomers.Newcomers,
        where: Set[str] | None,
        is_cold: bool,
        not_to: Set[str],
    ) -> None:
        self.cloud = places.cloud
        self.room_on: list[str | None] = []
        self.fit_now = 0
        self.in_the_way: list[str] = []
        self._places, self._coming = places, coming
        self._is_cold, self._not_to = is_cold, not_to
        every = places.cloud.hosts.items()
        self._elsewhere = frozenset(
            uuid
            for uuid, one in every
            if where is not None and one.host not in where
        )
        self._never = frozenset(
            uuid for uuid, one in every if one.host in not_to
        )
        self._on: dict[str, list[servers.Size]] = {}
        self._movables: movable.Movables = {}
        # What placement may offer a new server, by the hosts that may take
        # one, and those of them that are tried.
        self._requests: Mapping[str, Sequence[claims.Request]] = {}
        self._takers: list[str] = []
        # Those that may take one, and those that did; the next one.
        self._able: set[str] = set()
        self._taken: set[str] = set()
        self._turn = uuidutils.generate_uuid()
        self._is_bounded = False

    def make(self, count: int, advance: progress.Advance) -> plans.Plan:
        """Make the moves for so many new servers, and return them."""
        advance(total=count)
        came = []
        with self._begin([]) as future:
            for one in itertools.islice(self._coming.fill(future), count):
                came.append(one)
                advance()
            self.fit_now = len(came)
            ranked = self._rank(future) if len(came) < count else []
        self._choose(ranked, came)
        moves: list[plans.Move] = []
        with self._begin(came) as future:
            at_first = [*map(claims.copy_state, self.cloud.states.values())]
            for node, leaving in self._find_each(future, count):
                moves += self._send(future, leaving)
                self._come(future, node)
                advance()
            after = [*self.cloud.states.values()]
            groups = planner.compare_groups(
                at_first, after, self._movables, moves
            )
            if len(self.room_on) < count:
                self.in_the_way = [*self._explain()]
        moves = batches.number(moves, self._movables)
        return plans.Plan(
            moves=batches.link(moves, self._movables), groups=groups
        )

    @contextlib.contextmanager
    def _begin(
        self, came: Iterable[tuple[str, typing.Any]]
    ) -> Iterator[fork.Fork]:
        """Let the new servers come that fit now."""
        self._places.barred, self._places.aims = self._elsewhere, ()
        self.room_on, self._taken = [], set()
        with self.cloud.fork() as future:
            future.count_under_way()
            for uuid, target in came:
                self._coming.prepare(uuid)
                future.come(uuid, self._coming.spec_obj, target)
                self._note(target)
            yield future

    def _note(self, target: typing.Any) -> None:
        """Note where a new server went, and that the next one is asked."""
        self.room_on.append(
            target.host if self._places.is_named(target) else None
        )
        self._taken.add(target.uuid)
        self._turn = uuidutils.generate_uuid()

    def _come(self, future: fork.Fork, node: str) -> None:
        """Let a new server come to a host that takes it."""
        target = self._find_on(node)
        future.come(self._turn, self._coming.spec_obj, target)
        self._note(target)

    def _find_on(self, node: str) -> typing.Any:
        """Return the HostState of a host if it takes a new server now."""
        self._places.barred = self._elsewhere
        return self._places.find_on(self._coming.prepare(self._turn), node)

    # Which hosts are tried.

    def _rank(self, future: fork.Fork) -> list[str]:
        """Return UUIDs of hosts, first those that the fewest must leave."""
        for found in self.cloud.ask_cells(servers.select_sizes).values():
            for one in found:
                if node := self.cloud.find_node(one.host, one.node):
                    self._on.setdefault(node, []).append(one)
        shared = self._coming.shared
        self._requests = future.open(
            shared.resources,
            self.cloud.states.keys() - self._elsewhere,
            shared.requests | shared.refused,
        )
        least = self._count_all(future, self._on)
        self._able = set(least)
        return sorted(least, key=lambda node: least[node])

    def _count_all(
        self, future: fork.Fork, on: Mapping[str, Sequence[servers.Size]]
    ) -> dict[str, float]:
        """Return how many servers must leave a host, at the least.

        :param on: the servers of hosts that may
        :returns: of hosts where that is enough, in the order of all hosts
        """
        found = {
            node: min(
                (
                    _count_least(lacking, on.get(node, ()))
                    for lacking in self._find_lacking(future, node)
                ),
                default=math.inf,
            )
            for node in self.cloud.states
            if node in self._requests
        }
        return {node: n for node, n in found.items() if n < math.inf}

    def _find_lacking(
        self, future: fork.Fork, node: str
    ) -> Iterator[dict[str, int]]:
        """Yield of each candidate of a host what of it is not free."""
        for one in self._requests[node]:
            yield {
                name: lacking
                for (provider, name), amount in ledger.amounts(
                    one['allocations']
                )
                if (lacking := amount - future.ledger.get_free(provider, name))
                > 0
            }

    def _choose(
        self,
        ranked: Sequence[str],
        came: Sequence[tuple[str, typing.Any]],
    ) -> None:
        """Find the hosts that take a new server once servers have left."""
        for start in range(0, len(ranked), _AT_ONCE):
            if len(self._takers) >= MOST_HOSTS:
                self._is_bounded = True
                break
            some = ranked[start : start + _AT_ONCE]
            leaving = [
                plans.describe(one, one.host)
                for node in some
                for one in self._on.get(node, ())
            ]
            self._movables = {
                **self._movables,
                **departures.prepare(self._places, leaving, self._not_to),
            }
            with self._begin(came):
                for node in some:
                    if self._may_take(node):
                        self._takers.append(node)
                    else:
                        self._able.discard(node)

    def _may_take(self, node: str) -> bool:
        with self.cloud.fork() as future:
            for one in self._list_movable(node):
                mine = self._movables[one.uuid]
                typing.cast(movable.Migration, mine).leave(future)
            return self._find_on(node) is not None

    def _list_movable(self, node: str) -> list[servers.Size]:
        """Return the servers that may leave a host."""
        supposed = typing.cast(fork.Fork, self.cloud.supposed)
        return [
            one
            for one in self._on.get(node, ())
            if one.uuid not in supposed.moved
            and self._is_allowed(self._movables[one.uuid])
        ]

    def _is_allowed(self, mine: movable.Movable | Exception) -> bool:
        return not isinstance(mine, Exception) and (
            mine.method == movable.LIVE
            or self._is_cold
            or mine.why_cold == plan_format.STOPPED
        )

    # Which servers leave them.

    def _find_each(
        self, future: fork.Fork, count: int
    ) -> Iterator[tuple[str, list[plans.Leaving]]]:
        """Yield the host of each new server, and who leaves it before."""
        while (rest := count - len(self.room_on)) > 0:
            self._places.barred, self._places.aims = self._elsewhere, ()
            target = self._places.find(self._coming.prepare(self._turn))
            if target is not None:
                yield target.uuid, []
                continue
            on = {node: self._list_movable(node) for node in self._takers}
            counted = self._count_all(future, on)
            least = {node: counted[node] for node in on if node in counted}
            ranked = sorted(least, key=lambda node: least[node])
            best: tuple[str, list[plans.Leaving]] | None = None
            for node in ranked:
                if best and least[node] >= len(best[1]):
                    break
                self._aim(node, ranked[: rest + 1])
                leaving = self._try(node, least[node])
                if leaving and (not best or len(leaving) < len(best[1])):
                    best = node, leaving
            if best is None:
                return
            self._aim(best[0], ranked[: rest + 1])
            yield best

    def _aim(self, node: str, following: Iterable[str]) -> None:
        """Set where the servers of a host go first, and then."""
        taken = frozenset(self._taken)
        later = frozenset(following) - {node} - taken
        self._places.aims = [
            *dict.fromkeys(
                one | self._never
                for one in (
                    taken.union(self._able),
                    taken | later,
                    later,
                    frozenset[str](),
                )
            )
        ]

    def _try(self, node: str, least: float) -> list[plans.Leaving] | None:
        """Return who leaves a host so that it takes a new server, if so."""
        moved: list[plans.Leaving] = []
        with self.cloud.fork() as trial:
            standing = self._list_movable(node)
            while self._find_on(node) is None:
                lacking = min(
                    self._find_lacking(trial, node), key=len, default={}
                )
                while standing:
                    one = max(
                        standing, key=lambda one: _rank_size(lacking, one)
                    )
                    standing.remove(one)
                    leaving = plans.describe(one, one.host)
                    if self._send(trial, [leaving]):
                        moved.append(leaving)
                        break
                else:
                    return None
        for left_out in [*moved]:
            fewer = [one for one in moved if one is not left_out]
            if len(moved) > least and self._is_enough(node, fewer):
                moved = fewer
        return moved

    def _send(
        self, future: fork.Fork, leaving: Iterable[plans.Leaving]
    ) -> list[plans.Move]:
        """Move servers in this order, those that have a place."""
        return [
            move
            for one in leaving
            for move in planner.try_(
                self._places, future, [one], self._movables, lambda _: 0
            )[0]
        ]

    def _is_enough(self, node: str, leaving: Sequence[plans.Leaving]) -> bool:
        with self.cloud.fork() as trial:
            moves = self._send(trial, leaving)
            return len(moves) == len(leaving) and bool(self._find_on(node))

    # What is in the way.

    def _explain(self) -> Iterator[str]:
        """Yield sentences on why no more fit, in the fork with the moves."""
        self._places.barred = self._elsewhere
        yield self._coming.explain()['sentence']
        yield from self._compare_largest()
        refused = [
            one
            for one in self._movables.values()
            if isinstance(one, Exception)
        ]
        if refused:
            [why, *_] = refused
            is_known = isinstance(why, admission.NotMovable)
            said = f'{why}' if is_known else messages.describe(why)
            yield (
                f'nova cannot move {messages.count("server", len(refused))} '
                f'of hosts that were looked at; of the first: {said}.'
            )
        cold = sum(
            not isinstance(one, Exception) and not self._is_allowed(one)
            for one in self._movables.values()
        )
        if cold:
            verb = messages.agree(cold, 'runs', 'run')
            yield (
                f'{messages.count("server", cold)} there {verb} and can only '
                f'be moved cold: --cold allows that.'
            )
        if self.cloud.providers.served.keys() - self.cloud.states.keys():
            yield 'No server was moved of which only nova can choose the host.'
        yield 'Moving a third server so that a second can go was not tried.'
        if self._is_bounded:
            yield (
                f'Only the {len(self._takers)} hosts were tried of which the '
                f'fewest servers would have to leave.'
            )

    def _compare_largest(self) -> Iterator[str]:
        """Yield a sentence on a resource class of which no host has enough."""
        providers = self.cloud.providers
        for form in self._coming.shared.resources[:1]:
            for name, amount in form.merged_resources().items():
                most = max(
                    (
                        room[name]['capacity']
                        for node in self.cloud.states.keys() - self._elsewhere
                        if name in (room := providers.get_room(node))
                    ),
                    default=amount,
                )
                if most < amount:
                    yield (
                        f'The largest host has {most} of {name}, and the '
                        f'server takes {amount}.'
                    )


def _count_least(
    lacking: Mapping[str, int], standing: Collection[servers.Size]
) -> float:
    """Return how many servers must leave a host, at the least, or inf."""
    most = 1 if standing else math.inf
    for name, amount in lacking.items():
        sizes = sorted(
            (_get_size(one, name) for one in standing), reverse=True
        )
        totals = itertools.accumulate(sizes)
        counted = (n for n, total in enumerate(totals, 1) if total >= amount)
        most = max(most, next(counted, math.inf))
    return most


def _rank_size(
    lacking: Mapping[str, int], one: servers.Size
) -> tuple[float, float]:
    """Return how much of what is lacking a server has; of equals the least."""
    share = sum(
        min(_get_size(one, name), amount) / amount
        for name, amount in lacking.items()
    )
    size = sum(
        _get_size(one, name) / amount for name, amount in lacking.items()
    )
    # Where nothing is lacking, what refuses is of another kind.
    return (share, -size) if lacking else (0, one.memory_mb)


def _get_size(one: servers.Size, name: str) -> float:
    """Return what a server takes of a resource class; inf if not known."""
    return getattr(one, _SIZES[name]) if name in _SIZES else math.inf
