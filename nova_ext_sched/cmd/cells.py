# SPDX-License-Identifier: Apache-2.0

"""Cells' databases, asked all at once."""

from collections.abc import Callable
from collections.abc import Iterable
from concurrent import futures
import threading
import typing

from nova import context as nova_context

from nova_ext_sched import messages


def ask(
    mappings: Iterable[typing.Any],
    select: Callable[[typing.Any], typing.Any],
    seconds: float,
) -> tuple[dict[str, typing.Any], dict[str, str]]:
    """Return what a function returns for each cell.

    Like nova.context.scatter_gather_cells, which logs a traceback for what
    is raised. Under eventlet it also ends what has not answered, so that the
    cell would be asked, and waited for, again; here that is left to itself.

    :param mappings: nova CellMappings
    :param select: called with a nova RequestContext of the cell, in a thread
        of its own (a green one where nova has those)
    :param seconds: the cells have that long, together
    :returns: what the calls returned, and why the other cells have no answer,
        both by UUID of the cell
    """
    context = nova_context.get_admin_context()
    answers = {}
    for mapping in mappings:
        answer: futures.Future[typing.Any] = futures.Future()
        answers[mapping.uuid] = answer
        # The context stays a cell's, as nova itself uses it.
        with nova_context.target_cell(context, mapping) as cctxt:
            # A process ends without waiting for a database that hangs.
            threading.Thread(
                target=_ask, args=(answer, select, cctxt), daemon=True
            ).start()
    futures.wait(answers.values(), seconds)
    found, silent = {}, {}
    for uuid, answer in answers.items():
        if not answer.done():
            silent[uuid] = f'no answer in {seconds} seconds'
        elif problem := answer.exception():
            silent[uuid] = messages.describe(problem)
        else:
            found[uuid] = answer.result()
    return found, silent


def _ask(
    answer: futures.Future[typing.Any],
    select: Callable[[typing.Any], typing.Any],
    cctxt: typing.Any,
) -> None:
    try:
        answer.set_result(select(cctxt))
    except Exception as exc:
        answer.set_exception(exc)
