# SPDX-License-Identifier: Apache-2.0

"""An order of moves, for servers that must leave their hosts.

Each server is asked about as nova-scheduler would be when its turn comes,
with the moves before it counted (:mod:`.destinations`), and goes to the host
that the scheduler prefers then.

1. Servers that must leave whatever the others do, round after round until a
   round moves none: what one leaves, another may take.
   Where :attr:`Order.is_hardest_first`, those with the fewest hosts come
   first, and of these the largest.
2. Servers that may stay once others have left, each only if it must leave
   still. Then 1 again, until neither moves any.

No server moves twice.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import chosen
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

# Causes of which it is said what lifting them would free.
_MOST_HELPS = 3

# Causes that keep every move from hosts: it stays in its cell, and leaves its
# host.
_OF_MOVES = frozenset((reasons.CELL.name, refusals.IGNORED_HOST))


@dataclasses.dataclass
class Order:
    """Finds the moves.

    :param scheduler: what nova-scheduler has in memory; it counts the moves
    :param policies: the names of those that nobody is asked to give up
    :param may_stay: whether a server need not leave any more, after moves:
        the hosts of the servers that moved, by their UUIDs
    :param prepare: returns what :class:`.movable.Movable` does, by the UUID of
        a server
    :param found: finds where servers go
    :param is_hardest_first: whether servers that must leave have an order
    :param explains: whether to say why a server has no place
    :param advance: called for each server of which it is known whether it
        moves
    :ivar movables: what ``prepare`` returned or raised, by UUID
    """

    scheduler: snapshot.Snapshot
    policies: Collection[str]
    may_stay: Callable[[plans.Leaving, Mapping[str, str]], bool] = (
        lambda _one, _moved: False
    )
    advance: Callable[[], object] = lambda: None
    prepare: Callable[[str], typing.Any] | None = None
    found: destinations.Destinations | None = None
    is_hardest_first: bool = False
    explains: bool = True

    def __post_init__(self) -> None:
        self._destinations = self.found or destinations.Destinations(
            self.scheduler
        )
        self.movables: dict[str, typing.Any] = {}

    def make(
        self, must: Sequence[plans.Leaving], may: Sequence[plans.Leaving] = ()
    ) -> plans.Plan:
        """Return the moves, and what has no place.

        :param must: servers that must leave whatever the others do
        :param may: servers that must leave unless ``may_stay``
        :raises placement.PlacementFailed: placement does not answer
        """
        for one in (*must, *may):
            self.movables[one.server] = self._prepare(one.server)
        if self.is_hardest_first:
            must = sorted(must, key=self._rank)
        before = list(self.scheduler.states.values())
        moves: list[plans.Move] = []
        while new := self._go_round(must) or self._go_round(may, True):
            moves += new
        moved = self._destinations.moved
        mended = [
            one
            for one in may
            if one.server not in moved and self.may_stay(one, moved)
        ]
        stuck = [
            self._explain(one)
            for one in (*must, *may)
            if one.server not in moved and one not in mended
        ]
        for _ in (*mended, *stuck):
            self.advance()
        return plans.Plan(moves, stuck, mended, self._compare_groups(before))

    def _compare_groups(
        self, before: Sequence[typing.Any]
    ) -> list[plans.Group]:
        """Return the groups of servers that moved and stand less apart.

        :param before: the nova HostStates before the moves
        """
        groups = {
            group.uuid: group
            for uuid in self._destinations.moved
            if (group := self.movables[uuid].spec_obj.instance_group)
        }
        after = list(self.scheduler.states.values())
        found = []
        for uuid, group in groups.items():
            hosts, hosts_before = (
                {
                    state.host: chosen.domains_of(state.aggregates)
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
                found.append(
                    plans.Group(uuid, messages.clean(group.name), *numbers)
                )
        return found

    def _prepare(self, uuid: str) -> typing.Any:
        """Return a server that may move, or why nova cannot move it."""
        try:
            if self.prepare:
                return self.prepare(uuid)
            return movable.Movable(self.scheduler, uuid)
        except placement.PlacementFailed:
            raise
        except Exception as exc:
            return exc

    def _rank(self, one: plans.Leaving) -> tuple[float, ...]:
        """Return what the hardest to place has least of."""
        mine = self.movables[one.server]
        try:
            number = self._destinations.count(mine)
            size = mine.spec_obj.flavor
        except placement.PlacementFailed:
            raise
        except Exception:
            # It has no place, and takes none from others.
            return (math.inf,)
        return number, -size.memory_mb, -size.vcpus

    def _go_round(
        self, leaving: Sequence[plans.Leaving], may_stay: bool = False
    ) -> list[plans.Move]:
        """Move each server that has not moved and has a place now.

        :param may_stay: whether those stay that may
        """
        moved = self._destinations.moved
        return [
            move
            for one in leaving
            if one.server not in moved
            and not (may_stay and self.may_stay(one, moved))
            and (move := self._move(one))
        ]

    def _move(self, one: plans.Leaving) -> plans.Move | None:
        """Move a server where it has a place now."""
        mine = self.movables[one.server]
        if isinstance(mine, Exception):
            return None
        try:
            target = self._destinations.find(mine)
        except placement.PlacementFailed:
            raise
        except Exception:
            # It is named among those without a place.
            return None
        if target is None:
            return None
        self._destinations.move(mine, target)
        self.advance()
        return plans.Move(**vars(one), to=target.host, kind=mine.kind)

    def _explain(self, one: plans.Leaving) -> plans.Stuck:
        """Return why a server has no place, and what would help."""
        helps = name = ''
        if not self.explains:
            return plans.Stuck(**vars(one), reason='', cause='', would_help='')
        try:
            mine = self.movables[one.server]
            if isinstance(mine, Exception):
                raise mine
            found, states = self._destinations.explain(mine)
        except placement.PlacementFailed:
            raise
        except movable.NotMovable as exc:
            reason, cause = f'nova cannot move it: {exc}', 'state'
            helps = exc.first
        except Exception as exc:
            reason, cause = messages.describe(exc), plans.FAULT
        else:
            reason, cause, name, helps = self._describe_refusals(found)
            if states:
                reason = 'the hypervisors of all hosts left are older'
        return plans.Stuck(
            **vars(one),
            reason=reason,
            cause=cause,
            name_of_cause=name,
            would_help=helps,
        )

    def _describe_refusals(
        self, found: matrix.Matrix
    ) -> tuple[str, str, str, str]:
        """Return what refuses all hosts, in a word, its name, what helps."""
        described = document.build(found, {}, detailed=())
        answer: dict[str, typing.Any] = described['answer']
        # Nobody asks to give up a policy that is to be kept, nor the cell.
        kept = _OF_MOVES.union(self.policies)
        freed = [by for by in answer['freed'] if by['cause'] not in kept]
        # What keeps every move from hosts is the cause only where nothing else
        # is: of many cells, one has few of the hosts.
        causes = [
            one['cause']
            for one in answer['reasons']
            if answer['end'] is None and one['cause'] not in _OF_MOVES
        ]
        # Hosts that are to be empty are disabled, which keeps nobody there.
        causes.sort(key=reasons.DISABLED.name.__eq__)
        cause, *_ = (
            *(by['cause'] for by in freed),
            *causes,
            answer['cause'] or 'hypervisor',
        )
        helps = ', or '.join(
            f'{by["cause"]} on {messages.count("host", by["hosts"])}'
            for by in freed[:_MOST_HELPS]
        )
        names = (
            name['name']
            for one in answer['reasons']
            for name in one['names']
            if one['cause'] == cause
        )
        return answer['sentence'].rstrip('.'), cause, next(names, ''), helps
