# SPDX-License-Identifier: Apache-2.0

"""Plans the moves of servers that must leave their hosts.

When a server's turn comes, the moves before it are made in a fork, and it goes
to the host that nova-scheduler prefers then (:mod:`.destinations`).

1. First go the servers that must leave whatever the others do, round after
   round until a round moves none: one server may need the room of another.
2. Then the servers that may stay once others have left, each only if it must
   still leave. Then 1 again, until neither moves any.

No server moves twice.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import functools
import math
import statistics
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stuck

# A host is crowded that gets so many, and so many times what the others get on
# average.
_FEWEST = 10
_TIMES = 4
# The weighers are asked with this arrival, and whenever that number doubles.
_FIRST_ASKED = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Goal:
    """The goal of a plan: its servers, and the test of its end.

    :ivar leaving: servers that must leave their hosts
    :ivar may_stay: for servers that may stay once others have left, the test
        whether one may, by UUID; it takes the hosts of the servers that
        moved, by their UUIDs
    :ivar barred: names of hosts that get no server
    :ivar never_given_up: names of policies for which no acts are proposed
    :ivar hardest_first: whether servers go by priority, and within a priority
        those with the fewest destinations first; else as they are listed
    :ivar to_be_empty: names of hosts that are to be empty. A soft-deleted
        server stays on its host until it is deleted for good
    :ivar migrating: servers on other hosts that still hold such a host
    :ivar tells_crowded: whether the plan tells which hosts get far more
        servers than others. For that the weighers are asked again on the way
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
    tells_crowded: bool = True


#: Prepares servers for their moves, before a fork is opened. Takes the
#: servers, and the names of hosts that get none.
Prepare = Callable[[Sequence[plans.Leaving], Set[str]], movable.Movables]


def plan(
    places: destinations.Destinations,
    goal: Goal,
    prepare: Prepare,
    advance: Callable[[], object] = lambda: None,
    at_end: Callable[[fork.Fork], object] = lambda _: None,
) -> plans.Plan:
    """Plan moves; return them, and why other servers have no destination.

    :param places: finds the destinations of servers
    :param advance: called for each server once it is known whether it
        moves
    :param at_end: called with the fork in which all moves are made
    :raises placement.PlacementFailed: placement does not answer
    """
    cloud, barred = places.cloud, places.nodes_of(goal.barred)
    movables = prepare(goal.leaving, goal.barred)
    leaving = goal.leaving
    if goal.hardest_first:
        leaving = put_hardest_first(
            leaving, movables, lambda one: places.count(one, barred)
        )
    noted = _Crowding(places, barred) if goal.tells_crowded else None
    with cloud.fork() as future:
        future.count_under_way()
        before = future.copy_states()
        rounds = _Rounds(
            places, movables, barred, goal.may_stay, advance, noted
        )
        made = rounds.make(leaving)
        at_end(future)
        explainer = stuck.StuckExplainer(
            places, movables, goal.never_given_up, barred
        )
        without_place = explainer.explain(made.remaining)
        plan = plans.Plan(
            moves=made.moves,
            without_place=[*without_place, *goal.migrating],
            mended_by_others=made.mended,
            to_be_empty=sorted(goal.to_be_empty),
            room_for_last=made.room_for_last,
            crowded=noted.find(made.moves) if noted else [],
            remarks=places.priorities.remarks,
        )
        return ending.finish(
            cloud,
            plan,
            before,
            movables,
            softly=not goal.to_be_empty,
            standing={one.server for one in goal.leaving},
        )


def try_(
    places: destinations.Destinations,
    leaving: Sequence[plans.Leaving],
    movables: movable.Movables,
    barred: Set[str],
    counts_last: bool = True,
) -> tuple[list[plans.Move], list[plans.Leaving]]:
    """Move servers in the open fork, in this order.

    :param barred: UUIDs of hosts that are no destinations
    :param counts_last: whether to ask first, as :func:`plan` does, which hosts
        take the last server: those that refuse it then are asked no more, so a
        trial of what is planned asks it, too
    :returns: the moves, all of one batch, and servers that cannot be placed
    :raises placement.PlacementFailed: placement does not answer
    """
    rounds = _Rounds(places, movables, barred, counts_last=counts_last)
    made = rounds.make(leaving)
    return made.moves, made.remaining


