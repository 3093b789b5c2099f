# SPDX-License-Identifier: Apache-2.0

"""One move while it is made, look by look."""

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
import dataclasses
import datetime
import time
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc.moves_plan import End
from nova_ext_sched.osc.moves_plan import Result
from nova_ext_sched.osc.moves_step import Ceased
from nova_ext_sched.osc.moves_step import Step

#: How long a migration may last, in seconds, and how long nova may take before
#: it has one, and after.
LONGEST = 4 * 3600
LOST = 600
#: How long nova may take to give back the room that a server left, and after
#: how long a request that nobody answered has left no trace.
HELD = 60
QUIET = 30
#: How long nova seems to have ceased to work on a migration until it counts as
#: forgotten, or until that is said: for a minute, nova-compute may wait for an
#: answer.
FORGOTTEN = 60
STALE = 120

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


class Stopped(Exception):
    """A move was not made; the text says why.

    :ivar end: what is to be done
    """

    def __init__(
        self, text: str, end: End = End.FIX, result: Result = Result.FAILED
    ) -> None:
        super().__init__(text)
        self.end, self.result = end, result


@dataclasses.dataclass
class Making:
    """A move, and what is known of it since it was looked at first.

    :param is_dry: whether nova is told nothing
    :ivar server: what nova shows of it; None where it is gone
    :ivar migrations: those of the server
    :ivar own: the one of the move; None where there is none
    :ivar has_begun: whether this run saw it go on
    :ivar before: the IDs of migrations that there were when nova was asked
    :ivar forgotten: the IDs of migrations that nova works on no more
    :ivar ceased: how nova seems to have ceased to work on the own one
    :ivar idle: since when it seems to have
    :ivar unanswered: when nova was asked, and did not answer
    :ivar refused: the step that nova refused, and how
    :ivar first: when it was looked at first; ``now``, when it was last
    :ivar last: when something happened
    """

    move: moves_plan.Move
    plan: moves_plan.Plan
    cloud: moves_cloud.Cloud
    is_dry: bool = False
    server: typing.Any = None
    migrations: Sequence[typing.Any] = ()
    own: typing.Any = None
    has_begun: bool = False
    before: set[int] | None = None
    forgotten: set[int] = dataclasses.field(default_factory=set)
    ceased: Ceased | None = None
    idle: float | None = None
    unanswered: float | None = None
    refused: tuple[Step, Exception] | None = None
    first: float = dataclasses.field(init=False)
    last: float = dataclasses.field(init=False)
    now: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.first = self.last = self.now = self._read_clock()

    def take_steps(
        self, wait: Callable[[str], None]
    ) -> Generator[None, None, Result]:
        """Return what became of the move; yield where nova is at work.

        :param wait: takes what it waits for, at each look
        :raises Stopped: it is not made
        """
        while True:
            step, reason = self._look()
            if step in moves_step.BEGINNINGS:
                self._get_ready(step)
                if self.is_dry:
                    self.move.reason = _say_changed(self.move)
                    return Result.PLANNED
                waits_for = self._begin(step)
                if waits_for is None:
                    # It may have changed between a look and the request.
                    continue
            else:
                waits_for = self._go_on(step, reason)
                if waits_for is None:
                    return self._conclude(step, reason)
            self.move.result = Result.UNDER_WAY
            if self.is_dry:
                return self.move.result
            wait(waits_for)
            if self.own and moves_step.is_under_way(self.own):
                self.last = self.now
            if self.now - self.first > LONGEST or self.now - self.last > LOST:
                raise Stopped(f'it takes too long: {waits_for}')
            yield

    def _read_clock(self) -> float:
        """Return the seconds in which services were not away."""
        return time.monotonic() - self.cloud.lost

    def _look(self) -> tuple[Step, str]:
        """Return what is to be done, and why.

        :raises Stopped: nova has ended the migration, and not the task, or
            has ceased to confirm it
        """
        # In this order: where a migration has ended, the server shows it.
        self.migrations = [
            one
            for one in self.cloud.read_migrations(self.move.server)
            if one.id not in self.forgotten
        ]
        self.server = self.cloud.read_server(self.move.server)
        self.own = moves_step.find_own(
            self.move,
            self.migrations,
            self.cloud.user,
            self.plan.time,
            self.before,
        )
        if self.unanswered is not None and self.own:
            # The request arrived.
            self.has_begun = True
        self.now = self._read_clock()
        if self._has_idled():
            if self.ceased is not Ceased.FORGOTTEN:
                raise Stopped(_say_stale(self.move, self.own, self.server))
            # The move begins anew.
            self.forgotten.add(self.own.id)
            self.idle = self.unanswered = None
            self.has_begun = False
            return self._look()
        return moves_step.decide(
            self.move, self.server, self.migrations, self.own, self.has_begun
        )

    def _has_idled(self) -> bool:
        """Return whether nova has not worked on the own migration for long."""
        self.ceased = moves_step.find_ceased(self.own, self.server)
        if self.ceased is None:
            self.idle = None
            return False
        if self.idle is None:
            self.idle = self.now
        longest = FORGOTTEN if self.ceased is Ceased.FORGOTTEN else STALE
        return self.now - self.idle > longest

    def _get_ready(self, step: Step) -> None:
        """Choose the method of a step that begins the move.

        :raises Stopped: nova refused it, or has to
        """
        if self.refused and self.refused[0] == step:
            reason = say_fault(self.refused[1])
            if step == Step.BEGIN_LIVE:
                raise _leave_out(reason)
            raise Stopped(reason)
        self.refused = None
        self._check_evacuation()
        self.move.actual = moves_step.BEGINNINGS[step] or self.move.method

    def _begin(self, step: Step) -> str | None:
        """Ask nova to begin; return what is waited for.

        :returns: None where nova refuses
        """
        asked = self.unanswered
        if asked is None or self.now - asked >= QUIET:
            self.before = {one.id for one in self.migrations}
            try:
                self.cloud.begin(self.move)
                self.has_begun, self.last = True, self.now
            except moves_cloud.ERRORS as exc:
                if not waiting.is_away(exc):
                    self.refused = step, exc
                    return None
                self.unanswered = self.now
        if self.has_begun:
            return 'nova has not started it yet'
        return 'nova-api did not answer the request'

    def _go_on(self, step: Step, reason: str) -> str | None:
        """Let a move that has begun go on; return what is waited for.

        :returns: None where nothing is
        """
        own = self.own
        if step == Step.CONFIRM:
            if not self.is_dry:
                self._confirm()
            self.has_begun = True
            return 'its migration is being confirmed'
        if step == Step.WAIT:
            self.has_begun = True
            if own and moves_step.is_under_way(own):
                text = f'its {own.migration_type} is {own.status}'
                if self.ceased is Ceased.FORGOTTEN:
                    text += ', but the server has no task'
                return text
            if self.server:
                task = self.server.task_state or self.server.status
                if own and self.ceased:
                    return _say_task(own, self.server)
                return f'its task is {task}'
            return reason
        if step == Step.MOVED and own and self.cloud.holds(own):
            # nova gives the room back after the server is there.
            since = self.last if self.has_begun else self.first
            is_late = self.now - since > HELD
            is_late = is_late or (not self.has_begun and _is_old(own))
            if not (is_late or self.is_dry):
                return f'{self.move.host} still holds its allocation'
            self.move.held = _say_held(self.move, own)
        return None

    def _confirm(self) -> None:
        """Ask nova to confirm; the next look shows whether it does."""
        try:
            self.cloud.confirm(self.move)
        except moves_cloud.ERRORS as exc:
            # 409: nova confirms it already, or has.
            is_conflict = getattr(exc, 'status_code', None) == 409
            if not (is_conflict or waiting.is_away(exc)):
                raise

    def _conclude(self, step: Step, reason: str) -> Result:
        """Return what became of a move after its last step.

        :raises Stopped: it is not made
        """
        if step == Step.GONE:
            return Result.GONE
        if step == Step.MOVED:
            self.move.reason = (
                _say_changed(self.move) if self.has_begun else ''
            )
            return Result.MOVED if self.has_begun else Result.THERE
        if step == Step.ELSEWHERE:
            needed = any(
                self.move.turn in one.needs
                for one in self.plan.moves[self.move.turn :]
            )
            if (
                not needed
                and self.server.compute_host not in self.plan.to_be_empty
            ):
                self.move.reason = reason
                return Result.ELSEWHERE
            reason += f', not on {self.move.expected}'
        if step in (Step.FAILED, Step.BROKEN):
            reason = self.cloud.find_reason(self.move.server)
            if not reason and self.server.fault:
                reason = self.server.fault['message']
            reason = messages.without_traceback(reason)
        where = f'it is on {self.server.compute_host}'
        if step == Step.BROKEN:
            reason = f'{where} in ERROR' + f' ({reason})' * bool(reason)
        elif step == Step.CANCELLED:
            reason = f'its {self.own.migration_type} was cancelled; {where}'
        elif (
            step == Step.FAILED
            and self.move.actual == plan_format.LIVE != self.move.method
        ):
            raise _leave_out(reason or where)
        is_taken = step == Step.FAILED and _TAKEN in reason
        raise Stopped(
            reason or where, End.NEW_PLAN if is_taken else _ENDS[step]
        )

    def _check_evacuation(self) -> None:
        """Refuse an evacuation of a host that may run its servers yet.

        :raises Stopped: nobody said that it is dead
        """
        if self.move.method != plan_format.EVACUATE:
            return
        service = self.cloud.read_services().get(self.move.host)
        if service is None or not service.is_forced_down:
            raise Stopped(
                f'nova-compute of {self.move.host} is not forced down: make '
                f'sure that the host is off, then openstack compute service '
                f'set --down {self.move.host} nova-compute'
            )


