# SPDX-License-Identifier: Apache-2.0

"""One move while it is made, look by look."""

from collections.abc import Callable
from collections.abc import Generator
import dataclasses

from nova_ext_sched import plan_format
from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_again
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_seen
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc import moves_words
from nova_ext_sched.osc.moves_plan import End
from nova_ext_sched.osc.moves_plan import Result
from nova_ext_sched.osc.moves_plan import Stopped
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
#: How long a server may yet come into ERROR after a live migration that failed
#: without a reason: nova-compute undoes the migration first.
SETTLED = 30

# nova's words where the scheduler refuses the host: others took the place, or
# closed it.
_TAKEN = 'No valid host was found'

# The remedy for each step that ends a move.
_ENDS = {
    Step.STOP: End.FIX,
    Step.BUSY: End.RUN_AGAIN,
    Step.CANCELLED: End.RUN_AGAIN,
    Step.FAILED: End.FIX,
    Step.BROKEN_AT_HOME: End.FIX,
    Step.BROKEN: End.NEW_PLAN,
    Step.ELSEWHERE: End.NEW_PLAN,
}


@dataclasses.dataclass
class Making(moves_seen.Seen):
    """A move that is made.

    :ivar refused: the step that nova refused, and how
    :ivar again: counts refusals that may pass
    :ivar asked_as: status and host of the server when nova was asked
    """

    refused: tuple[Step, Exception] | None = None
    again: moves_again.Again = dataclasses.field(
        default_factory=moves_again.Again
    )
    asked_as: tuple[str, str] | None = None

    def is_under_way(self) -> bool:
        """Return whether nova is at work on the move."""
        try:
            step, _ = self.look()
        except Stopped:
            return False
        return self.own is not None and step in (Step.WAIT, Step.CONFIRM)

    def take_steps(
        self, wait: Callable[[str], None]
    ) -> Generator[None, None, Result]:
        """Make the move, yielding while nova works; return its result.

        :param wait: takes what it waits for, at each look
        :raises Stopped: it is not made
        """
        while True:
            step, reason = self.look()
            if step in moves_step.BEGINNINGS and self._is_asking():
                # After the wait for placement the server is read again: it may
                # have been started, and must not be shut down.
                self.cloud.wait_for_placement(self.move.server)
                step, reason = self.look()
            if step in moves_step.BEGINNINGS:
                self._get_ready(step)
                if self.is_dry:
                    self.move.reason = moves_words.say_changed(self.move)
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
            is_moving = self.own and moves_step.is_under_way(self.own)
            if is_moving and self.ceased is not Ceased.UNHEARD:
                self.last = self.now
            if self.now - self.first > LONGEST or self.now - self.last > LOST:
                if self.ceased is not Ceased.UNHEARD:
                    waits_for = f'it takes too long: {waits_for}'
                raise Stopped(waits_for)
            yield

    def _get_ready(self, step: Step) -> None:
        """Choose the method of a step that begins the move.

        :raises Stopped: nova refused it, or has to
        """
        if self.refused and self.refused[0] == step:
            reason = moves_words.say_fault(self.refused[1])
            if step == Step.BEGIN_LIVE:
                raise _leave_out(reason)
            raise Stopped(reason)
        self.refused = None
        self._check_evacuation()
        self.move.actual = moves_step.BEGINNINGS[step] or self.move.method

    def _is_asking(self) -> bool:
        """Return whether nova is asked now, or asked again, for the move."""
        asked = self.unanswered
        is_quiet = asked is None or self.now - asked >= QUIET
        return not self.is_dry and is_quiet and self.again.is_due(self.now)

    def _begin(self, step: Step) -> str | None:
        """Ask nova to begin; return the condition to wait for.

        :returns: None where nova refuses
        """
        if not self.again.is_due(self.now):
            return 'nova found no host for it, and is asked again in a minute'
        if self._is_asking():
            self.before = {one.id for one in self.migrations}
            self.asked_as = self.server.status, self.server.compute_host
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
        """Continue a move that has begun; return the condition to wait for.

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
            if self.is_unheard:
                return moves_words.say_unheard(self.move, self.server, own)
            if own and moves_step.is_under_way(own):
                text = f'its {own.migration_type} is {own.status}'
                if self.ceased is Ceased.FORGOTTEN:
                    text += ', but the server has no task'
                return text
            if self.server:
                task = self.server.task_state or self.server.status
                if own and self.ceased:
                    return moves_words.say_task(own, self.server)
                return f'its task is {task}'
            return reason
        if step == Step.MOVED:
            return self._wait_for_room()
        if (
            step == Step.DELETING
            and not self.is_dry
            and moves_words.may_be_gone_soon(self.server)
        ):
            is_late = self.now - self.since > HELD
            return None if is_late else 'it is being deleted'
        if step in (Step.FAILED, Step.CANCELLED) and own:
            return self._wait_for_end(step)
        return None

    def _wait_for_room(self) -> str | None:
        """Wait until nova gives back the room that the server left."""
        holding = self.find_holding()
        if not holding:
            return None
        is_late = self.now - self.since > HELD
        is_late = is_late or (
            not self.has_begun
            and all(
                moves_words.is_older(one.updated_at or one.created_at, HELD)
                for one in holding
            )
        )
        if not (is_late or self.is_dry):
            return f'{self.move.host} still holds its allocation'
        self.move.held = moves_words.say_held(self.move, holding)
        return None

    def _wait_for_end(self, step: Step) -> str | None:
        """Decide if a failure is final; return the condition to wait for.

        nova-compute may undo a live migration and then give the server up; and
        a host that nova does not find may be found in a minute.
        """
        if self.is_dry:
            return None
        reason = '' if step == Step.CANCELLED else self.find_reason()
        if not reason and self.move.actual == plan_format.LIVE:
            if self.now - self.since <= SETTLED:
                return f'its {self.own.migration_type} is {self.own.status}'
            return None
        is_same = self.asked_as == (
            self.server.status,
            self.server.compute_host,
        )
        # The first of two requests may arrive yet.
        if _TAKEN not in reason or not is_same or self.unanswered is not None:
            return None
        silent = self.cloud.find_silent(self.move.server)
        if not self.again.note_refusal(not silent, self.now):
            return None
        self.has_begun, self.last = False, self.now
        said = ' and '.join(silent) or 'nova'
        does = 'does not answer' if silent else 'found no host'
        return f'{said} {does}; nova is asked again in a minute'

    def _confirm(self) -> None:
        """Ask nova to confirm; the next look shows whether it does."""
        # Where nova cannot free the old host it leaves the server in ERROR.
        self.cloud.wait_for_placement(self.move.server)
        try:
            self.cloud.confirm(self.move)
        except moves_cloud.ERRORS as exc:
            # 409: nova confirms it already, or has.
            is_conflict = getattr(exc, 'status_code', None) == 409
            if not (is_conflict or waiting.is_away(exc)):
                raise

    def _conclude(self, step: Step, reason: str) -> Result:
        """Return the result of a move after its last step.

        :raises Stopped: it is not made
        """
        if step == Step.GONE:
            return Result.GONE
        if step == Step.DELETING:
            self.move.reason = moves_words.say_deleting(self.server)
            return Result.DELETING
        if step == Step.MOVED:
            self.move.reason = (
                moves_words.say_changed(self.move) if self.has_begun else ''
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
        raise self._fail(step, reason)

    def _fail(self, step: Step, reason: str) -> Stopped:
        """Return why a move is not made after its last step."""
        where = f'it is on {self.server.compute_host}'
        end = _ENDS[step]
        if step in (Step.FAILED, Step.BROKEN, Step.BROKEN_AT_HOME):
            reason = self.find_reason()
        if step in (Step.BROKEN, Step.BROKEN_AT_HOME):
            reason = moves_words.say_broken(
                self.move, self.server, self.own, reason
            )
        elif step == Step.CANCELLED:
            reason = f'its {self.own.migration_type} was cancelled; {where}'
        elif (
            step == Step.FAILED
            and self.move.actual == plan_format.LIVE != self.move.method
        ):
            return _leave_out(reason or where)
        elif step == Step.FAILED and _TAKEN in reason:
            reason, end = self._explain_taken(reason), End.NEW_PLAN
        self.move.is_in_error = step in (Step.BROKEN, Step.BROKEN_AT_HOME)
        return Stopped(reason or where, end)

    def _explain_taken(self, reason: str) -> str:
        """Return why nova found no host, as far as nova-api shows it."""
        why = ''
        if self.move.to:
            services = self.cloud.read_services()
            why = moves_words.name_host(
                self.move.to, services.get(self.move.to)
            )
        why = why or f'to see why: {moves_words.say_explain(self.move)}'
        return f'{reason.rstrip(". ")}: {why}'

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
    """Leave out a server that must not be shut down; return the reason."""
    return Stopped(
        f'it is running now, and nova does not live-migrate it: {reason}',
        End.NEW_PLAN,
        Result.LEFT_OUT,
    )
