# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of moves."""

from collections.abc import Collection
from collections.abc import Generator
from collections.abc import Sequence
import dataclasses
import itertools
import time

from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_progress
from nova_ext_sched.osc import moves_words
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_plan import Result

#: Seconds between two looks at moves under way.
SECONDS = 2

#: The number of servers in ERROR from which no further move begins.
MOST_IN_ERROR = 3

#: Makes a move, step by step; returns whether it did not fail.
_Making = Generator[None, None, bool]


@dataclasses.dataclass
class Run:
    """Makes moves, and stops at the first that fails.

    A move's ``result`` is up to date at any time. A run recognizes the moves
    of an earlier run by nova's records and keeps no other state, so a run that
    was killed can be continued.

    :param progress: reports each move
    :param is_dry: whether nothing is changed in nova
    :param keeps_going: whether a failed move holds up only the moves that need
        it, until :data:`MOST_IN_ERROR` servers are in ERROR
    :param skipped: UUIDs of servers that are not to be moved
    """

    plan: moves_plan.Plan
    cloud: moves_cloud.Cloud
    progress: moves_progress.Progress
    is_dry: bool = False
    keeps_going: bool = False
    skipped: Collection[str] = ()

    def carry_out(self, at_once: int = 1) -> bool:
        """Make the moves; return whether none failed.

        After a failure it still waits for the moves under way.

        :param at_once: the most moves of a batch that are under way together
        """
        is_fine = True
        for _, moves in itertools.groupby(
            self.plan.moves, lambda one: one.batch
        ):
            is_fine = self._make_batch([*moves], at_once) and is_fine
            if not (is_fine or self._goes_on()):
                break
        if not (is_fine or self.is_dry):
            self._finish_begun()
        return is_fine

    def _finish_begun(self) -> None:
        """Finish moves that an earlier run began and this one did not reach.

        A new plan would not know them, and leave their migrations unconfirmed.
        """
        for move in self.plan.moves:
            if move.result != Result.NOT_TRIED or move.server in self.skipped:
                continue
            making = moves_making.Making(move, self.plan, self.cloud)
            try:
                is_under_way = making.is_under_way()
            except moves_cloud.ERRORS:
                # The first failure is the one to report.
                return
            if is_under_way:
                for _ in self._make(move):
                    time.sleep(SECONDS)

    def _make_batch(
        self, moves: Sequence[moves_plan.Move], at_once: int
    ) -> bool:
        todo, is_fine = [*moves], True
        going: list[_Making] = []

        def go_on(making: _Making) -> None:
            nonlocal is_fine
            try:
                next(making)
            except StopIteration as exc:
                going.remove(making)
                is_fine = exc.value and is_fine

        while True:
            for making in [*going]:
                go_on(making)
            while (
                (is_fine or self._goes_on()) and todo and len(going) < at_once
            ):
                move = todo.pop(0)
                if self._is_held_up(move):
                    self.progress.end(move)
                    continue
                going.append(self._make(move))
                go_on(going[-1])
            if not going:
                return is_fine
            time.sleep(SECONDS)

    def _goes_on(self) -> bool:
        """Return whether further moves begin after a failure."""
        if self.is_dry:
            # It reports the state of every move.
            return True
        in_error = sum(one.is_in_error for one in self.plan.moves)
        return self.keeps_going and in_error < MOST_IN_ERROR

    def _is_held_up(self, move: moves_plan.Move) -> bool:
        """Return whether a move is skipped, or needs one that is not done."""
        if move.server in self.skipped:
            move.result, move.reason = Result.LEFT_OUT, 'by --skip'
            return True
        if self.is_dry:
            return False
        moves = self.plan.moves
        missing = [turn for turn in move.needs if not moves[turn - 1].is_over]
        if missing:
            move.reason = f'it depends on move {missing[0]}'
        return bool(missing)

    def _make(self, move: moves_plan.Move) -> _Making:
        """Make or finish a move; return whether it did not fail.

        Yields while nova is at work.
        """
        making = moves_making.Making(move, self.plan, self.cloud, self.is_dry)
        try:
            move.result = yield from making.take_steps(
                lambda reason: self.progress.wait(move, reason)
            )
        except moves_plan.Stopped as exc:
            move.result, move.reason, move.remedy = (
                exc.result,
                str(exc),
                exc.remedy,
            )
        except moves_cloud.ERRORS as exc:
            move.result, move.reason = (
                Result.FAILED,
                moves_words.say_fault(exc),
            )
            move.remedy = (
                Remedy.RUN_AGAIN if waiting.is_away(exc) else Remedy.FIX
            )
        self.progress.end(move)
        return move.result != Result.FAILED
