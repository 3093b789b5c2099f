# SPDX-License-Identifier: Apache-2.0

"""Questions to nova's cells, in threads of our own.

nova 34 asks cells in one small pool of threads (cell_worker_thread_pool_size),
its HostManager too, for the hosts of each request. A database that accepts a
connection and says nothing keeps a thread for good, because PyMySQL reads
without a timeout. A few requests of one member would so take all of them. Here
such a cell holds a few threads that nobody else needs:

===============================  ============================================
a cell                           what follows
===============================  ============================================
answers, or fails at once        the next request asks it again
does not answer in five seconds  for a minute, requests that need it are told
                                 so at once; then one of them asks it again
left three threads waiting       the same, until one of them has an answer
===============================  ============================================

One question at a time is asked of a cell: of the requests that come together,
one finds out that it is silent.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from concurrent import futures
import math
import threading
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception
from oslo_utils import timeutils

from nova_ext_sched import messages

#: How long a cell may take, in seconds. One that is well takes milliseconds.
SECONDS = 5

#: How long a silent cell is left alone, in seconds.
AGAIN = 60

# The connections that hang are of nova's own pool for the cell.
_MOST_HANGING = 3

Found = typing.TypeVar('Found')

#: Reads something of servers, or of other things with UUIDs, in one cell.
Select = Callable[[typing.Any, Collection[str]], Mapping[str, Found]]


class Answers(typing.NamedTuple, typing.Generic[Found]):
    """What cells answered.

    :ivar found: what all of them found
    :ivar faults: why the others have no answer, by UUID of the cell:
        nova.exception.CellTimeout where the database is silent or takes no
        connection; else what it or its driver raised
    """

    found: dict[str, Found]
    faults: dict[str, Exception]


class Cells:
    """Asks cells. A process has one such object, :data:`current`.

    It may be used by many threads or greenlets at once.
    """

    def __init__(self) -> None:
        self._cells: dict[str, _Cell] = {}

    def ask(
        self,
        ctxt: typing.Any,
        select: Select[Found],
        uuids: Mapping[str, Collection[str]],
    ) -> Answers[Found]:
        """Ask cells at the same time, and wait for their answers.

        :param select: called with a nova RequestContext of the cell and what
            to ask it about; it must change nothing, because nobody ends a
            thread that waits for good
        :param uuids: what to ask about, by UUID of the cell
        :raises nova.exception.CellMappingNotFound: there is no such cell;
            what the API database or its driver raises
        """
        found: dict[str, Found] = {}
        faults: dict[str, Exception] = {}
        answers = {}
        # Threads give their turn back by themselves, so no two requests wait
        # for each other.
        for uuid, wanted in uuids.items():
            cell = self._get(ctxt, uuid)
            try:
                answers[uuid] = cell.begin(ctxt, select, wanted)
            except nova_exception.CellTimeout as exc:
                faults[uuid] = exc
        futures.wait(answers.values(), SECONDS)
        for uuid, answer in answers.items():
            try:
                found.update(self._cells[uuid].end(answer))
            except Exception as exc:
                faults[uuid] = exc
        return Answers(found, faults)

    def _get(self, ctxt: typing.Any, uuid: str) -> '_Cell':
        # nova.context.CELL_CACHE keeps what it connects to for good, too.
        cell = self._cells.get(uuid)
        if cell is None:
            mapping = objects.CellMapping.get_by_uuid(ctxt, uuid)
            # Another thread may have come first; its turns are the ones.
            cell = self._cells.setdefault(uuid, _Cell(mapping))
        return cell


class _Cell:
    def __init__(self, mapping: typing.Any) -> None:
        self._mapping = mapping
        # Whoever has it may ask. It is replaced where the thread that is to
        # give it back waits for good.
        self._turn = threading.Lock()
        self._silent_until = -math.inf
        self._hanging = 0
        self._lock = threading.Lock()

    def begin(
        self, ctxt: typing.Any, select: Select[Found], uuids: Collection[str]
    ) -> futures.Future[Mapping[str, Found]]:
        turn = self._turn
        if (
            timeutils.now() < self._silent_until
            or self._hanging >= _MOST_HANGING
            or not turn.acquire(timeout=SECONDS)
            # Who had the turn found the cell silent, and gives it back late.
            or turn is not self._turn
        ):
            raise self._timeout()
        answer: futures.Future[Mapping[str, Found]] = futures.Future()
        try:
            # The context stays the cell's, as nova itself uses it.
            with nova_context.target_cell(ctxt, self._mapping) as cctxt:
                # A scheduler that stops does not wait for one that hangs.
                threading.Thread(
                    target=self._run,
                    args=(turn, answer, select, cctxt, uuids),
                    daemon=True,
                ).start()
        except BaseException:
            turn.release()
            raise
        return answer

    def _run(
        self,
        turn: threading.Lock,
        answer: futures.Future[Mapping[str, Found]],
        select: Select[Found],
        cctxt: typing.Any,
        uuids: Collection[str],
    ) -> None:
        try:
            answer.set_result(select(cctxt, uuids))
        except Exception as exc:
            answer.set_exception(exc)
        with self._lock:
            turn.release()
            if turn is not self._turn:
                self._hanging -= 1

    def end(
        self, answer: futures.Future[Mapping[str, Found]]
    ) -> Mapping[str, Found]:
        with self._lock:
            if not answer.done():
                self._turn = threading.Lock()
                self._hanging += 1
                self._silent_until = timeutils.now() + AGAIN
                raise self._timeout()
        try:
            return answer.result()
        except db_exception.DBConnectionError as exc:
            # The same outage, which other cells need not hear of.
            raise self._timeout(messages.describe(exc)) from exc

    def _timeout(
        self, got: str = f'none. It is asked again {AGAIN} seconds later'
    ) -> nova_exception.CellTimeout:
        name = self._mapping.name or self._mapping.uuid
        return nova_exception.CellTimeout(
            f'the database of cell {messages.clean(name)} (nova-manage '
            f'cell_v2 list_cells): expected an answer in {SECONDS} seconds, '
            f'got {got}'
        )


current = Cells()