def find_remaining(
    places: destinations.Destinations,
    leaving: Iterable[plans.Leaving],
    movables: movable.Movables,
    barred: Set[str],
    count: Callable[[movable.Movable, Set[str]], float] | None = None,
) -> list[plans.Leaving]:
    """Return the servers that cannot be placed, in a fork that is dropped.

    :param barred: see :func:`try_`, which raises the same
    :param count: as :func:`put_hardest_first` takes it, but called with the
        barred hosts, too; by default :meth:`.destinations.Destinations.count`
    """
    count = count or places.count
    with places.cloud.fork():
        ordered = put_hardest_first(
            leaving, movables, lambda one: count(one, barred)
        )
        _, remaining = try_(places, ordered, movables, barred)
    return remaining


def put_hardest_first(
    leaving: Iterable[plans.Leaving],
    movables: movable.Movables,
    count: Callable[[movable.Movable], float],
) -> list[plans.Leaving]:
    """Sort servers: by priority, then the fewest hosts, then the largest.

    Servers that nova does not move in their present state go last, in the
    same order.

    :param count: returns how many hosts one may go to, about
    :raises placement.PlacementFailed: placement does not answer
    """

    def rank(server: plans.Leaving) -> tuple[float, ...]:
        prepared: movable.Movable | Exception | None = movables[server.server]
        is_refused = isinstance(prepared, admission.NotMovable)
        if isinstance(prepared, admission.NotMovable):
            prepared = prepared.then
        # Without a request it has no place, and takes none from others.
        number, size, first = math.inf, None, 0
        if prepared is not None and not isinstance(prepared, Exception):
            first = prepared.priority
            counted = movable.attempt(functools.partial(count, prepared))
            # If that fails, it fails again when its turn comes, and says why.
            if not isinstance(counted, Exception):
                number, size = counted, prepared.spec_obj.flavor
        sizes = (-size.memory_mb, -size.vcpus) if size else ()
        return is_refused, -first, number, *sizes

    return sorted(leaving, key=rank)


@dataclasses.dataclass
class _Made:
    """The moves that were made, and the servers that they leave.

    :ivar remaining: servers that cannot be moved
    :ivar mended: servers that can stay
    :ivar room_for_last: how many hosts the last server could go to when it was
        asked about last, about; None where it was not
    """

    moves: list[plans.Move] = dataclasses.field(default_factory=list)
    remaining: list[plans.Leaving] = dataclasses.field(default_factory=list)
    mended: list[plans.Leaving] = dataclasses.field(default_factory=list)
    room_for_last: int | None = None


class _Crowding:
    """Explains why one host gets far more servers of a plan than others.

    nova's weighers can prefer a host the more, the more servers it has taken
    or given away: PCIWeigher prefers one whose device was just given back.
    When such a host fills up, the reason of its choice is gone; so the
    weighers are asked on the way, with each doubling of the number that it has
    got.

    :param barred: UUIDs of hosts that are no destinations
    """

    def __init__(
        self, places: destinations.Destinations, barred: Set[str]
    ) -> None:
        self._places, self._barred = places, barred
        self._arrived: collections.Counter[str] = collections.Counter()
        self._weighers: dict[str, collections.Counter[str]] = {}

    def note(self, prepared: movable.Movable, target: typing.Any) -> None:
        """Note that a server is about to go to a nova HostState.

        :raises placement.PlacementFailed: placement does not answer
        """
        self._arrived[target.host] += 1
        doubled, rest = divmod(self._arrived[target.host], _FIRST_ASKED)
        # 1, 2, 4, 8 have one bit.
        if rest or doubled.bit_count() != 1:
            return
        weigher = movable.attempt(
            functools.partial(
                self._places.find_weigher, prepared, target, self._barred
            )
        )
        if isinstance(weigher, Exception):
            # The server goes there all the same.
            return
        preferred = self._weighers.setdefault(
            target.host, collections.Counter()
        )
        preferred[weigher] += 1

    def find(self, moves: Sequence[plans.Move]) -> list[plans.Crowded]:
        """Return the hosts that get far more servers than others."""
        counts = collections.Counter(move.expected for move in moves)
        numbers = [number for _, number in counts.most_common()]
        crowded = []
        for place, (host, number) in enumerate(counts.most_common()):
            others = numbers[place + 1 :]
            if (
                not others
                or number < _FEWEST
                or number < _TIMES * statistics.mean(others)
            ):
                break
            weighers = self._weighers.get(host, collections.Counter())
            [(weigher, _)] = weighers.most_common(1) or [('', 0)]
            crowded.append(
                plans.Crowded(messages.clean(host), number, others[0], weigher)
            )
        return crowded


