# SPDX-License-Identifier: Apache-2.0

"""Plans moves, for servers that must leave their hosts.

Each server is asked about as nova-scheduler would be when its turn comes,
with the moves before it made in a fork, and goes to the host that the
scheduler prefers then (:mod:`.destinations`).

1. First go those that must leave whatever the others do, round after round
   until a round moves none: the room that one leaves, another may take.
2. Then those that may stay once others have left, each only if it must still
   leave. Then 1 again, until neither moves any.

No server moves twice.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import math
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import batches
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stuck

_Plan = typing.TypeVar('_Plan', bound=plans.Plan)

# Policies of server groups whose members are not to stand apart.
_TOGETHER = ('affinity', 'soft-affinity')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Goal:
    """What a plan is for.

    :ivar leaving: servers that must leave their hosts
    :ivar may_stay: of those that may stay once others have left, what says
        whether one may, by UUID; it takes the hosts of the servers that
        moved, by their UUIDs
    :ivar barred: names of hosts that get no server
    :ivar never_given_up: the names of policies that nobody is asked to give up
    :ivar hardest_first: whether servers with the fewest hosts go first; else
        they go as they are listed
    :ivar to_be_empty: names of hosts that are to be empty. One that was
        deleted softly has its host until it is deleted for good
    :ivar migrating: servers that stand elsewhere, and hold one of these
    """

    leaving: Sequence[plans.Leaving]
    may_stay: Mapping[str, Callable[[Mapping[str, str]], bool]] = (
        dataclasses.field(default_factory=dict)
    )
    barred: Set[str] = frozenset()
    never_given_up: Collection[str] = ()
    hardest_first: bool = True
    to_be_empty: Set[str] = frozenset()
    migrating: Sequence[plans.Stuck] = ()


#: Prepares servers for their moves, before anything is supposed: takes them,
#: and the names of hosts that get none.
Prepare = Callable[[Sequence[plans.Leaving], Set[str]], movable.Movables]


def plan(
    places: destinations.Destinations,
    goal: Goal,
    prepare: Prepare,
    advance: Callable[[], object] = lambda: None,
) -> plans.Plan:
    """Return moves, and why other servers have no place.

    :param places: where servers may go
    :param advance: called for each server of which it is known whether it
        moves
    :raises placement.PlacementFailed: placement does not answer
    """
    places.begin(goal.barred)
    movables = prepare(goal.leaving, goal.barred)
    leaving = goal.leaving
    if goal.hardest_first:
        leaving = put_hardest_first(leaving, movables, places.count)
    with places.cloud.fork() as future:
        future.count_under_way()
        # A copy where the fork has its own state already: moves change it.
        at_first = [
            claims.copy_state(state) if uuid in future.touched else state
            for uuid, state in places.cloud.states.items()
        ]
        rounds = _Rounds(
            places,
            movables,
            future,
            goal.may_stay,
            advance,
            _find_last(leaving, movables),
        )
        moves = rounds.make(leaving)
        after = [*places.cloud.states.values()]
        groups = compare_groups(at_first, after, movables, moves)
        explainer = stuck.StuckExplainer(
            places, movables, goal.never_given_up, future
        )
        without_place = explainer.explain(rounds.remaining)
    return leave_out_gone(
        places.cloud,
        plans.Plan(
            moves=batches.link(batches.number(moves, movables), movables),
            without_place=[*without_place, *goal.migrating],
            mended_by_others=rounds.mended,
            groups=groups,
            to_be_empty=sorted(goal.to_be_empty),
            room_for_last=rounds.room_for_last,
        ),
        softly=not goal.to_be_empty,
        standing={one.server for one in goal.leaving},
    )


def try_(
    places: destinations.Destinations,
    future: fork.Fork,
    leaving: Sequence[plans.Leaving],
    movables: movable.Movables,
    count: Callable[[movable.Movable], float],
) -> tuple[list[plans.Move], list[plans.Leaving]]:
    """Let servers go in a fork that is open, the hardest first.

    :param count: as of :func:`put_hardest_first`
    :returns: the moves, all of one batch, and those that find no host
    :raises placement.PlacementFailed: placement does not answer
    """
    rounds = _Rounds(places, movables, future)
    moves = rounds.make(put_hardest_first(leaving, movables, count))
    return moves, rounds.remaining


def put_hardest_first(
    leaving: Iterable[plans.Leaving],
    movables: movable.Movables,
    count: Callable[[movable.Movable], float],
) -> list[plans.Leaving]:
    """Return servers with the fewest hosts first; of these, the largest.

    Those that nova does not move as they are go last, in the same order.

    :param count: returns how many hosts one may go to, about
    :raises placement.PlacementFailed: placement does not answer
    """

    def rank(server: plans.Leaving) -> tuple[float, ...]:
        prepared: movable.Movable | Exception | None = movables[server.server]
        is_refused = isinstance(prepared, admission.NotMovable)
        if isinstance(prepared, admission.NotMovable):
            prepared = prepared.then
        # Without a request it has no place, and takes none from others.
        number, size = math.inf, None
        if prepared is not None and not isinstance(prepared, Exception):
            try:
                number, size = count(prepared), prepared.spec_obj.flavor
            except placement.PlacementFailed:
                raise
            except Exception:
                # It fails again when its turn comes, and says why.
                pass
        sizes = (-size.memory_mb, -size.vcpus) if size else ()
        return is_refused, number, *sizes

    return sorted(leaving, key=rank)


@dataclasses.dataclass
class _Rounds:
    """Servers that go, round after round, in a fork that is open.

    :param may_stay: as of :class:`Goal`
    :param advance: as of :func:`plan`
    :param last: the UUID of the server of which the room is counted
    :ivar remaining: servers that cannot be moved
    :ivar mended: those that may stay
    :ivar room_for_last: how many hosts that one could go to when it was asked
        last, about; None where it was not
    """

    places: destinations.Destinations
    movables: movable.Movables
    future: fork.Fork
    may_stay: Mapping[str, Callable[[Mapping[str, str]], bool]] = (
        dataclasses.field(default_factory=dict)
    )
    advance: Callable[[], object] = lambda: None
    last: str = ''
    remaining: list[plans.Leaving] = dataclasses.field(default_factory=list)
    mended: list[plans.Leaving] = dataclasses.field(default_factory=list)
    room_for_last: int | None = None

    def make(self, leaving: Sequence[plans.Leaving]) -> list[plans.Move]:
        """Return the moves of servers, which are asked in this order.

        :raises placement.PlacementFailed: placement does not answer
        """
        must = [one for one in leaving if one.server not in self.may_stay]
        may = [one for one in leaving if one.server in self.may_stay]
        moves: list[plans.Move] = []
        while made := self._go_round(must) or self._go_round(may):
            moves += made
            moved = {move.server for move in made}
            must = [one for one in must if one.server not in moved]
            may = [one for one in may if one.server not in moved]
        for server in (*must, *may):
            may_stay = self._may_stay(server)
            (self.mended if may_stay else self.remaining).append(server)
            self.advance()
        return moves

    def _may_stay(self, server: plans.Leaving) -> bool:
        ask = self.may_stay.get(server.server)
        return ask is not None and ask(self.future.moved)

    def _go_round(self, leaving: Sequence[plans.Leaving]) -> list[plans.Move]:
        """Move each server that must leave still and has a place now."""
        return [
            move
            for server in leaving
            if not self._may_stay(server) and (move := self._move(server))
        ]

    def _move(self, server: plans.Leaving) -> plans.Move | None:
        """Move a server where it has a place now."""
        prepared = self.movables[server.server]
        if isinstance(prepared, Exception):
            return None
        if server.server == self.last:
            self.room_for_last = self._count(prepared)
        target = self.places.send(prepared, self.future)
        if target is None:
            return None
        self.advance()
        # nova takes a server to a host that is named only with the host's own
        # providers.
        is_named = destinations.uses_only(
            target.allocation_candidates[0], target.uuid, self.places.cloud
        )
        return plans.Move(
            **vars(server),
            to=target.host if is_named else None,
            expected=target.host,
            method=prepared.method,
            why_cold=prepared.why_cold,
            paused=prepared.is_paused,
        )

    def _count(self, prepared: movable.Movable) -> int:
        try:
            return self.places.count(prepared)
        except placement.PlacementFailed:
            raise
        except Exception:
            # It fails again when its turn comes, and says why.
            return 0


def _find_last(
    leaving: Sequence[plans.Leaving], movables: movable.Movables
) -> str:
    """Return the UUID of the last that nova moves; empty if there is none."""
    going = (
        server.server
        for server in reversed(leaving)
        if not isinstance(movables[server.server], Exception)
    )
    return next(going, '')


def compare_groups(
    before: Sequence[typing.Any],
    after: Sequence[typing.Any],
    movables: movable.Movables,
    moves: Iterable[plans.Move],
) -> list[plans.Group]:
    """Return the groups of servers that moved and stand less apart.

    :param before: the nova HostStates before the moves; ``after``, those then
    """
    groups = {}
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        group = prepared.spec_obj.instance_group
        if group and group.policy not in _TOGETHER:
            groups[group.uuid] = group
    closer = []
    for uuid, group in groups.items():
        hosts, hosts_before = (
            {
                state.host: selection.domains_of(state.aggregates)
                for state in states
                if not state.instances.keys().isdisjoint(group.members)
            }
            for states in (after, before)
        )
        numbers = (
            len(hosts),
            len(hosts_before),
            len(frozenset().union(*hosts.values())),
            len(frozenset().union(*hosts_before.values())),
        )
        if numbers[0] < numbers[1] or numbers[2] < numbers[3]:
            name = messages.clean(group.name)
            closer.append(plans.Group(uuid, name, *numbers))
    return closer


def leave_out_gone(
    cloud: snapshot.Snapshot,
    plan: _Plan,
    softly: bool = True,
    standing: Set[str] = frozenset(),
) -> _Plan:
    """Return a plan without the servers that have left meanwhile.

    Its other moves are as valid: a server that is gone has left its host too,
    and comes to none.

    ====================================  ==============================
    a server                              is of the plan
    ====================================  ==============================
    that is gone                          deleted_meanwhile
    whose deletion has not ended, in a    without_place: nova does not
    migration or without a place          move it
    that was to leave a host, and is on   moved_meanwhile
    another that is not to be empty
    any other                             what it was
    ====================================  ==============================

    :param softly: as of :func:`.gone.look`
    :param standing: UUIDs of servers on the hosts that they are to leave
    """
    there = (*plan.moves, *plan.without_place, *plan.mended_by_others)
    by_uuid = {one.server: one for one in there}
    changed = gone.look(cloud, by_uuid.keys(), softly)
    deleting = {
        one.server: make_deleting(one, changed.deleting[one.server])
        for one in (*plan.moves, *plan.without_place)
        if one.server in changed.deleting
        and getattr(one, 'method', '') != movable.EVACUATE
    }
    moved = {
        uuid
        for uuid in standing & changed.hosts.keys() & by_uuid.keys()
        if changed.hosts[uuid] not in (by_uuid[uuid].host, *plan.to_be_empty)
    } - deleting.keys()
    left = changed.gone | moved | deleting.keys()

    def keep(among: Iterable[typing.Any]) -> list[typing.Any]:
        return [one for one in among if one.server not in left]

    def name(uuids: Iterable[str]) -> list[plans.Leaving]:
        return [plans.take_leaving(by_uuid[uuid]) for uuid in sorted(uuids)]

    kept = dataclasses.replace(
        plan,
        moves=keep(plan.moves),
        without_place=[*keep(plan.without_place), *deleting.values()],
        mended_by_others=keep(plan.mended_by_others),
        deleted_meanwhile=name(changed.gone),
        moved_meanwhile=name(moved),
    )
    return dataclasses.replace(kept, services=cloud.services_of(kept.hosts))


def make_deleting(one: plans.Leaving, is_stuck: bool) -> plans.Stuck:
    """Return a server that has its host until its deletion ends.

    :param is_stuck: whether nova has done nothing for long
    """
    return plans.Stuck(
        **vars(plans.take_leaving(one)),
        reason='its deletion has not ended for an hour'
        if is_stuck
        else 'it is being deleted',
        cause=plans.STATE,
        would_help=admission.say_how_to_delete(one.server, is_stuck),
    )
