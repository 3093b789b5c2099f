# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of moves."""

from collections.abc import Collection
from collections.abc import Generator
from collections.abc import Sequence
import dataclasses
import datetime
import itertools
import time
import typing

from nova_ext_sched import plan_format
from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc.moves_plan import End
from nova_ext_sched.osc.moves_plan import Result
from nova_ext_sched.osc.moves_step import Step

#: How often nova is asked, in seconds; how long a migration may last, and how
#: long nova may take before it has one, and after.
SECONDS = 2
LONGEST = 4 * 3600
LOST = 600
#: How long nova may take to give back the room that a server left, and after
#: how long a request that nobody answered has left no trace.
HELD = 60
QUIET = 30

#: What makes a move, step by step; returns whether it was made.
_Making = Generator[None, None, bool]

# What nova says where the scheduler refuses the host: others took the place,
# or closed it.
_TAKEN = 'No valid host was found'

# What is to be done where a move ends so.
_ENDS = {
    Step.STOP: End.FIX,
    Step.BUSY: End.RUN_AGAIN,
    Step.CANCELLED: End.RUN_AGAIN,
    Step.FAILED: End.FIX,
    Step.BROKEN: End.NEW_PLAN,
    Step.ELSEWHERE: End.NEW_PLAN,
}


class _Stopped(Exception):
    """A move was not made; the text says why.

    :ivar end: what is to be done
    """

    def __init__(self, text: str, end: End, result: Result) -> None:
        super().__init__(text)
        self.end, self.result = end, result


def _stop(
    text: str, end: End = End.FIX, result: Result = Result.FAILED
) -> _Stopped:
    return _Stopped(text, end, result)


class Progress:
    """Told what becomes of moves; by default it says nothing."""

    def end(self, move: moves_plan.Move) -> None:
        """A move has ended, however."""

    def wait(self, move: moves_plan.Move, reason: str) -> None:
        """A move waits for something; called at each look."""


