# SPDX-License-Identifier: Apache-2.0

"""Cells' databases, asked all at once."""

from collections.abc import Callable
from collections.abc import Iterable
import threading
import typing

from nova import context as nova_context
from oslo_utils import timeutils

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
    questions = {one.uuid: _Question(context, one, select) for one in mappings}
    for question in questions.values():
        question.start()
    deadline = timeutils.now() + seconds
    for question in questions.values():
        question.join(max(0.0, deadline - timeutils.now()))
    found, silent = {}, {}
    for uuid, question in questions.items():
        if question.is_alive():
            silent[uuid] = f'no answer in {seconds} seconds'
        elif question.problem is not None:
            silent[uuid] = messages.describe(question.problem)
        else:
            found[uuid] = question.answer
    return found, silent


class _Question(threading.Thread):
    def __init__(
        self,
        context: typing.Any,
        mapping: typing.Any,
        select: Callable[[typing.Any], typing.Any],
    ) -> None:
        # A process ends without waiting for a database that hangs.
        super().__init__(daemon=True)
        self.answer: typing.Any = None
        self.problem: Exception | None = None
        self._select = select
        with nova_context.target_cell(context, mapping) as self._context:
            # The context stays a cell's, as nova itself uses it.
            pass

    def run(self) -> None:
        try:
            self.answer = self._select(self._context)
        except Exception as exc:
            self.problem = exc
