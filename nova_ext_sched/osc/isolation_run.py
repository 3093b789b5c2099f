# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of changes in placement."""

import collections
from collections.abc import Callable
from collections.abc import Sequence
from concurrent import futures
import itertools

from nova_ext_sched import placement
from nova_ext_sched.osc.isolation_step import Change
from nova_ext_sched.osc.isolation_step import Status
from nova_ext_sched.osc.isolation_step import Step
from nova_ext_sched.placement import errors

#: The most providers that are changed together.
WORKERS = 8

# HTTP statuses that concern one step alone. Anything else (no connection, no
# permission, an expired token) meets the other steps too, so the run ends.
_ONE_STEP = (400, 404, 409)


def carry_out(
    steps: Sequence[Step],
    client: placement.PlacementClient,
    advance: Callable[[], None] = lambda: None,
) -> BaseException | None:
    """Carry out planned steps, several providers at a time.

    A step's ``status`` is up to date at any time.

    :param advance: called after each step
    :returns: the error that ended the run early, None if none did
    """
    ended_by: list[BaseException] = []

    def attempt(step: Step) -> None:
        if ended_by:
            return
        try:
            step.write(client)
        except errors.PlacementError as exc:
            step.status, step.reason = Status.FAILED, str(exc)
            if exc.status not in _ONE_STEP:
                ended_by.append(exc)
        else:
            step.status = Status.DONE

    planned = [step for step in steps if step.status == Status.PLANNED]
    for step in planned:
        step.status = Status.NOT_TRIED
    # If the user interrupts, the pool still waits for the steps under way, so
    # that their results are known.
    with futures.ThreadPoolExecutor(WORKERS) as pool:
        try:
            # One kind after the other: traits are created before they are
            # used, and no provider is changed by two steps at once. The first
            # step of a kind runs alone: if all would fail, one request shows
            # it.
            for _, alike in itertools.groupby(planned, lambda s: s.change):
                first, *others = alike
                for batch in ([first], others):
                    for _ in pool.map(attempt, batch):
                        advance()
        except BaseException as exc:
            ended_by.append(exc)
            raise
    return next(iter(ended_by), None)


def sum_up(steps: Sequence[Step]) -> str:
    """Describe in a clause the steps done and not done."""
    counted = collections.Counter((step.status, step.change) for step in steps)
    parts = []
    for status in Status:
        changes = [
            f'{change} ({counted[status, change]})'
            for change in Change
            if counted[status, change]
        ]
        if changes:
            # The changes themselves are listed below the status.
            label = 'to do' if status == Status.PLANNED else status
            parts.append(f'{label}: {", ".join(changes)}')
    return '; '.join(parts).capitalize() or 'Nothing to change'
