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

import argparse
import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import dataclasses
import itertools
import sys
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import progress
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import movable
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


def make(
    auditing: auditor.Auditor, wanted: argparse.Namespace
) -> dict[str, typing.Any]:
    """Return a plan, as :meth:`Plan.make`."""
    total = auditing.count()
    with progress.bar(sys.stderr, 'Judging servers', total) as advance:
        judged = auditing.judge(advance)
        found = [server for server in judged if server.policies]
    with progress.bar(sys.stderr, 'Planning moves', len(found)) as advance:
        return Plan(auditing, wanted, advance).make(found)


@dataclasses.dataclass
class Plan:
    """Moves, one after the other, and what they do not mend.

    :param auditing: the auditor that finds the servers
    :param wanted: the arguments of the command: ``most`` moves, or None;
        whether to ``make_room``, and of which ``project``, or None for all
    :param advance: called for each server of which it is known whether it
        moves
    """

    auditing: auditor.Auditor
    wanted: argparse.Namespace
    advance: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self._scheduler = self.auditing.scheduler
        self._policies = self.auditing.policies
        self._destinations = destinations.Destinations(self._scheduler)
        self._found: set[str] = set()
        self._movables: dict[str, movable.Movable | Exception] = {}
        self._moves: list[dict[str, typing.Any]] = []
        self._mended: list[servers.Server] = []

    def make(self, found: Sequence[servers.Server]) -> dict[str, typing.Any]:
        """Make the plan.

        :param found: servers that violate a policy
        :returns: what the document has of it, apart from its sentence
        """
        self._found = {one.uuid for one in found}
        rest = sorted(
            found, key=lambda one: (self._is_beside(one), -len(one.policies))
        )
        while self._has_turns() and (
            self._go_round([one for one in rest if not self._is_beside(one)])
            or self._go_round([one for one in rest if self._is_beside(one)])
            or any(map(self._make_room, self._pending(rest)))
        ):
            pass
        without_place, left_over = [], []
        for one in self._pending(rest):
            if self._has_turns():
                without_place.append({**_describe(one), **self._explain(one)})
            else:
                left_over.append(_describe(one))
            self.advance()
        return {
            'moves': self._moves,
            'without_place': without_place,
            'mended_by_others': list(map(_describe, self._mended)),
            'left_over': left_over,
        }

    def _has_turns(self, number: int = 1) -> bool:
        """Return whether so many more moves may be planned."""
        most = self.wanted.most
        return most is None or len(self._moves) + number <= most

    def _is_beside(self, one: servers.Server) -> bool:
        """Return whether the servers beside it decide."""
        return all(
            self._policies.on[name].counts_group for name in one.policies
        )

    def _pending(
        self, found: Sequence[servers.Server]
    ) -> Iterator[servers.Server]:
        """Yield those that violate a policy still; note those that do not."""
        for one in found:
            if one.uuid in self._destinations.moved or one in self._mended:
                continue
            if self._is_beside(one) and not self._violates(one):
                self._mended.append(one)
                self.advance()
                continue
            yield one

    def _go_round(self, found: Sequence[servers.Server]) -> bool:
        """Move each server once at most; return whether any moved."""
        before = len(self._moves)
        for one in self._pending(found):
            if not self._has_turns():
                break
            if self._move(one.uuid, one.policies):
                self.advance()
        return len(self._moves) > before

    def _violates(self, one: servers.Server) -> bool:
        """Return whether it violates a policy after the moves so far."""
        moved = self._destinations.moved
        state = copy.copy(one.host_state)
        state.instances = {
            uuid: None
            for uuid in (*state.instances, *moved)
            if moved.get(uuid, one.host) == one.host and uuid != one.uuid
        }
        now = dataclasses.replace(one, host_state=state)
        return any(self._policies.judge(now, moved))

    def _move(
        self,
        uuid: str,
        violated: Sequence[str] = (),
        room_for: str | None = None,
    ) -> bool:
        """Plan the move of a server; return whether it has a place.

        :param violated: the policies that it violates
        :param room_for: the UUID of the server for which it makes room
        """
        try:
            mine = self._prepare(uuid)
            _, targets = self._destinations.judge(mine.spec_obj)
        except nova_scheduler.PlacementFailed:
            raise
        except Exception:
            # It is named among those without a place.
            return False
        instance = mine.instance
        here = instance.host, instance.node
        states = self._scheduler.states.values()
        of_host = (s for s in states if (s.host, s.nodename) == here)
        source = next(of_host, None)
        for target in targets:
            if mine.may_move_to(source, target):
                self._destinations.move(mine, source, target)
                self._moves.append(
                    {
                        'server': uuid,
                        'name': messages.clean(mine.name),
                        'project': instance.project_id,
                        'from': instance.host,
                        'to': target.host,
                        'kind': mine.kind,
                        'policies': list(violated),
                        'room_for': room_for,
                    }
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

    def _explain(self, one: servers.Server) -> dict[str, str]:
        """Return why a server has no place, and what would help."""
        helps = ''
        try:
            mine = self._prepare(one.uuid)
            found, states = self._destinations.judge(mine.spec_obj, True)
        except movable.NotMovable as exc:
            reason, cause = f'nova cannot move it: {exc}', 'state'
            helps = 'a server that is active, paused or stopped can move'
        except Exception as exc:
            reason, cause = messages.describe(exc), 'fault'
        else:
            reason, cause, helps = self._describe_refusals(found)
            if states:
                reason = 'the hypervisors of all hosts left are older'
        return {'reason': reason, 'cause': cause, 'would_help': helps}

    def _describe_refusals(self, found: funnel.Funnel) -> tuple[str, str, str]:
        """Return what refuses all hosts, in a word too, and what helps."""
        described = document.build(found, {}, detailed=())
        reason = described['answer']['sentence'].rstrip('.')
        # Nobody asks to give up a policy that is to be kept, nor the cell.
        freed = [
            by
            for by in described['answer']['freed']
            if (self._policies.on.keys() | _OF_MOVES).isdisjoint(by['causes'])
        ]
        # What keeps every move from hosts is the cause only where nothing else
        # is: of many cells, one has few of the hosts.
        causes = [
            one['cause']
            for one in described['answer']['reasons']
            if described['answer']['end'] is None
            and one['cause'] not in _OF_MOVES
        ]
        cause = (
            ' and '.join(freed[0]['causes'])
            if freed
            else (*causes, document.get_cause(described) or 'hypervisor')[0]
        )
        helps = ', or '.join(
            f'{" and ".join(by["causes"])} on '
            + messages.count('host', by['hosts'])
            for by in freed[:_MOST_HELPS]
        )
        return reason, cause, helps

    def _make_room(self, one: servers.Server) -> bool:
        """Let others leave a host for a server; return whether it moved."""
        if not self.wanted.make_room:
            return False
        uuid = one.uuid
        try:
            mine = self._prepare(uuid)
            found, _ = self._destinations.judge(mine.spec_obj, True)
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
        for turn in turns[:_MOST_ASKED]:
            saved, planned = self._destinations.save(), len(self._moves)
            for other in turn:
                if self._has_turns(2) and self._move(other, room_for=uuid):
                    if self._move(uuid, one.policies):
                        self.advance()
                        return True
            self._destinations.restore(saved)
            del self._moves[planned:]
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
            if uuid in self._found or uuid in self._destinations.moved:
                continue
            try:
                other = self._prepare(uuid)
            except Exception:
                # It stays.
                continue
            if self.wanted.project not in (None, other.instance.project_id):
                continue
            left = self._destinations.claims.copy()
            left.learn({host: {'resources': inventories}})
            left.give_back(other.held)
            lacks = (
                not amounts.keys() <= inventories.keys()
                or left.find_lacking(wanted)
            )
            size = tuple(sorted(_get_amounts(other).items()))
            found.append(((bool(lacks), size), uuid))
        return sorted(found)


def _describe(one: servers.Server) -> dict[str, typing.Any]:
    return {
        'server': one.uuid,
        'name': messages.clean(one.name),
        'project': one.project_id,
        'host': one.host,
        'policies': one.policies,
    }


def _get_amounts(mine: movable.Movable) -> collections.Counter[str]:
    """Return what a server holds, by resource class."""
    held = mine.held['allocations'].values()
    return sum(
        (collections.Counter(one['resources']) for one in held),
        collections.Counter[str](),
    )
