# SPDX-License-Identifier: Apache-2.0

"""Carries out a plan of changes in placement."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from concurrent import futures
import itertools
import threading

from nova_ext_sched import placement
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc.isolation_plan import Change
from nova_ext_sched.osc.isolation_plan import Status
from nova_ext_sched.osc.isolation_plan import Step
from nova_ext_sched.placement import errors

#: How many providers are changed at once.
WORKERS = 8

# HTTP statuses that concern one step alone. Anything else (no connection, no
# permission, an expired token) meets the other steps too, so the run ends.
_ONE_STEP = (400, 404, 409)


def carry_out(
    steps: Sequence[Step],
    client: placement.PlacementClient,
    operator_traits: Collection[str] = (),
    advance: Callable[[], None] = lambda: None,
) -> errors.PlacementError | None:
    """Do what is planned, several providers at a time.

    What became of a step is in its ``status``, up to date at any time.

    :param operator_traits: traits that need no record to be removed
    :param advance: called after each step
    :returns: the error that ended the run early, None if none did
    """
    stopped = threading.Event()
    ended_by: list[errors.PlacementError] = []

    def attempt(step: Step) -> None:
        if stopped.is_set():
            return
        try:
            _do(step, client, operator_traits)
        except errors.PlacementError as exc:
            step.status, step.reason = Status.FAILED, str(exc)
            if exc.status not in _ONE_STEP:
                ended_by.append(exc)
                stopped.set()
        else:
            step.status = Status.DONE

    planned = [step for step in steps if step.status == Status.PLANNED]
    for step in planned:
        step.status = Status.NOT_TRIED
    # A kind after the other: traits are created before they are used, and no
    # provider is changed by two steps at once. The first of each alone: where
    # all would fail, one request tells.
    for _, kind in itertools.groupby(planned, lambda step: step.change):
        first, *others = kind
        for batch in ([first], others):
            pool = futures.ThreadPoolExecutor(WORKERS)
            try:
                running = [pool.submit(attempt, step) for step in batch]
                for done in futures.as_completed(running):
                    done.result()
                    advance()
            except BaseException:
                stopped.set()
                raise
            finally:
                # Also where the user interrupts: what is under way ends, and
                # what became of it is known.
                pool.shutdown(wait=True, cancel_futures=True)
    return ended_by[0] if ended_by else None


def _do(
    step: Step,
    client: placement.PlacementClient,
    operator_traits: Collection[str],
) -> None:
    if step.node is None:
        client.ensure_traits(step.targets)
    elif step.change == Change.ADD_TO_AGGREGATES:
        client.update_aggregates(
            step.node.uuid, lambda current: current.union(step.targets)
        )
    elif step.change == Change.ADD_TRAITS:
        client.update_traits(
            step.node.uuid,
            lambda current: isolation_plan.add_traits(current, step.targets),
        )
    else:
        client.update_traits(
            step.node.uuid,
            lambda current: isolation_plan.remove_traits(
                current, step.targets, operator_traits
            ),
        )


def count(steps: Sequence[Step], *statuses: Status) -> int:
    """Return how many steps have one of the statuses."""
    return sum(step.status in statuses for step in steps)


def summarize(steps: Sequence[Step]) -> str:
    """Return in a sentence what was done and what was not."""
    counted = collections.Counter((step.status, step.change) for step in steps)
    parts = []
    for status in Status:
        changes = [
            f'{change} ({counted[status, change]})'
            for change in Change
            if counted[status, change]
        ]
        if changes:
            parts.append(f'{status}: {", ".join(changes)}')
    return ('; '.join(parts).capitalize() or 'Nothing to change') + '.'
