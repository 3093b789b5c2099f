# SPDX-License-Identifier: Apache-2.0

"""Makes one move: reads nova's records again and again, and takes the steps.

The words are those of :mod:`nova_ext_sched.osc`.
"""

from collections.abc import Callable
from collections.abc import Generator
import dataclasses

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_again
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_seen
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc import moves_words
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_plan import Result
from nova_ext_sched.osc.moves_plan import Stopped
from nova_ext_sched.osc.moves_step import Stall
from nova_ext_sched.osc.moves_step import Step

#: Seconds from the first look after which a move is given up.
LONGEST = 4 * 3600
#: Seconds after which a move is given up if nova has neither been asked for it
#: nor worked on it.
LOST = 600
#: Seconds to wait for nova to free the old host's room, or to end a deletion.
HELD = 60
#: Seconds after which a request without an answer is sent again, if nova shows
#: no sign of it.
QUIET = 30
#: Seconds to wait after a live migration was cancelled, or failed without a
#: stated reason: nova-compute first undoes the migration, and may then set the
#: server to ERROR.
SETTLED = 30

# nova's words when the scheduler accepts no host: the host is full or
# disabled, or placement did not answer.
_NO_VALID_HOST = 'No valid host was found'

# The remedy after each step at which a move fails.
_REMEDIES = {
    Step.STOP: Remedy.FIX,
    Step.BUSY: Remedy.RUN_AGAIN,
    Step.CANCELLED: Remedy.RUN_AGAIN,
    Step.FAILED: Remedy.FIX,
    Step.BROKEN_AT_HOME: Remedy.FIX,
    Step.BROKEN: Remedy.NEW_PLAN,
    Step.ELSEWHERE: Remedy.NEW_PLAN,
}


