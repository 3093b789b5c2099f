# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's steps for one request, each asked what it takes away.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule), run by nova's own functions. A claim in
placement is the one step that is not made.
"""

from collections.abc import Callable
import typing

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
    """Return the funnel of every host, before anything is taken away.

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


def explain(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    found: funnel.Funnel,
    ctxt: typing.Any,
    spec_obj: typing.Any,
) -> None:
    """Run a request through the scheduler's steps.

    :param found: gets the constraints
    :param spec_obj: a nova RequestSpec, which changes as in the scheduler
    :raises nova_scheduler.FilterFailed: a filter raised what nova does not
        expect
    :raises nova_scheduler.PlacementFailed: placement does not answer
    """
    candidates = None
    if not utils.request_is_rebuild(spec_obj):
        candidates = placement.Placement(scheduler, found).ask(ctxt, spec_obj)
        if candidates is None:
            return
    manager = hosts.SchedulerManager(scheduler, found, candidates)
    manager.judge(ctxt, spec_obj)
