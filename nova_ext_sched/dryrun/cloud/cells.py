# SPDX-License-Identifier: Apache-2.0

"""Asks the databases of all cells at once."""

from collections.abc import Callable
from collections.abc import Iterable
from concurrent import futures
import threading
import typing

from nova import context as nova_context
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages

#: Seconds for which a cell that hangs is not asked again, unless it answers.
REMEMBERED = 600.0


class CellFailed(exception.NovaExtSchedError):
    """A cell's database does not answer.

    :param cell: its name
    :param cause: its text
    """

    message = (
        'the database of cell {cell} (nova-manage cell_v2 list_cells): '
        'expected an answer, got {cause}'
    )


class NoAnswerError(Exception):
    """A cell hangs; the text says how long it was waited for."""


class Cells:
    """Asks cells, and remembers the ones that hang.

    ===========================  ============================================
    a cell                       what follows
    ===========================  ============================================
    answers, or fails at once    it is asked again the next time
    hangs                        it is asked again when its answer has come,
                                 or after :data:`REMEMBERED`
    ===========================  ============================================

    :ivar at_once: how many are asked at once; None for all
    """

    def __init__(self) -> None:
        self.at_once: int | None = None
        # What cells have not answered yet, by the UUID of the cell.
        self._hanging: dict[str, _Hanging] = {}

    def ask(
        self,
        mappings: Iterable[typing.Any],
        select: Callable[[typing.Any], typing.Any],
        seconds: float,
    ) -> tuple[dict[str, typing.Any], dict[str, Exception]]:
        """Call a function for each cell; return the results.

        Like nova.context.scatter_gather_cells, which logs a traceback for
        what is raised. Under eventlet it also ends what has not answered.

        :param mappings: nova CellMappings
        :param select: called with a nova RequestContext of the cell, in a
            thread of its own (a green one where nova has those); it must
            change nothing, because nobody ends a thread that hangs
        :param seconds: those that are asked at once have that long, together
        :returns: what the calls returned, and why the other cells have no
            answer, both by UUID of the cell
        """
        mappings = [*mappings]
        step = self.at_once or len(mappings) or 1
        returned: dict[str, typing.Any] = {}
        failed: dict[str, Exception] = {}
        for start in range(0, len(mappings), step):
            sent: dict[str, futures.Future[typing.Any]] = {}
            for mapping in mappings[start : start + step]:
                hanging = self._hanging.pop(mapping.uuid, None)
                if (
                    hanging
                    and not hanging.answer.done()
                    and timeutils.now() < hanging.until
                ):
                    self._hanging[mapping.uuid] = hanging
                    failed[mapping.uuid] = hanging.problem
                else:
                    sent[mapping.uuid] = _send(mapping, select)
            futures.wait(sent.values(), seconds)
            for uuid, answer in sent.items():
                if not answer.done():
                    problem = NoAnswerError(f'no answer in {seconds} seconds')
                    until = timeutils.now() + REMEMBERED
                    self._hanging[uuid] = _Hanging(answer, problem, until)
                    failed[uuid] = problem
                elif (raised := answer.exception()) is not None:
                    failed[uuid] = typing.cast(Exception, raised)
                else:
                    returned[uuid] = answer.result()
        return returned, failed


def _send(
    mapping: typing.Any, select: Callable[[typing.Any], typing.Any]
) -> futures.Future[typing.Any]:
    """Call a function for a cell, in a thread of its own."""
    answer = futures.Future[typing.Any]()
    context = nova_context.get_admin_context()
    # The context stays a cell's, as nova itself uses it.
    with nova_context.target_cell(context, mapping) as cctxt:
        # A daemon, so that a database that hangs keeps no process.
        threading.Thread(
            target=_ask, args=(answer, select, cctxt), daemon=True
        ).start()
    return answer


class _Hanging(typing.NamedTuple):
    """A cell that has not answered."""

    answer: futures.Future[typing.Any]
    problem: NoAnswerError
    until: float


def say_problem(problem: Exception) -> str:
    """Describe why a cell has no answer."""
    if isinstance(problem, NoAnswerError):
        return str(problem)
    return messages.say_error(problem)


def _ask(
    answer: futures.Future[typing.Any],
    select: Callable[[typing.Any], typing.Any],
    cctxt: typing.Any,
) -> None:
    try:
        answer.set_result(select(cctxt))
    except Exception as exc:
        answer.set_exception(exc)