@dataclasses.dataclass
class Making(moves_seen.Seen):
    """A move in progress.

    :ivar refused: the step whose request nova refused, and the exception
    :ivar again: the further requests after "No valid host was found"
    :ivar asked_as: the server's status and host when nova was last asked for
        the move
    """

    refused: tuple[Step, Exception] | None = None
    again: moves_again.Again = dataclasses.field(
        default_factory=moves_again.Again
    )
    asked_as: tuple[str, str] | None = None

    def is_under_way(self) -> bool:
        """Return whether its own migration runs or waits for confirmation."""
        try:
            step, _ = self.look()
        except Stopped:
            return False
        return self.own is not None and step in (Step.WAIT, Step.CONFIRM)

    def take_steps(
        self, wait: Callable[[str], None]
    ) -> Generator[None, None, Result]:
        """Make the move, yielding while nova works; return its result.

        :param wait: called at each look with the condition that the move
            waits for; it reports the condition, and returns at once
        :raises Stopped: the move failed, or its server is left out
        """
        while True:
            step, reason = self.look()
            if step in moves_step.BEGINNINGS and self._is_request_due():
                # Read the server again after the wait for placement: it may
                # have been started, and must not be shut down.
                self.cloud.wait_for_placement(self.move.server)
                step, reason = self.look()
            if step in moves_step.BEGINNINGS:
                self._check_and_choose_method(step)
                if self.is_dry:
                    self.move.reason = moves_words.say_changed(self.move)
                    return Result.PLANNED
                waits_for = self._begin(step)
                if waits_for is None:
                    # The server may have changed since the look: look again.
                    # If the step is still the same, the check of the next
                    # round stops the move.
                    continue
            else:
                waits_for = self._go_on(step)
                if waits_for is None:
                    return self._conclude(step, reason)
            self.move.result = Result.UNDER_WAY
            if self.is_dry:
                return self.move.result
            wait(waits_for)
            is_moving = self.own and moves_step.is_under_way(self.own)
            # An unheard request shows no progress.
            if is_moving and self.stall is not Stall.UNHEARD:
                self.last = self.now
            if self.now - self.first > LONGEST or self.now - self.last > LOST:
                # The text about an unheard request already says what to do.
                if self.stall is not Stall.UNHEARD:
                    waits_for = f'it takes too long: {waits_for}'
                raise Stopped(waits_for)
            yield

    def _check_and_choose_method(self, step: Step) -> None:
        """Check that the move can begin with a step, and choose its method.

        :raises Stopped: nova has refused the request of this step, or the host
            to evacuate is not forced down
        """
        if self.refused and self.refused[0] == step:
            reason = moves_words.say_fault(self.refused[1])
            if step == Step.BEGIN_LIVE:
                raise _make_left_out(reason)
            raise Stopped(reason)
        self.refused = None
        self._check_evacuation()
        self.move.actual = moves_step.BEGINNINGS[step] or self.move.method

    def _is_request_due(self) -> bool:
        """Return whether a request may be sent now."""
        sent = self.unanswered
        is_quiet = sent is None or self.now - sent >= QUIET
        return not self.is_dry and is_quiet and self.again.is_due(self.now)

    def _begin(self, step: Step) -> str | None:
        """Request the move, if that is due; return the condition to wait for.

        :returns: None if nova refused the request
        """
        # Between two requests after a "No valid host", nothing is sent.
        if not self.again.is_due(self.now):
            return (
                'nova found no host for it, and is asked again within a minute'
            )
        if self._is_request_due():
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

    def _go_on(self, step: Step) -> str | None:
        """Take a step that does not begin the move.

        :returns: the condition to wait for; None if the step is the last one
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
                if self.stall is Stall.FORGOTTEN:
                    text += ', but the server has no task'
                return text
            if self.stall is Stall.TASK_LEFT:
                return moves_words.say_task(own, self.server)
            return (
                f'its task is {self.server.task_state or self.server.status}'
            )
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
        """Return the condition to wait for while the old host's room is held.

        :returns: None if no room is held, or if it is not waited for: in a dry
            run, or over :data:`HELD` seconds after the move. The move's
            ``held`` then names the allocations
        """
        holding = self.find_holding()
        if not holding:
            return None
        # A move that an earlier run made is not waited for if its migrations
        # last changed over HELD seconds ago.
        is_late = self.now - self.since > HELD or (
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
        """Decide whether a failure is final; if not, plan what follows.

        After a failed live migration nova-compute may still set the server to
        ERROR. The cause of a "No valid host" may be gone within a minute, so
        the move may begin anew.

        :returns: the condition to wait for; None if the failure is final
        """
        if self.is_dry:
            return None
        reason = '' if step == Step.CANCELLED else self.find_reason()
        if not reason and self.move.actual == plan_format.LIVE:
            if self.now - self.since <= SETTLED:
                return f'its {self.own.migration_type} is {self.own.status}'
            return None
        is_unchanged = self.asked_as == (
            self.server.status,
            self.server.compute_host,
        )
        # A request that got no answer may still arrive: do not send another.
        is_answered = self.unanswered is None
        if not (_NO_VALID_HOST in reason and is_unchanged and is_answered):
            return None
        silent = self.cloud.find_silent(self.move.server)
        if not self.again.note_refusal(not silent, self.now):
            return None
        # The move begins anew.
        self.has_begun, self.last = False, self.now
        said = 'nova found no host'
        if silent:
            verb = messages.agree(len(silent), 'does', 'do')
            said = f'{" and ".join(silent)} {verb} not answer'
        return f'{said}; nova is asked again in a minute'

    def _confirm(self) -> None:
        """Ask nova to confirm; the next look shows whether it does."""
        # If nova cannot free the old host's room, it sets the server to ERROR.
        self.cloud.wait_for_placement(self.move.server)
        try:
            self.cloud.confirm(self.move)
        except moves_cloud.ERRORS as exc:
            # 409: nova is confirming the migration already, or has.
            is_conflict = getattr(exc, 'status_code', None) == 409
            if not (is_conflict or waiting.is_away(exc)):
                raise

    def _conclude(self, step: Step, reason: str) -> Result:
        """Return the result of a move after its last step.

        :raises Stopped: the move failed, or its server is left out
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
            # That is fine unless a later move counts on the expected host, or
            # the server is on a host that is to be empty.
            is_needed = any(
                self.move.turn in later.needs
                for later in self.plan.moves[self.move.turn :]
            )
            if not (
                is_needed or self.server.compute_host in self.plan.to_be_empty
            ):
                self.move.reason = reason
                return Result.ELSEWHERE
            reason += f', not on {self.move.expected}'
        raise self._make_stopped(step, reason)

    def _make_stopped(self, step: Step, reason: str) -> Stopped:
        """Return the exception for a move that ended without success."""
        where = f'it is on {self.server.compute_host}'
        remedy = _REMEDIES[step]
        # Whether it was live-migrated only because it was started after the
        # plan was made. Then it is left out: it must not be shut down.
        is_live_instead = (
            self.move.actual == plan_format.LIVE
            and self.move.method != plan_format.LIVE
        )
        if step in (Step.FAILED, Step.BROKEN, Step.BROKEN_AT_HOME):
            reason = self.find_reason()
        if step in (Step.BROKEN, Step.BROKEN_AT_HOME):
            reason = moves_words.say_broken(
                self.move, self.server, self.own, reason
            )
        elif step == Step.CANCELLED:
            reason = f'its {self.own.migration_type} was cancelled; {where}'
        elif step == Step.FAILED and is_live_instead:
            return _make_left_out(reason or where)
        elif step == Step.FAILED and _NO_VALID_HOST in reason:
            reason, remedy = self._explain_refusal(reason), Remedy.NEW_PLAN
        self.move.is_in_error = step in (Step.BROKEN, Step.BROKEN_AT_HOME)
        return Stopped(reason or where, remedy)

    def _explain_refusal(self, reason: str) -> str:
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
        """Refuse an evacuation from a host that may still run its servers.

        :raises Stopped: its nova-compute is not forced down
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


def _make_left_out(reason: str) -> Stopped:
    """Return the exception that leaves out a running server.

    :param reason: nova's reason for not live-migrating the server
    """
    return Stopped(
        f'it is running now, and nova does not live-migrate it: {reason}',
        Remedy.NEW_PLAN,
        Result.LEFT_OUT,
    )
