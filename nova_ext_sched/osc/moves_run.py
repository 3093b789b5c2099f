# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of moves."""

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
import dataclasses
import itertools
import time

from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc.moves_plan import Result
from nova_ext_sched.osc.moves_step import Step

#: How often nova is asked, in seconds; how long a migration may last, and how
#: long nova may take before it has one, and after.
SECONDS = 2
LONGEST = 4 * 3600
LOST = 600

#: What makes a move, step by step; returns whether it was made.
_Making = Generator[None, None, bool]


class _Stopped(Exception):
    """A move was not made; the text says why."""


@dataclasses.dataclass
class Run:
    """Makes moves, and stops at the first that is not made.

    What became of a move is in its ``result``, up to date at any time. What
    was done before is found again by what nova shows, and nothing else is
    kept: so a run that was killed goes on where it was.

    :param is_dry: whether nova is told nothing
    :param advance: called after each move
    """

    plan: moves_plan.Plan
    cloud: moves_cloud.Cloud
    is_dry: bool = False
    advance: Callable[[], object] = lambda: None

    def carry_out(self, at_once: int = 1) -> bool:
        """Make the moves; return whether each was made.

        What is under way when one fails is waited for.

        :param at_once: how many of a stage are under way at most
        """
        stages = itertools.groupby(self.plan.moves, lambda one: one.stage)
        return all(self._make_stage([*moves], at_once) for _, moves in stages)

    def _make_stage(
        self, moves: Sequence[moves_plan.Move], at_once: int
    ) -> bool:
        left, is_fine = [*moves], True
        going: list[_Making] = []

        def go_on(one: _Making) -> None:
            nonlocal is_fine
            try:
                next(one)
            except StopIteration as exc:
                going.remove(one)
                is_fine = exc.value and is_fine
                self.advance()

        while True:
            for one in [*going]:
                go_on(one)
            while is_fine and left and len(going) < at_once:
                going.append(self._make(left.pop(0)))
                go_on(going[-1])
            if not going:
                return is_fine
            time.sleep(SECONDS)

    def _make(self, move: moves_plan.Move) -> _Making:
        """Make a move, or what is left of it; return whether it was made.

        Yields where nova is at work.
        """
        try:
            move.result = yield from self._take_steps(move)
        except _Stopped as exc:
            move.reason = str(exc)
        except moves_cloud.ERRORS as exc:
            if self._is_gone(move):
                move.result = Result.GONE
                return True
            move.reason = getattr(exc, 'details', None) or str(exc)
        else:
            return True
        move.result = Result.FAILED
        return False

    def _is_gone(self, move: moves_plan.Move) -> bool:
        """Return whether a server is deleted that nova did not move."""
        try:
            return moves_step.is_gone(self.cloud.read_server(move.server))
        except moves_cloud.ERRORS:
            return False

    def _take_steps(
        self, move: moves_plan.Move
    ) -> Generator[None, None, Result]:
        """Return what became of a move; see :meth:`_make`.

        :raises _Stopped: it is not made
        """
        cloud, has_begun, before = self.cloud, False, None
        asked = last = time.monotonic()
        while True:
            # In this order: where a migration has ended, the server shows it.
            found = cloud.read_migrations(move.server)
            server = cloud.read_server(move.server)
            own = moves_step.find_own(
                move, found, cloud.user, self.plan.time, before
            )
            step, reason = moves_step.decide(
                move, server, found, own, has_begun
            )
            if step == Step.MOVED and own and cloud.holds(own):
                # nova gives the room back after the server is there.
                step = Step.WAIT
            if step == Step.BEGIN:
                self._check_evacuation(move)
                if self.is_dry:
                    return Result.PLANNED
                before = {one.id for one in found}
                cloud.begin(move)
            elif step == Step.CONFIRM and not self.is_dry:
                cloud.confirm(move)
            elif step not in (Step.WAIT, Step.CONFIRM):
                break
            move.result, has_begun = Result.UNDER_WAY, True
            if self.is_dry:
                return move.result
            now = time.monotonic()
            if own and moves_step.is_under_way(own):
                last = now
            if now - asked > LONGEST or now - last > LOST:
                raise _Stopped('it does not end')
            yield
        if step == Step.GONE or server is None:
            return Result.GONE
        if step == Step.MOVED:
            return Result.MOVED if has_begun else Result.THERE
        if step == Step.ELSEWHERE and move.turn == len(self.plan.moves):
            # No other move takes for granted where it is.
            move.reason = reason
            return Result.ELSEWHERE
        if step == Step.ELSEWHERE:
            reason += f', not on {move.expected}: make a new plan'
        if step == Step.FAILED:
            reason = cloud.find_reason(move.server)
            if not reason and server.fault:
                reason = server.fault['message']
            reason = reason or f'it is on {server.compute_host}'
        raise _Stopped(reason)

    def _check_evacuation(self, move: moves_plan.Move) -> None:
        """Refuse an evacuation of a host that may run its servers yet.

        :raises _Stopped: nobody said that it is dead
        """
        if move.kind != 'evacuate':
            return
        service = self.cloud.read_services().get(move.host)
        if service is None or not service.is_forced_down:
            raise _Stopped(
                f'nova-compute of {move.host} is not forced down: make sure '
                f'that the host is off, then openstack compute service set '
                f'--down {move.host} nova-compute'
            )
