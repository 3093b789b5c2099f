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

A server that leaves goes to the first of these where it has a place:

1. a host that can take no new server, whatever leaves it;
2. one that can, has not taken one, and is not among those that are tried next;
3. one that has taken a new server;
4. any other.

nova itself would choose the emptiest host as a rule, and so spend the room for
the next new server.
"""

import collections
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
# Of so many hosts the servers are prepared together.
_AT_ONCE = 25
# The most reasons that are told why servers are not moved.
_MOST_REASONS = 3

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
    search = _Search(places, coming, where, is_cold, not_to, advance)
    return planner.leave_out_gone(
        cloud, search.make(messages.clean(flavor.name), count)
    )


class _Places(destinations.Destinations):
    """Where servers that leave go.

    :ivar aims: UUIDs of hosts that are no destinations first, and of those
        then; nothing for new servers
    """

    aims: Sequence[frozenset[str]] = ()

    def find(self, prepared: movable.Movable) -> typing.Any:
        """Return where a server would go; with aims a host that is told."""
        if not self.aims:
            return super().find(prepared)
        for barred in self.aims:
            self.barred = barred
            target = super().find(prepared)
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
    """

    def __init__(
        self,
        places: _Places,
        coming: newcomers.Newcomers,
        where: Set[str] | None,
        is_cold: bool,
        not_to: Set[str],
        advance: progress.Advance,
    ) -> None:
        self._cloud = places.cloud
        self._places, self._coming = places, coming
        self._is_cold, self._not_to, self._advance = is_cold, not_to, advance
        names = {uuid: one.host for uuid, one in places.cloud.hosts.items()}
        self._elsewhere = frozenset(
            uuid
            for uuid, name in names.items()
            if where is not None and name not in where
        )
        self._never = frozenset(
            uuid for uuid, name in names.items() if name in not_to
        )
        self._on: dict[str, list[servers.Size]] = {}
        self._movables: movable.Movables = {}
        # What placement may offer a new server, by host; and the hosts that
        # are tried.
        self._requests: Mapping[str, Sequence[claims.Request]] = {}
        self._takers: list[str] = []
        # Hosts that may take a new server, tried or not; those that took one;
        # where each went; the UUID of the next one.
        self._able: set[str] = set()
        self._taken: set[str] = set()
        self._room_on: list[str | None] = []
        self._turn = ''

    def make(self, flavor: str, count: int) -> plans.Room:
        """Make the moves for so many new servers.

        :param flavor: what theirs is named
        """
        self._advance(total=count)
        came = []
        with self._begin([]) as future:
            for one in itertools.islice(self._coming.fill(future), count):
                came.append(one)
                self._advance()
            ranked = self._rank(future) if len(came) < count else []
        self._choose(ranked, came)
        moves: list[plans.Move] = []
        with self._begin(came) as future:
            at_first = [*map(claims.copy_state, self._cloud.states.values())]
            for node, leaving in self._find_each(future, count):
                moves += self._send(future, leaving)
                self._come(future, self._turn, self._find_on(node))
                self._advance()
            after = [*self._cloud.states.values()]
            movables = self._movables
            return plans.Room(
                moves=batches.link(batches.number(moves, movables), movables),
                groups=planner.compare_groups(
                    at_first, after, movables, moves
                ),
                flavor=flavor,
                count=count,
                fit_now=len(came),
                room_on=self._room_on,
                in_the_way=(
                    [*self._explain()] if len(self._room_on) < count else []
                ),
            )

    @contextlib.contextmanager
    def _begin(
        self, came: Iterable[tuple[str, typing.Any]]
    ) -> Iterator[fork.Fork]:
        """Let the new servers come that fit now."""
        self._places.barred, self._places.aims = self._elsewhere, ()
        self._room_on, self._taken = [], set()
        self._turn = uuidutils.generate_uuid()
        with self._cloud.fork() as future:
            future.count_under_way()
            for uuid, target in came:
                self._coming.prepare(uuid)
                self._come(future, uuid, target)
            yield future

    def _come(self, future: fork.Fork, uuid: str, target: typing.Any) -> None:
        """Let a new server come to a host, and ask about the next one."""
        future.come(uuid, self._coming.spec_obj, target)
        is_named = self._places.is_named(target)
        self._room_on.append(target.host if is_named else None)
        self._taken.add(target.uuid)
        self._turn = uuidutils.generate_uuid()

    def _find_on(self, node: str) -> typing.Any:
        """Return the HostState of a host if it takes a new server now."""
        self._places.barred = self._elsewhere
        return self._places.find_on(self._coming.prepare(self._turn), node)

    # Which hosts are tried.

    def _rank(self, future: fork.Fork) -> list[str]:
        """Return UUIDs of hosts, first those that the fewest must leave."""
        cloud, shared = self._cloud, self._coming.shared
        for found in cloud.ask_cells(servers.select_sizes).values():
            for one in found:
                if node := cloud.find_node(one.host, one.node):
                    self._on.setdefault(node, []).append(one)
        # nova creates nothing on a host in no cell mapping.
        self._requests = future.open(
            shared.resources,
            [
                uuid
                for uuid, state in cloud.states.items()
                if uuid not in self._elsewhere
                and state.host not in cloud.unmapped
            ],
            shared.requests | shared.refused,
        )
        ranked = self._order(future, self._on, self._requests)
        self._able = set(ranked)
        return [*ranked]

    def _order(
        self,
        future: fork.Fork,
        on: Mapping[str, Sequence[servers.Size]],
        nodes: Iterable[str],
    ) -> dict[str, float]:
        """Return how many servers must leave hosts, at the least.

        :param on: the servers of hosts that may
        :returns: of hosts where that is enough, the least first
        """
        least = {
            node: min(
                (
                    _count_least(lacking, on.get(node, ()))
                    for lacking in self._find_lacking(future, node)
                ),
                default=math.inf,
            )
            for node in nodes
        }
        ranked = sorted(least.items(), key=lambda one: one[1])
        return {node: number for node, number in ranked if number < math.inf}

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
                break
            self._advance(0, 'Preparing servers')
            some = ranked[start : start + _AT_ONCE]
            leaving = [
                plans.make_leaving(one, one.host)
                for node in some
                for one in self._on.get(node, ())
            ]
            made = departures.prepare(self._places, leaving, self._not_to)
            self._movables = {
                **self._movables,
                **{uuid: self._allow(one) for uuid, one in made.items()},
            }
            with self._begin(came):
                self._takers += filter(self._may_take, some)
            self._able -= {*some} - {*self._takers}

    def _allow(
        self, prepared: movable.Movable | Exception
    ) -> movable.Movable | Exception:
        """Return a server, or why the plan is not to move it."""
        if (
            isinstance(prepared, Exception)
            or prepared.method == movable.LIVE
            or self._is_cold
            or prepared.why_cold == plan_format.STOPPED
        ):
            return prepared
        return admission.NotMovable(
            'it runs, and nova moves it only cold (--cold allows that)', ''
        )

    def _may_take(self, node: str) -> bool:
        with self._cloud.fork() as future:
            for one in self._list_movable(future, node):
                prepared = self._movables[one.uuid]
                typing.cast(movable.Migration, prepared).leave(future)
            return self._find_on(node) is not None

    def _list_movable(
        self, future: fork.Fork, node: str
    ) -> list[servers.Size]:
        """Return the servers that may leave a host."""
        return [
            server
            for server in self._on.get(node, ())
            if server.uuid not in future.moved
            and not isinstance(self._movables[server.uuid], Exception)
        ]

    # Which servers leave them.

    def _find_each(
        self, future: fork.Fork, count: int
    ) -> Iterator[tuple[str, Sequence[plans.Leaving]]]:
        """Yield the host of each new server, and who leaves it before."""
        while (rest := count - len(self._room_on)) > 0:
            self._places.barred, self._places.aims = self._elsewhere, ()
            target = self._places.find(self._coming.prepare(self._turn))
            if target is not None:
                yield target.uuid, []
                continue
            on = {one: self._list_movable(future, one) for one in self._takers}
            least = self._order(future, on, on)
            next_ones = [*least][: rest + 1]
            best: tuple[str, Sequence[plans.Leaving]] | None = None
            for node, number in least.items():
                if best and number >= len(best[1]):
                    break
                self._advance(0, f'Trying {self._cloud.states[node].host}')
                self._aim(node, next_ones)
                leaving = self._try(node, number)
                if leaving and (not best or len(leaving) < len(best[1])):
                    best = node, leaving
            if best is None:
                return
            self._aim(best[0], next_ones)
            yield best

    def _aim(self, node: str, following: Iterable[str]) -> None:
        """Set where the servers of a host go first, and then."""
        taken = frozenset(self._taken)
        later = frozenset(following) - {node} - taken
        never = self._never
        self._places.aims = [
            taken.union(self._able, never),
            taken.union(later, never),
            later | never,
            never,
        ]

    def _try(self, node: str, least: float) -> Sequence[plans.Leaving]:
        """Return who leaves a host so that it takes a new server, if so."""
        moved: list[plans.Leaving] = []
        with self._cloud.fork() as trial:
            standing = self._list_movable(trial, node)
            while self._find_on(node) is None:
                if not standing:
                    return []
                lacking = min(
                    self._find_lacking(trial, node), key=len, default={}
                )
                one = max(standing, key=lambda one: _rank_size(lacking, one))
                standing.remove(one)
                leaving = plans.make_leaving(one, one.host)
                if self._send(trial, [leaving]):
                    moved.append(leaving)
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
            for server in leaving
            for move in planner.try_(
                self._places, future, [server], self._movables, lambda _: 0
            )[0]
        ]

    def _is_enough(self, node: str, leaving: Sequence[plans.Leaving]) -> bool:
        with self._cloud.fork() as trial:
            moves = self._send(trial, leaving)
            return len(moves) == len(leaving) and bool(self._find_on(node))

    # What is in the way.

    def _explain(self) -> Iterator[str]:
        """Yield sentences on why no more fit, in the fork with the moves."""
        yield self._coming.explain().sentence
        yield from self._compare_largest()
        why = collections.Counter(
            f'{refused}'
            if isinstance(refused, admission.NotMovable)
            else messages.say_error(refused)
            for refused in self._movables.values()
            if isinstance(refused, Exception)
        )
        for said, number in why.most_common(_MOST_REASONS):
            yield (
                f'{messages.count("server", number)} of the hosts that were '
                f'looked at cannot be moved: {said}.'
            )
        if self._cloud.providers.served.keys() - self._cloud.states.keys():
            yield 'Servers whose host only nova can choose were not moved.'
        yield (
            'Chains were not tried: moving a third server so that a second '
            'can go.'
        )
        if self._able - {*self._takers}:
            yield (
                f'Only the {len(self._takers)} hosts that need the fewest '
                'moves were tried.'
            )

    def _compare_largest(self) -> Iterator[str]:
        """Yield a sentence on a resource class of which no host has enough."""
        get_room = self._cloud.providers.get_room
        rooms = [*map(get_room, self._cloud.states.keys() - self._elsewhere)]
        for form in self._coming.shared.resources[:1]:
            for name, amount in form.merged_resources().items():
                most = max(
                    (one[name]['capacity'] for one in rooms if name in one),
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
    lacking: Mapping[str, int], server: servers.Size
) -> tuple[float, float]:
    """Return how much of what is lacking a server has; of equals the least."""
    share = sum(
        min(_get_size(server, name), amount) / amount
        for name, amount in lacking.items()
    )
    size = sum(
        _get_size(server, name) / amount for name, amount in lacking.items()
    )
    # Where nothing is lacking, something else than room refuses.
    return (share, -size) if lacking else (0, server.memory_mb)


def _get_size(server: servers.Size, name: str) -> float:
    """Return what a server takes of a resource class; inf if not known."""
    return getattr(server, _SIZES[name]) if name in _SIZES else math.inf
