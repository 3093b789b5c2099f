# SPDX-License-Identifier: Apache-2.0

"""Holds a question while the scheduler's steps answer it."""

from collections.abc import Callable
import dataclasses
import typing

from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import matrix


@dataclasses.dataclass
class Asking:
    """A request that is being judged, its cloud, and the answer so far.

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
    with_reasons: bool = True,
    advance: Callable[..., object] = lambda: None,
) -> matrix.Matrix:
    """Create a matrix of every host, without constraints.

    :param with_reasons: see :class:`.matrix.Matrix`; ``advance`` too
    """
    judged = matrix.Matrix(
        {uuid: node.name for uuid, node in cloud.nodes.items()},
        with_reasons,
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