def _leave_out(reason: str) -> Stopped:
    """Return what is said of a server that is not to be shut down."""
    return Stopped(
        f'it is running now, and nova does not live-migrate it: {reason}',
        End.NEW_PLAN,
        Result.LEFT_OUT,
    )


def _say_changed(move: moves_plan.Move) -> str:
    if move.actual == move.method:
        return ''
    now = 'runs' if move.actual == plan_format.LIVE else 'is stopped'
    return f'{move.actual}: it {now} now'


def _say_task(own: typing.Any, server: typing.Any) -> str:
    return (
        f'its {own.migration_type} is over ({own.status}), but its task is '
        f'still {server.task_state}'
    )


def _say_stale(
    move: moves_plan.Move, own: typing.Any, server: typing.Any
) -> str:
    """Return what keeps a server from moving, and what helps."""
    said, host = _say_task(own, server), server.compute_host
    if moves_step.is_under_way(own):
        # nova-compute of the host that it left confirms it.
        said, host = f'its {own.migration_type} is {own.status}', move.host
    return (
        f'{said}. Check in the nova-compute log of {host} that it does not go '
        f'on, then: openstack server set --state active {move.server}'
    )


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


def say_fault(exc: Exception) -> str:
    """Return what nova says of an error."""
    return getattr(exc, 'details', None) or str(exc)