@dataclasses.dataclass
class Run:
    """Makes moves, and stops at the first that is not made.

    What became of a move is in its ``result``, up to date at any time. What
    was done before is found again by what nova shows, and nothing else is
    kept: so a run that was killed goes on where it was.

    :param is_dry: whether nova is told nothing
    :param progress: told of each move
    :param keeps_going: whether a move that fails holds up those alone that
        need it
    :param skipped: UUIDs of servers that are not moved
    """

    plan: moves_plan.Plan
    cloud: moves_cloud.Cloud
    is_dry: bool = False
    progress: Progress = dataclasses.field(default_factory=Progress)
    keeps_going: bool = False
    skipped: Collection[str] = ()

    def carry_out(self, at_once: int = 1) -> bool:
        """Make the moves; return whether none failed.

        What is under way when one fails is waited for.

        :param at_once: how many of a batch are under way at most
        """
        is_fine = True
        for _, moves in itertools.groupby(
            self.plan.moves, lambda one: one.batch
        ):
            is_fine = self._make_stage([*moves], at_once) and is_fine
            if not is_fine and not self.keeps_going:
                break
        return is_fine

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

        while True:
            for one in [*going]:
                go_on(one)
            while (
                (is_fine or self.keeps_going) and left and len(going) < at_once
            ):
                move = left.pop(0)
                if self._is_held_up(move):
                    self.progress.end(move)
                    continue
                going.append(self._make(move))
                go_on(going[-1])
            if not going:
                return is_fine
            time.sleep(SECONDS)

    def _is_held_up(self, move: moves_plan.Move) -> bool:
        """Return whether a move is left out, or needs one that is."""
        if move.server in self.skipped:
            move.result, move.reason = Result.LEFT_OUT, 'by --skip'
            return True
        if self.is_dry:
            return False
        moves = self.plan.moves
        missing = [turn for turn in move.needs if not moves[turn - 1].is_over]
        if missing:
            move.reason = f'it needs turn {missing[0]}'
        return bool(missing)

    def _make(self, move: moves_plan.Move) -> _Making:
        """Make a move, or what is left of it; return whether it is no failure.

        Yields where nova is at work.
        """
        try:
            move.result = yield from self._take_steps(move)
        except _Stopped as exc:
            move.result, move.reason, move.end = (
                exc.result,
                str(exc),
                exc.end,
            )
        except moves_cloud.ERRORS as exc:
            move.result, move.reason = Result.FAILED, _describe(exc)
            is_away = waiting.is_away(exc)
            move.end = End.RUN_AGAIN if is_away else End.FIX
        self.progress.end(move)
        return move.result != Result.FAILED

    def _take_steps(
        self, move: moves_plan.Move
    ) -> Generator[None, None, Result]:
        """Return what became of a move; see :meth:`_make`.

        :raises _Stopped: it is not made
        """
        cloud, has_begun = self.cloud, False
        before: set[int] | None = None
        # When nova was asked, without an answer; and what it refused.
        unanswered: float | None = None
        refused: tuple[Step, Exception] | None = None
        asked = last = self._now()
        while True:
            # In this order: where a migration has ended, the server shows it.
            found = cloud.read_migrations(move.server)
            server = cloud.read_server(move.server)
            own = moves_step.find_own(
                move, found, cloud.user, self.plan.time, before
            )
            # The request arrived.
            has_begun = has_begun or (unanswered is not None and bool(own))
            step, reason = moves_step.decide(
                move, server, found, own, has_begun
            )
            now = self._now()
            if step in moves_step.BEGINNINGS:
                if refused:
                    if step == refused[0]:
                        raise self._say_refused(move, step, refused[1])
                    # It has changed between a look and the request.
                    refused = None
                self._check_evacuation(move)
                move.actual = moves_step.BEGINNINGS[step] or move.method
                if self.is_dry:
                    move.reason = _say_changed(move)
                    return Result.PLANNED
                if unanswered is None or now - unanswered >= QUIET:
                    before = {one.id for one in found}
                    try:
                        cloud.begin(move)
                        has_begun, last = True, now
                    except moves_cloud.ERRORS as exc:
                        if waiting.is_away(exc):
                            unanswered = now
                        else:
                            refused = step, exc
                            continue
                reason = 'it is about to begin'
                if not has_begun:
                    reason = 'nova-api has not answered that it begins'
            elif step == Step.CONFIRM:
                if not self.is_dry:
                    self._confirm(move)
                has_begun = True
                reason = 'its migration is being confirmed'
            elif step == Step.WAIT:
                has_begun = True
                if own and moves_step.is_under_way(own):
                    reason = f'its {own.migration_type} is {own.status}'
                elif server:
                    task = server.task_state or server.status
                    reason = f'its task is {task}'
            elif step == Step.MOVED and own and cloud.holds(own):
                # nova gives the room back after the server is there.
                if has_begun:
                    is_late = now - last > HELD
                else:
                    is_late = now - asked > HELD or _is_old(own)
                if is_late or self.is_dry:
                    move.held = _say_held(move, own)
                    break
                reason = f'{move.host} still has room taken for it'
            else:
                break
            move.result = Result.UNDER_WAY
            if self.is_dry:
                return move.result
            self.progress.wait(move, reason)
            if own and moves_step.is_under_way(own):
                last = now
            if now - asked > LONGEST or now - last > LOST:
                raise _stop(f'it does not end: {reason}')
            yield
        return self._conclude(move, step, reason, server, own, has_begun)

    def _now(self) -> float:
        """Return the seconds in which services were not away."""
        return time.monotonic() - self.cloud.lost

    def _confirm(self, move: moves_plan.Move) -> None:
        """Ask nova to confirm; the next look shows whether it does."""
        try:
            self.cloud.confirm(move)
        except moves_cloud.ERRORS as exc:
            # 409: nova confirms it already, or has.
            is_conflict = getattr(exc, 'status_code', None) == 409
            if not (is_conflict or waiting.is_away(exc)):
                raise

    def _say_refused(
        self, move: moves_plan.Move, step: Step, exc: Exception
    ) -> _Stopped:
        """Return what is said of a move that nova-api refuses."""
        reason = _describe(exc)
        if step == Step.BEGIN_LIVE:
            return _leave_out(reason)
        return _stop(reason)

    def _conclude(
        self,
        move: moves_plan.Move,
        step: Step,
        reason: str,
        server: typing.Any,
        own: typing.Any,
        has_begun: bool,
    ) -> Result:
        """Return what became of a move after its last step.

        :raises _Stopped: it is not made
        """
        if step == Step.GONE:
            return Result.GONE
        if step == Step.MOVED:
            move.reason = _say_changed(move) if has_begun else ''
            return Result.MOVED if has_begun else Result.THERE
        if step == Step.ELSEWHERE:
            needed = any(
                move.turn in one.needs for one in self.plan.moves[move.turn :]
            )
            if not needed and server.compute_host not in self.plan.to_be_empty:
                move.reason = reason
                return Result.ELSEWHERE
            reason += f', not on {move.expected}'
        if step in (Step.FAILED, Step.BROKEN):
            reason = self.cloud.find_reason(move.server)
            if not reason and server.fault:
                reason = server.fault['message']
        where = f'it is on {server.compute_host}'
        if step == Step.BROKEN:
            reason = f'{where} in ERROR' + f' ({reason})' * bool(reason)
        elif step == Step.CANCELLED:
            reason = f'its {own.migration_type} was cancelled; {where}'
        elif step == Step.FAILED and not _is_as_planned(move):
            raise _leave_out(reason or where)
        is_taken = step == Step.FAILED and _TAKEN in reason
        end = End.NEW_PLAN if is_taken else _ENDS[step]
        raise _stop(reason or where, end)

    def _check_evacuation(self, move: moves_plan.Move) -> None:
        """Refuse an evacuation of a host that may run its servers yet.

        :raises _Stopped: nobody said that it is dead
        """
        if move.method != plan_format.EVACUATE:
            return
        service = self.cloud.read_services().get(move.host)
        if service is None or not service.is_forced_down:
            raise _stop(
                f'nova-compute of {move.host} is not forced down: make sure '
                f'that the host is off, then openstack compute service set '
                f'--down {move.host} nova-compute'
            )


def _is_as_planned(move: moves_plan.Move) -> bool:
    return move.actual != plan_format.LIVE or move.method == move.actual


def _leave_out(reason: str) -> _Stopped:
    """Return what is said of a server that is not to be shut down."""
    return _stop(
        f'it runs now, and nova does not live-migrate it: {reason}',
        End.NEW_PLAN,
        Result.LEFT_OUT,
    )


def _say_changed(move: moves_plan.Move) -> str:
    if move.actual == move.method:
        return ''
    now = 'runs' if move.actual == plan_format.LIVE else 'is stopped'
    return f'{move.actual}: it {now} now'


def _say_held(move: moves_plan.Move, own: typing.Any) -> str:
    """Return what holds the room that a server left, and what frees it."""
    return (
        f'the allocation of its {own.migration_type}, {own.uuid} '
        f'({own.status}), still holds its room on {move.host}: '
        f'{moves_cloud.FREE} {own.uuid}'
    )


def _is_old(own: typing.Any) -> bool:
    """Return whether a migration ended long ago, if the clocks are right."""
    written = own.updated_at or own.created_at
    if not written:
        return False
    ended = datetime.datetime.fromisoformat(written[:19])
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return (now - ended).total_seconds() > HELD


def _describe(exc: Exception) -> str:
    return getattr(exc, 'details', None) or str(exc)
