# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of changes in placement."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from concurrent import futures
import dataclasses
import itertools
import threading

from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from nova_ext_sched.policy import isolation_plan as plan

DONE = 'done'
PLANNED = 'planned'
NOT_TRIED = 'not tried'
IMPOSSIBLE = 'not possible'
FAILED = 'failed'

#: How many providers are changed at once.
WORKERS = 8

# What concerns one step alone. Anything else (no connection, no permission,
# an expired token) meets the other steps too, so the run ends.
_OF_ONE_STEP = (errors.NotFound, errors.BadRequest, errors.Conflict)


@dataclasses.dataclass
class Outcome:
    """What became of a step.

    :ivar status: one of this module's words
    :ivar reason: why, where it was not done
    """

    step: plan.Step
    status: str
    reason: str = ''

    def __str__(self) -> str:
        return f'{self.status}: {self.reason}' if self.reason else self.status


class Run:
    """One run of a plan.

    :param steps: in the order in which to do them
    :param named: traits that need no record to be removed
    :ivar outcomes: one for each step, up to date at any time
    :ivar ended_by: the error that ended the run early, None where none did
    """

    def __init__(
        self, steps: Sequence[plan.Step], named: Collection[str] = ()
    ) -> None:
        self._named = named
        self.outcomes = [
            Outcome(step, IMPOSSIBLE, step.obstacle)
            if step.obstacle
            else Outcome(step, PLANNED)
            for step in steps
        ]
        self.ended_by: Exception | None = None
        self._stopped = threading.Event()

    def carry_out(
        self,
        client: placement.PlacementClient,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        """Do what is planned, several providers at a time.

        :param advance: called after each step
        """
        planned = [o for o in self.outcomes if o.status == PLANNED]
        for outcome in planned:
            outcome.status = NOT_TRIED
        # A kind after the other: traits are created before they are used,
        # and no provider is changed by two steps at once.
        for _, group in itertools.groupby(planned, lambda o: o.step.change):
            if self.ended_by is None:
                self._carry_out_kind(client, list(group), advance)

    def _carry_out_kind(
        self,
        client: placement.PlacementClient,
        outcomes: Sequence[Outcome],
        advance: Callable[[], None],
    ) -> None:
        pool = futures.ThreadPoolExecutor(WORKERS)
        running: dict[futures.Future[bool], Outcome] = {}
        self._stopped.clear()
        try:
            # The first alone: where all would fail, one request tells.
            for some in (outcomes[:1], outcomes[1:]):
                submitted = []
                for outcome in some if self.ended_by is None else ():
                    future = pool.submit(self._try, client, outcome.step)
                    running[future] = outcome
                    submitted.append(future)
                for future in futures.as_completed(submitted):
                    self._note(running[future], future)
                    advance()
        finally:
            # Also where the user interrupts: what is under way ends, and its
            # outcome is known.
            self._stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for future, outcome in running.items():
                if outcome.status == NOT_TRIED and not future.cancelled():
                    self._note(outcome, future)

    def _note(self, outcome: Outcome, future: futures.Future[bool]) -> None:
        exc = future.exception()
        if exc is None:
            outcome.status = DONE if future.result() else NOT_TRIED
            return
        outcome.status, outcome.reason = FAILED, str(exc)
        if not isinstance(exc, _OF_ONE_STEP):
            if not isinstance(exc, errors.PlacementError):
                raise exc
            self.ended_by = self.ended_by or exc

    def _try(self, client: placement.PlacementClient, step: plan.Step) -> bool:
        if self._stopped.is_set():
            return False
        try:
            self._do(client, step)
        except _OF_ONE_STEP:
            raise
        except Exception:
            self._stopped.set()
            raise
        return True

    def _do(self, client: placement.PlacementClient, step: plan.Step) -> None:
        if step.change is plan.Change.CREATE_TRAIT:
            client.ensure_traits(step.targets)
            return
        assert step.node is not None
        uuid = step.node.uuid
        if step.change is plan.Change.ADD_TO_AGGREGATES:
            client.change_aggregates(uuid, add=step.targets)
        elif step.change is plan.Change.ADD_TRAITS:
            client.update_traits(
                uuid, lambda current: plan.with_added(current, step.targets)
            )
        else:
            client.update_traits(
                uuid,
                lambda current: plan.with_removed(
                    current, step.targets, self._named
                ),
            )

    def count(self, *statuses: str) -> int:
        """Return how many steps have one of the statuses."""
        return sum(outcome.status in statuses for outcome in self.outcomes)

    def summary(self) -> str:
        """Return in a sentence what was done and what was not."""
        if not self.outcomes:
            return 'Nothing to change.'
        counted = collections.Counter(
            (outcome.status, outcome.step.change) for outcome in self.outcomes
        )
        parts = []
        for status in (DONE, PLANNED, FAILED, IMPOSSIBLE, NOT_TRIED):
            changes = [
                f'{change} ({counted[status, change]})'
                for change in plan.Change
                if counted[status, change]
            ]
            if changes:
                parts.append(f'{status}: {", ".join(changes)}')
        return '; '.join(parts).capitalize() + '.'
