# SPDX-License-Identifier: Apache-2.0

"""Runs one request through nova-scheduler's steps and notes the refusals.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule), run by nova's own functions. A claim in
placement is the one step that is not made.
"""

from collections.abc import Callable
import typing

from nova.scheduler import utils

from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix


def start(
    cloud: snapshot.Snapshot,
    whole: bool = True,
    advance: Callable[..., object] = lambda: None,
) -> matrix.Matrix:
    """Return a matrix that has every host and no constraint yet.

    :param whole: see :class:`.matrix.Matrix`; ``advance`` too
    """
    found = matrix.Matrix(
        {uuid: host.name for uuid, host in cloud.hosts.items()},
        whole,
        advance,
    )
    enabled = {cell.uuid for cell in cloud.enabled_cells}
    found.faults += cloud.doubts
    for uuid, reason in cloud.silent_cells.items():
        # nova-scheduler does not ask a disabled cell.
        said = found.faults if uuid in enabled else found.remarks
        said.append(
            f'The hosts of cell {cloud.cell_name(uuid)} are not counted, '
            f'because its database does not answer: {reason}'
        )
    return found


def explain(
    cloud: snapshot.Snapshot,
    found: matrix.Matrix,
    ctxt: typing.Any,
    spec_obj: typing.Any,
) -> None:
    """Run a request through the scheduler's steps, unless it has ended.

    :param found: gets the constraints
    :param spec_obj: a nova RequestSpec, which changes as in the scheduler
    :raises reasons.FilterFailed: a filter raised what nova does not
        expect
    :raises placement.PlacementFailed: placement does not answer
    """
    if found.end is not None:
        return
    offered = None
    if not utils.request_is_rebuild(spec_obj):
        offered = candidates.ask(cloud, found, ctxt, spec_obj)
        if offered is None:
            return
    judging = hosts.Hosts(cloud, found, ctxt, spec_obj, offered)
    if order := judging.judge():
        judging.weigh(order)
        judging.place(order)