@dataclasses.dataclass(frozen=True)
class _Rounds:
    """Moves servers in the open fork, round after round.

    :param barred: UUIDs of hosts that are no destinations
    :param may_stay: see :class:`Goal`
    :param advance: see :func:`plan`
    :param noted: notes where servers go; None where nobody asks
    :param counts_last: whether to count the room of the last server
    """

    places: destinations.Destinations
    movables: movable.Movables
    barred: Set[str]
    may_stay: Mapping[str, Callable[[Mapping[str, str]], bool]] = (
        dataclasses.field(default_factory=dict)
    )
    advance: Callable[[], object] = lambda: None
    noted: _Crowding | None = None
    counts_last: bool = True

    def make(self, leaving: Sequence[plans.Leaving]) -> _Made:
        """Make the moves of servers, which are asked in this order.

        :raises placement.PlacementFailed: placement does not answer
        """
        made = _Made()
        last = _find_last(leaving, self.movables) if self.counts_last else ''
        must = [one for one in leaving if one.server not in self.may_stay]
        may = [one for one in leaving if one.server in self.may_stay]
        while moves := (
            self._go_round(must, made, last) or self._go_round(may, made, last)
        ):
            made.moves += moves
            moved = {move.server for move in moves}
            must = [one for one in must if one.server not in moved]
            may = [one for one in may if one.server not in moved]
        for server in (*must, *may):
            may_stay = self._may_stay(server)
            (made.mended if may_stay else made.remaining).append(server)
            self.advance()
        return made

    def _may_stay(self, server: plans.Leaving) -> bool:
        ask = self.may_stay.get(server.server)
        return ask is not None and ask(self.places.cloud.future.moved)

    def _go_round(
        self, leaving: Sequence[plans.Leaving], made: _Made, last: str
    ) -> list[plans.Move]:
        """Move each server that must still leave and has a place now.

        :param made: gets the room of the last server
        :param last: UUID of the server whose room is counted; empty for none
        """
        moves = []
        for server in leaving:
            prepared = self.movables[server.server]
            if self._may_stay(server) or isinstance(prepared, Exception):
                continue
            if server.server == last:
                made.room_for_last = self._count(prepared)
            note = functools.partial(self._note, prepared)
            target = self.places.send(prepared, self.barred, note)
            if target is not None:
                self.advance()
                moves.append(self.places.make_move(server, prepared, target))
        return moves

    def _note(self, prepared: movable.Movable, target: typing.Any) -> None:
        if self.noted is not None:
            self.noted.note(prepared, target)

    def _count(self, prepared: movable.Movable) -> int:
        count = functools.partial(self.places.count, prepared, self.barred)
        number = movable.attempt(count)
        return 0 if isinstance(number, Exception) else number


def _find_last(
    leaving: Sequence[plans.Leaving], movables: movable.Movables
) -> str:
    """Return the UUID of the last server that nova moves; empty if none."""
    going = (
        server.server
        for server in reversed(leaving)
        if not isinstance(movables[server.server], Exception)
    )
    return next(going, '')
