# SPDX-License-Identifier: Apache-2.0

"""A question that is under way in the scheduler's steps."""

from collections.abc import Callable
import dataclasses
import typing

from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import matrix


@dataclasses.dataclass
class Asking:
    """A request, what it is asked of, and what is known of the answer.

    :ivar ctxt: a nova RequestContext
    :ivar spec_obj: a nova RequestSpec, which changes as in the scheduler
    :ivar matrix: gets the constraints
    """

    cloud: snapshot.Snapshot
    ctxt: typing.Any
    spec_obj: typing.Any
    matrix: matrix.Matrix


def start(
    cloud: snapshot.Snapshot,
    whole: bool = True,
    advance: Callable[..., object] = lambda: None,
) -> matrix.Matrix:
    """Return a matrix that has every host and no constraint yet.

    :param whole: see :class:`.matrix.Matrix`; ``advance`` too
    """
    judged = matrix.Matrix(
        {uuid: host.name for uuid, host in cloud.hosts.items()},
        whole,
        advance,
    )
    enabled = {cell.uuid for cell in cloud.enabled_cells}
    judged.faults += cloud.doubts
    for uuid, reason in cloud.silent_cells.items():
        # nova-scheduler does not ask a disabled cell.
        said = judged.faults if uuid in enabled else judged.remarks
        said.append(
            f'The hosts of cell {cloud.cell_name(uuid)} are not counted, '
            f'because its database does not answer: {reason}'
        )
    return judged
