# SPDX-License-Identifier: Apache-2.0

"""Runs one request through nova-scheduler's steps and notes the refusals.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule), run by nova's own functions. A claim in
placement is the one step that is not made.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import typing

from nova import exception as nova_exception
from nova.scheduler import utils

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import hosts
from nova_ext_sched.cmd.explain import placement


def start(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    whole: bool = True,
    advance: Callable[[], None] = lambda: None,
) -> funnel.Funnel:
    """Return a funnel that has every host and no constraint yet.

    :param whole: see :class:`.funnel.Funnel`; ``advance`` too
    """
    found = funnel.Funnel(
        {uuid: host.name for uuid, host in scheduler.hosts.items()},
        whole,
        advance,
    )
    found.remarks = [
        f'The hosts of cell {scheduler.cell_name(uuid)} are not counted, '
        f'because its database does not answer: {reason}'
        for uuid, reason in scheduler.silent_cells.items()
    ]
    return found


@contextlib.contextmanager
def conducting(found: funnel.Funnel) -> Iterator[None]:
    """Note where nova-conductor refuses without asking the scheduler."""
    try:
        yield
    except nova_exception.NoValidHost as exc:
        found.stop('conductor', 'image traits', placement.get_reason(exc))
    except nova_exception.UnsupportedPolicyException as exc:
        found.stop('conductor', 'server group', exc.format_message())


def explain(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    found: funnel.Funnel,
    ctxt: typing.Any,
    spec_obj: typing.Any,
) -> None:
    """Run a request through the scheduler's steps, unless it has ended.

    :param found: gets the constraints
    :param spec_obj: a nova RequestSpec, which changes as in the scheduler
    :raises nova_scheduler.FilterFailed: a filter raised what nova does not
        expect
    :raises nova_scheduler.PlacementFailed: placement does not answer
    """
    if found.end is not None:
        return
    candidates = None
    if not utils.request_is_rebuild(spec_obj):
        candidates = placement.Placement(scheduler, found).ask(ctxt, spec_obj)
        if candidates is None:
            return
    manager = hosts.SchedulerManager(scheduler, found, candidates)
    manager.judge(ctxt, spec_obj)
