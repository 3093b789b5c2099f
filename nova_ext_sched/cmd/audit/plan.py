# SPDX-License-Identifier: Apache-2.0

"""An order of moves after which the servers found violate no policy.

Each server is asked about as nova-scheduler would be when its turn comes,
with the moves before it counted (:mod:`.destinations`), and goes to the host
that the scheduler prefers then.

1. Servers that violate a policy whatever stands beside them, round after round
   until a round moves none: what one leaves, another may take.
2. Servers that violate a policy only for the members of their server group
   that stand beside them, those that violate most policies first, each only
   if it still violates one. Then 1 again, until neither moves any.
3. Where servers may make room: for a server that found no place, others leave
   a host that refuses it for them alone. Then 1 again.

No server moves twice.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import dataclasses
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import host_manager
from nova_ext_sched.cmd.audit import movable
from nova_ext_sched.cmd.audit import policies
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.cmd.explain import document
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies as explain_policies
from nova_ext_sched.policy import anti_affinity

# Servers that are asked to make room for one.
_MOST_ASKED = 50

# Causes of which it is said what lifting them would free.
_MOST_HELPS = 3

# Causes that keep every move from hosts: it stays in its cell, and leaves its
# host.
_OF_MOVES = frozenset((explain_policies.CELL.name, funnel.IGNORED_HOST))

#: The cause of a server that nova would not move wherever it went.
STATE = 'state'


@dataclasses.dataclass(eq=False)
class Violation:
    """A server that violates policies where it stands.

    :ivar policies: their names
    :ivar reason: why it has no place, or empty; ``cause`` is the same in a
        word, and ``helps`` what would help
    """

    server: servers.Server
    host: str
    policies: Sequence[str]
    reason: str = ''
    cause: str = ''
    helps: str = ''


class Move(typing.NamedTuple):
    """One move of a plan.

    :ivar server: UUID
    :ivar project: ID
    :ivar kind: ``live`` or ``cold``
    :ivar policies: those that the server violates; empty where it makes room
    :ivar room_for: the UUID of the server for which it makes room, or empty
    """

    server: str
    name: str
    project: str
    source: str
    target: str
    kind: str
    policies: Sequence[str]
    room_for: str


class Plan:
    """Moves, one after the other, and what they do not mend.

    :param scheduler: its moves are those of the plan
    :param judging: the policies that the servers violate
    :param most: how many moves there may be; None for any number
    :param make_room: whether servers that violate nothing may move
    :param project: the ID of the project whose servers may move
    :ivar moves: in their order
    :ivar without_place: servers that violate a policy after them
    :ivar mended: servers that violate none after the moves of others
    :ivar left_over: servers that were not tried, for ``most``
    """

    def __init__(
        self,
        scheduler: host_manager.HostManager,
        judging: policies.Policies,
        most: int | None = None,
        make_room: bool = False,
        project: str | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._policies = judging
        self._most = most
        self._may_make_room = make_room
        self._project = project
        self._destinations = destinations.Destinations(scheduler)
        self._found: set[str] = set()
        self._movables: dict[str, movable.Movable | Exception] = {}
        self.moves: list[Move] = []
        self.without_place: list[Violation] = []
        self.mended: list[Violation] = []
        self.left_over: list[Violation] = []

    def make(
        self,
        found: Sequence[Violation],
        advance: Callable[[], object] = lambda: None,
    ) -> None:
        """Make the plan.

        :param advance: called for each server of which it is known whether
            it moves
        """
        self._advance = advance
        self._found = {one.server.uuid for one in found}
        rest = sorted(
            found, key=lambda one: (self._is_beside(one), -len(one.policies))
        )
        while self._has_turns() and (
            self._go_round([one for one in rest if not self._is_beside(one)])
            or self._go_round([one for one in rest if self._is_beside(one)])
            or any(map(self._make_room, self._pending(rest)))
        ):
            pass
        for one in self._pending(rest):
            if self._has_turns():
                self._explain(one)
                self.without_place.append(one)
            else:
                self.left_over.append(one)
            advance()

    def _has_turns(self, number: int = 1) -> bool:
        """Return whether so many more moves may be planned."""
        return self._most is None or len(self.moves) + number <= self._most

    def _is_beside(self, one: Violation) -> bool:
        """Return whether the servers beside it decide."""
        return self._policies.counting.issuperset(one.policies)

    def _pending(self, found: Sequence[Violation]) -> Iterator[Violation]:
        """Yield those that violate a policy still; note those that do not."""
        for one in found:
            if one.server.uuid in self._scheduler.moved or one in self.mended:
                continue
            if self._is_beside(one) and not self._violates(one):
                self.mended.append(one)
                self._advance()
                continue
            yield one

    def _go_round(self, found: Sequence[Violation]) -> bool:
        """Move each server once at most; return whether any moved."""
        before = len(self.moves)
        for one in self._pending(found):
            if not self._has_turns():
                break
            if self._move(one.server.uuid, one.policies):
                self._advance()
        return len(self.moves) > before

    def _violates(self, one: Violation) -> bool:
        """Return whether it violates a policy after the moves so far."""
        moved = self._scheduler.moved
        state = copy.copy(one.server.host_state)
        state.instances = {
            uuid: None
            for uuid in (*state.instances, *moved)
            if moved.get(uuid, one.host) == one.host
            and uuid != one.server.uuid
        }
        judged = self._policies.judge(
            one.server._replace(host_state=state), moved
        )
        return any(
            isinstance(found, Exception) or not found.passes
            for _, found in judged
        )

    def _move(
        self, uuid: str, violated: Sequence[str] = (), room_for: str = ''
    ) -> bool:
        """Plan the move of a server; return whether it has a place."""
        try:
            mine = self._prepare(uuid)
            spec_obj = mine.spec_obj.obj_clone()
            _, states = self._destinations.judge(spec_obj)
        except nova_scheduler.PlacementFailed:
            raise
        except Exception:
            # It is named among those without a place.
            return False
        instance = mine.instance
        source = self._scheduler.find_state(instance.host, instance.node)
        for state in states:
            if mine.may_move_to(source, state):
                self._scheduler.move(spec_obj, instance, mine.held, state)
                self.moves.append(
                    Move(
                        uuid,
                        mine.name,
                        instance.project_id,
                        instance.host,
                        state.host,
                        mine.kind,
                        violated,
                        room_for,
                    )
                )
                return True
        return False

    def _prepare(self, uuid: str) -> movable.Movable:
        """Return a server that may move; nova is asked once.

        :raises Exception: whatever nova raises where it cannot
        """
        if uuid not in self._movables:
            try:
                self._movables[uuid] = movable.Movable(
                    nova_scheduler.context(), uuid, self._scheduler.placement
                )
            except Exception as exc:
                self._movables[uuid] = exc
        found = self._movables[uuid]
        if isinstance(found, Exception):
            raise found
        return found

    def _explain(self, one: Violation) -> None:
        """Note why a server has no place, and what would help."""
        try:
            mine = self._prepare(one.server.uuid)
            found, states = self._destinations.judge(
                mine.spec_obj.obj_clone(), whole=True
            )
        except movable.NotMovable as exc:
            one.cause, one.reason = STATE, f'nova cannot move it: {exc}'
            one.helps = 'a server that is active, paused or stopped can move'
            return
        except Exception as exc:
            one.cause, one.reason = 'fault', messages.describe(exc)
            return
        described = document.build(found, {}, detailed=())
        one.reason = described['answer']['sentence'].rstrip('.')
        one.cause = _get_cause(described) or 'hypervisor'
        if states:
            one.reason = 'the hypervisors of all hosts left are older'
        # Nobody asks to give up a policy that is to be kept, nor the cell.
        freed = [
            by
            for by in described['answer']['freed']
            if (self._policies.on | _OF_MOVES).isdisjoint(by['causes'])
        ]
        one.helps = ', or '.join(
            f'{" and ".join(by["causes"])} on '
            + messages.count('host', by['hosts'])
            for by in freed[:_MOST_HELPS]
        )
        if freed:
            one.cause = ' and '.join(freed[0]['causes'])

    def _make_room(self, one: Violation) -> bool:
        """Let others leave a host for a server; return whether it moved."""
        if not self._may_make_room:
            return False
        uuid = one.server.uuid
        try:
            mine = self._prepare(uuid)
            found, _ = self._destinations.judge(
                mine.spec_obj.obj_clone(), whole=True
            )
        except Exception:
            return False
        amounts = _get_amounts(mine)
        lifted = {*amounts, anti_affinity.DECLARATION.name}
        fixed = found.find_fixed()
        leaving = [
            self._find_leaving(host, amounts)
            for host, causes in sorted(found.causes.items())
            if causes <= lifted
            and host not in fixed
            and host in self._scheduler.states
        ]
        # One that is enough, and else several of one host.
        turns = [[other] for _, other in sorted(itertools.chain(*leaving))]
        turns += [[other for _, other in host] for host in leaving]
        saved, planned = self._scheduler.save(), len(self.moves)
        for turn in turns[:_MOST_ASKED]:
            for other in turn:
                if self._has_turns(2) and self._move(other, room_for=uuid):
                    if self._move(uuid, one.policies):
                        self._advance()
                        return True
            if len(self.moves) > planned:
                self._scheduler.restore(saved)
                del self.moves[planned:]
        return False

    def _find_leaving(
        self, host: str, amounts: Mapping[str, int]
    ) -> list[tuple[tuple[object, ...], str]]:
        """Return the servers of a host that may make room.

        Those come first that alone leave enough, and of them the least.

        :param host: its UUID
        :param amounts: what is wanted of it, by resource class
        :returns: with each what to sort it by
        """
        found = []
        inventories = self._scheduler.providers.get_inventories(host)
        wanted = {'allocations': {host: {'resources': amounts}}}
        for uuid in self._scheduler.states[host].instances:
            if uuid in self._found or uuid in self._scheduler.moved:
                continue
            try:
                other = self._prepare(uuid)
            except Exception:
                # It stays.
                continue
            if self._project not in (None, other.instance.project_id):
                continue
            left = self._scheduler.claims.copy()
            left.learn({host: {'resources': inventories}})
            left.give_back(other.held)
            lacks = (
                not amounts.keys() <= inventories.keys()
                or left.find_lacking(wanted)
            )
            size = tuple(sorted(_get_amounts(other).items()))
            found.append(((bool(lacks), size), uuid))
        return sorted(found)


def _get_cause(described: dict[str, typing.Any]) -> str | None:
    """Return the cause of a refusal in a word.

    What keeps every move from hosts is the cause only where nothing else is:
    of many cells, one has few of the hosts.
    """
    if described['answer']['end'] is None:
        for reason in described['answer']['reasons']:
            if reason['cause'] not in _OF_MOVES:
                return str(reason['cause'])
    return document.get_cause(described)


def _get_amounts(mine: movable.Movable) -> dict[str, int]:
    """Return what a server holds, by resource class."""
    found: collections.Counter[str] = collections.Counter()
    for one in mine.held['allocations'].values():
        found.update(one['resources'])
    return dict(found)
