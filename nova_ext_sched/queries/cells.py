# SPDX-License-Identifier: Apache-2.0

"""Questions to nova's cells, in threads of our own.

nova 34 asks cells in one small pool of threads (cell_worker_thread_pool_size),
its HostManager too, for the hosts of each request. A database that accepts a
connection and says nothing keeps a thread for good, because PyMySQL reads
without a timeout. A few requests of one member would so take all of them. Here
such a cell holds a few threads that nobody else needs; :mod:`.joined` says
how many, and when it is asked again.
"""

from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception

from nova_ext_sched import messages
from nova_ext_sched.queries import joined

# UUIDs in one question: as many as one statement takes.
_MOST_WANTED = 1000

Found = typing.TypeVar('Found')


class Answers(typing.NamedTuple, typing.Generic[Found]):
    """The answers of cells, and the cells that gave none.

    :ivar found: the rows of all of them
    :ivar faults: why the others have no answer, by UUID of the cell:
        nova.exception.CellTimeout where the database is silent or takes no
        connection; else what it or its driver raised
    """

    found: dict[str, Found]
    faults: dict[str, Exception]


class Cells:
    """Asks cells. A process has a few, :data:`current` among them.

    It may be used by many threads or greenlets at once.

    :param seconds: longest time for an answer; None as :mod:`.joined` says
    :param pauses: whether a cell is left alone after a silence
    """

    def __init__(
        self, seconds: float | None = None, pauses: bool = True
    ) -> None:
        self._seconds = seconds
        self._pauses = pauses
        self._cells: dict[str, _Cell] = {}

    def ask(
        self,
        ctxt: typing.Any,
        select: joined.Select[Found],
        uuids: Mapping[str, Collection[str]],
    ) -> Answers[Found]:
        """Ask cells at the same time, and wait for their answers.

        :param select: called with a nova RequestContext of the cell and what
            to ask it about, as :meth:`.joined.Database.join` says
        :param uuids: the things to ask about, by UUID of the cell
        :raises nova.exception.CellMappingNotFound: there is no such cell;
            what the API database or its driver raises
        """
        answers: dict[str, Found] = {}
        faults: dict[str, Exception] = {}
        # All, before the first question.
        cells = [(self._get(ctxt, uuid), uuids[uuid]) for uuid in uuids]
        questions = [cell.join(ctxt, select, wanted) for cell, wanted in cells]
        for (cell, wanted), question in zip(cells, questions, strict=True):
            cell.wait(question)
            if question.fault:
                faults[cell.uuid] = question.fault
            else:
                answers.update(
                    {
                        one: question.found[one]
                        for one in wanted
                        if one in question.found
                    }
                )
        return Answers(answers, faults)

    def _get(self, ctxt: typing.Any, uuid: str) -> '_Cell':
        # nova.context.CELL_CACHE keeps what it connects to for good, too.
        cell = self._cells.get(uuid)
        if cell is None:
            mapping = objects.CellMapping.get_by_uuid(ctxt, uuid)
            # Another thread may have come first; its questions are the ones.
            cell = self._cells.setdefault(
                uuid, _Cell(mapping, self._seconds, self._pauses)
            )
        return cell


class _Cell(joined.Database):
    def __init__(
        self, mapping: typing.Any, seconds: float | None, pauses: bool
    ) -> None:
        super().__init__(_MOST_WANTED, seconds, pauses)
        self.uuid: str = mapping.uuid
        self._mapping = mapping

    def call(
        self,
        ctxt: typing.Any,
        select: joined.Select[Found],
        wanted: Collection[str],
    ) -> Mapping[str, Found]:
        try:
            with nova_context.target_cell(ctxt, self._mapping) as cctxt:
                return select(cctxt, wanted)
        except db_exception.DBConnectionError as exc:
            # The same outage, which other cells need not hear of.
            raise self.fault(
                f'takes no connection: {messages.say_error(exc)}'
            ) from exc

    def fault(self, what: str) -> nova_exception.CellTimeout:
        name = self._mapping.name or self._mapping.uuid
        return nova_exception.CellTimeout(
            f'the database of cell {messages.clean(name)} (nova-manage '
            f'cell_v2 list_cells) {what}'
        )


current = Cells()

#: Asks cells that are disabled: nobody waits long for what hardly matters.
disabled = Cells(5)
