# SPDX-License-Identifier: Apache-2.0

"""An order of moves, for servers that must leave their hosts.

Each server is asked about as nova-scheduler would be when its turn comes,
with the moves before it made in a fork, and goes to the host that the
scheduler prefers then (:mod:`.destinations`).

1. Servers that must leave whatever the others do, round after round until a
   round moves none: what one leaves, another may take.
2. Servers that may stay once others have left, each only if it must leave
   still. Then 1 again, until neither moves any.

No server moves twice.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
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
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stages

# Causes of which it is said what lifting them would free.
_MOST_HELPS = 3

# Policies of server groups that do not want to stand apart.
_TOGETHER = ('affinity', 'soft-affinity')

# The cause where conductor compares the hosts that the scheduler leaves.
_HYPERVISOR = 'hypervisor'

#: Servers that are prepared, or why nova cannot move them, by UUID.
Movables = Mapping[str, movable.Movable | Exception]


def prepare(
    leaving: Iterable[plans.Leaving],
    make: Callable[[str], movable.Movable],
    advance: Callable[[], object] = lambda: None,
) -> Movables:
    """Prepare servers for their moves, before anything is supposed.

    :param make: prepares one, by its UUID
    :param advance: called after each
    :raises placement.PlacementFailed: placement does not answer
    """
    found: dict[str, movable.Movable | Exception] = {}
    for one in leaving:
        try:
            found[one.server] = make(one.server)
        except placement.PlacementFailed:
            raise
        except Exception as exc:
            # It is named among those without a place.
            found[one.server] = exc
        advance()
    return found


def put_hardest_first(
    leaving: Iterable[plans.Leaving],
    movables: Movables,
    count: Callable[[movable.Movable], float],
) -> list[plans.Leaving]:
    """Return servers with the fewest hosts first; of these, the largest.

    Those that nova does not move as they are go last, in the same order.

    :param count: returns how many hosts one may go to, about
    :raises placement.PlacementFailed: placement does not answer
    """

    def rank(one: plans.Leaving) -> tuple[float, ...]:
        mine: movable.Movable | Exception | None = movables[one.server]
        is_refused = isinstance(mine, admission.NotMovable)
        if isinstance(mine, admission.NotMovable):
            mine = mine.then
        # It has no place, and takes none from others.
        number, size = math.inf, None
        if mine is not None and not isinstance(mine, Exception):
            try:
                number, size = count(mine), mine.spec_obj.flavor
            except placement.PlacementFailed:
                raise
            except Exception:
                # Its turn says why.
                pass
        sizes = (-size.memory_mb, -size.vcpus) if size else ()
        return is_refused, number, *sizes

    return sorted(leaving, key=rank)


@dataclasses.dataclass
class Order:
    """Finds the moves.

    :param places: where servers may go
    :param movables: what :func:`prepare` returned
    :param advance: called for each server of which it is known whether it
        moves
    :param before: called before a server is asked where it can go
    """

    places: destinations.Destinations
    movables: Movables
    advance: Callable[[], object] = lambda: None
    before: Callable[[str, movable.Movable], object] = lambda _uuid, _mine: (
        None
    )

    def __post_init__(self) -> None:
        self._moved: set[str] = set()
        self._stage = stages.Stage()

    @property
    def cloud(self) -> snapshot.Snapshot:
        """What there is, with the moves."""
        return self.places.cloud

    def make(
        self,
        future: fork.Fork,
        must: Sequence[plans.Leaving],
        may: Sequence[plans.Leaving] = (),
        may_stay: Callable[[plans.Leaving], bool] = lambda _one: False,
    ) -> plans.Plan:
        """Make the moves in a fork, and return them, and what is left.

        :param future: the fork that is open
        :param must: servers that must leave whatever the others do, in the
            order in which they are asked
        :param may: servers that must leave unless ``may_stay``
        :param may_stay: whether a server need not leave any more
        :returns: without the reasons of what has no place, and the groups
        :raises placement.PlacementFailed: placement does not answer
        """
        moves: list[plans.Move] = []
        while new := self._go_round(future, must) or self._go_round(
            future, may, may_stay
        ):
            moves += new
        mended = [
            one
            for one in may
            if one.server not in self._moved and may_stay(one)
        ]
        stuck = [
            plans.Stuck(**vars(one), reason='', cause='', would_help='')
            for one in (*must, *may)
            if one.server not in self._moved and one not in mended
        ]
        for _ in (*mended, *stuck):
            self.advance()
        return plans.Plan(moves, stuck, mended)

    def _go_round(
        self,
        future: fork.Fork,
        leaving: Sequence[plans.Leaving],
        may_stay: Callable[[plans.Leaving], bool] = lambda _one: False,
    ) -> list[plans.Move]:
        """Move each server that has not moved and has a place now."""
        return [
            move
            for one in leaving
            if one.server not in self._moved
            and not may_stay(one)
            and (move := self._move(future, one))
        ]

    def _move(
        self, future: fork.Fork, one: plans.Leaving
    ) -> plans.Move | None:
        """Move a server where it has a place now."""
        mine = self.movables[one.server]
        if isinstance(mine, Exception):
            return None
        self.before(one.server, mine)
        target = _go(self.places, future, mine)
        if target is None:
            return None
        self._moved.add(one.server)
        self.advance()
        # A request that names its host is for the host's own providers.
        is_named = destinations.uses_only(
            target.allocation_candidates[0], target.uuid, self.cloud
        )
        self._stage = self._stage.add(
            mine.spec_obj, one.host, target.host, is_named
        )
        return plans.Move(
            **vars(one),
            to=target.host if is_named else None,
            expected=target.host,
            kind=mine.method,
            stage=self._stage.number,
            why_cold=mine.why_cold,
        )


def _go(
    places: destinations.Destinations,
    future: fork.Fork,
    mine: movable.Movable,
) -> typing.Any:
    """Let a server go where it has a place now; return it, or None.

    :returns: the nova HostState
    :raises placement.PlacementFailed: placement does not answer
    """
    try:
        target = places.find(mine)
        if target is not None and mine.go(future, target):
            return target
    except placement.PlacementFailed:
        raise
    except Exception:
        # It is named among those without a place.
        pass
    return None


def compare_groups(
    before: Sequence[typing.Any],
    after: Sequence[typing.Any],
    movables: Movables,
    moves: Iterable[plans.Move],
) -> list[plans.Group]:
    """Return the groups of servers that moved and stand less apart.

    :param before: the nova HostStates before the moves; ``after``, those then
    """
    groups = {}
    for move in moves:
        mine = typing.cast(movable.Movable, movables[move.server])
        group = mine.spec_obj.instance_group
        if group and group.policy not in _TOGETHER:
            groups[group.uuid] = group
    found = []
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
            found.append(plans.Group(uuid, name, *numbers))
    return found


@dataclasses.dataclass
class StuckExplainer:
    """Says why servers have no place, and what would help.

    ===============================  =====================================
    a server                         what is said
    ===============================  =====================================
    that nova moves                  what refuses all hosts
    that nova does not move as it    that; and if it is known how it would
    is                               be moved otherwise, what refuses all
                                     hosts then, after the moves and after
                                     those before it have gone too
    that conductor refuses           that, as explain says it
    of which nobody could be asked   the fault
    ===============================  =====================================

    :param policies: the names of those that nobody is asked to give up
    :param future: the fork that is open, with the moves
    """

    places: destinations.Destinations
    movables: Movables
    policies: Collection[str]
    future: fork.Fork

    def explain(self, stuck: Iterable[plans.Stuck]) -> list[plans.Stuck]:
        """Return servers with the reasons.

        :raises placement.PlacementFailed: placement does not answer
        """
        return list(map(self._explain, stuck))

    def _explain(self, one: plans.Stuck) -> plans.Stuck:
        mine = self.movables[one.server]
        if isinstance(mine, admission.NotMovable):
            return self._explain_refused(one, mine)
        reason, cause, name, helps = self._ask(mine)
        return dataclasses.replace(
            one,
            reason=reason,
            cause=cause,
            name_of_cause=name,
            would_help=helps,
        )

    def _explain_refused(
        self, one: plans.Stuck, mine: admission.NotMovable
    ) -> plans.Stuck:
        reason, helps, then = f'nova cannot move it: {mine}', [mine.first], ''
        if mine.cause != plans.STATE:
            reason = f'nova refuses it in every state: {mine}'
        if isinstance(mine.then, Exception) or (
            mine.then and _go(self.places, self.future, mine.then) is None
        ):
            why, then, _, lifting = self._ask(mine.then)
            reason += f'. If it could: {why}'
            helps.append(lifting)
        return dataclasses.replace(
            one,
            reason=reason,
            cause=mine.cause,
            would_help='; then '.join(filter(None, helps)),
            cause_then=then,
        )

    def _ask(
        self, mine: movable.Movable | Exception
    ) -> tuple[str, str, str, str]:
        """Return what :meth:`_describe_refusals` does, or the fault."""
        found = matrix.Matrix({})
        left, refused = list[str](), ''
        try:
            if isinstance(mine, Exception):
                with explanation.conducting(found):
                    raise mine
            else:
                found, left = self.places.explain(mine)
                if left:
                    refused = mine.tell_refused(left)
        except placement.PlacementFailed:
            raise
        except Exception as exc:
            return messages.describe(exc), plans.FAULT, '', ''
        reason, cause, name, helps = self._describe_refusals(found)
        violated = self.future.ledger.find_violated(mine.uuid) if left else []
        if refused:
            reason, cause, name = refused, _HYPERVISOR, ''
        elif violated:
            cause, reason = explanation.describe_violated(violated)
            name, helps = '', f'{explanation.UNITS} of {cause}'
        elif found.unknown and not left:
            cause, name, helps = plans.NOT_KNOWN, '', ''
            [*_, reason] = found.remarks
            reason = f'{reason[0].lower()}{reason[1:].rstrip(".")}'
        elif left:
            reason = 'nova-scheduler leaves hosts, and can claim none of them'
            cause, name = plans.FAULT, ''
        return reason, cause, name, helps

    def _describe_refusals(
        self, found: matrix.Matrix
    ) -> tuple[str, str, str, str]:
        """Return what refuses all hosts, in a word, its name, what helps."""
        # Every server of a plan exists.
        described = document.build(found, {'server': True}, detailed=())
        answer: dict[str, typing.Any] = described['answer']
        # Nobody asks to give up a policy that is to be kept.
        freed = [
            by for by in answer['freed'] if by['cause'] not in self.policies
        ]
        cause = answer['cause'] or _HYPERVISOR
        helps = ', or '.join(by['act'] for by in freed[:_MOST_HELPS])
        names = (
            name['name']
            for one in answer['reasons']
            for name in one['names']
            if one['cause'] == cause
        )
        return answer['sentence'].rstrip('.'), cause, next(names, ''), helps


def plan_moves(
    places: destinations.Destinations,
    movables: Movables,
    policies: Collection[str],
    must: Sequence[plans.Leaving],
    may: Sequence[plans.Leaving] = (),
    may_stay: Callable[[plans.Leaving, Mapping[str, str]], bool] = (
        lambda _one, _moved: False
    ),
    advance: Callable[[], object] = lambda: None,
    before: Callable[[str, movable.Movable], object] = (
        lambda _uuid, _mine: None
    ),
) -> plans.Plan:
    """Return moves that are made in a fork, and why others are not.

    :param policies: see :class:`StuckExplainer`; the others as of
        :class:`Order`
    :param may_stay: takes the hosts of the servers that moved, too, by UUID
    :raises placement.PlacementFailed: placement does not answer
    """
    with places.cloud.fork() as future:
        future.count_under_way()
        # Moves change the states that are the fork's own already.
        at_first = [
            claims.copy_state(state) if uuid in future.touched else state
            for uuid, state in places.cloud.states.items()
        ]
        plan = Order(places, movables, advance, before).make(
            future, must, may, lambda one: may_stay(one, future.moved)
        )
        after = [*places.cloud.states.values()]
        moves = stages.link(plan.moves, movables)
        groups = compare_groups(at_first, after, movables, moves)
        explainer = StuckExplainer(places, movables, policies, future)
        stuck = explainer.explain(plan.without_place)
    return dataclasses.replace(
        plan, moves=moves, without_place=stuck, groups=groups
    )


def leave_out_gone(
    cloud: snapshot.Snapshot,
    plan: plans.Plan,
    softly: bool = True,
    to_be_empty: Collection[str] = (),
) -> plans.Plan:
    """Return a plan without the servers that were deleted meanwhile.

    Its other moves are as valid: a server that is gone has left its host too,
    and comes to none.

    :param softly: whether one that was deleted softly is gone
    :param to_be_empty: names of hosts
    """
    there = (*plan.moves, *plan.without_place, *plan.mended_by_others)
    every = {one.server: one for one in there}
    deleted = gone.find(cloud, every.keys(), softly)
    names = [field.name for field in dataclasses.fields(plans.Leaving)]
    moves = [one for one in plan.moves if one.server not in deleted]
    hosts = {name for one in moves for name in (one.host, one.expected)}
    return plans.Plan(
        moves,
        [one for one in plan.without_place if one.server not in deleted],
        [one for one in plan.mended_by_others if one.server not in deleted],
        plan.groups,
        [
            plans.Leaving(*(getattr(every[uuid], name) for name in names))
            for uuid in sorted(deleted)
        ],
        sorted(to_be_empty),
        cloud.services_of(hosts.union(to_be_empty)),
    )
