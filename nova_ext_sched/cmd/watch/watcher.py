# SPDX-License-Identifier: Apache-2.0

"""One turn of the watcher: read refusals, explain them, keep the records."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import typing

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import records
from nova_ext_sched.cmd.watch import cells
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import record
from nova_ext_sched.cmd.watch import refusals

LOG = logging.getLogger(__name__)

#: Time for which a refusal waits for a database or for placement before it is
#: recorded without an explanation.
PATIENCE = datetime.timedelta(minutes=5)

# The position is noted after so many refusals of a turn: a crash repeats no
# more of them, fewer than Records.known_ids() returns.
_BATCH = 100


class _Waiting(typing.NamedTuple):
    cell: str
    kind: str
    row: refusals.Row


class Watcher:
    """Keeps a record of every refusal, each once, in the order of their times.

    =====================================  =================================
    what happens                           what follows
    =====================================  =================================
    a cell does not answer                 its refusals are read later
    placement or a database does not       the refusal and those behind it
    answer while one is explained          wait, for :data:`PATIENCE`; then
                                           they are recorded without an
                                           explanation
    the server is gone, or nova tried      recorded without an explanation
    hosts and ran out of them
    more refusals than may be explained    recorded without an explanation
    in a minute
    the records' file cannot be written    everything waits
    the process ends                       the next one goes on behind the
                                           last record
    =====================================  =================================

    In a cell that the state does not have, it begins at the present.
    """

    def __init__(
        self,
        asked: cells.Cells,
        explain: explainer.Explainer,
        kept: records.Records,
        state: position.File,
        figures: metrics.Metrics,
        signals: interrupt.Interrupt,
    ) -> None:
        self._cells = asked
        self._explain = explain
        self._records = kept
        self._state = state
        self._metrics = figures
        self._signals = signals
        self._marks = state.read()
        self._known = kept.known_ids()
        self._problem = ''

    def turn(self) -> int:
        """Record what nova refused since the last turn.

        :returns: the number of records
        :raises OSError: a record or the state cannot be written; the next
            turn tries again
        :raises interrupt.Stop: a signal arrived
        """
        now = timeutils.utcnow()
        self._explain.begin_turn()
        with self._signals.allowed():
            self._begin_new_cells()
            pages = self._read(now)
        waiting = sorted(
            self._find_new(pages), key=lambda one: (one.row.time, one.row.id)
        )
        self._metrics.waiting.set(len(waiting))
        count = 0
        try:
            for start in range(0, len(waiting), _BATCH):
                if start:
                    self._advance(pages, now)
                batch = waiting[start : start + _BATCH]
                for one, refusal in self._complete(batch):
                    self._signals.check()
                    if refusal.id not in self._known:
                        if not self._record(refusal):
                            return count
                        count += 1
                    self._marks[one.cell][one.kind].add(one.row.id)
                    self._metrics.waiting.dec()
        finally:
            self._advance(pages, now)
        return count

    def _begin_new_cells(self) -> None:
        found = self._cells.ask(
            refusals.last_ids, lambda uuid: uuid not in self._marks
        )
        for cell, ids in found.items():
            self._marks[cell] = {
                kind: position.Mark(one) for kind, one in ids.items()
            }

    def _read(
        self, now: datetime.datetime
    ) -> dict[str, dict[str, refusals.Page]]:
        def read(ctxt: typing.Any) -> dict[str, refusals.Page]:
            marks = self._marks[ctxt.cell_uuid]
            after = {kind: mark.passed for kind, mark in marks.items()}
            return refusals.read(ctxt, after, now - position.SETTLED)

        pages = self._cells.ask(read, self._marks.__contains__)
        self._metrics.unread.set(len(self._cells.silent))
        return pages

    def _find_new(
        self, pages: Mapping[str, Mapping[str, refusals.Page]]
    ) -> Iterator[_Waiting]:
        for cell, kinds in pages.items():
            for kind, page in kinds.items():
                for row in filter(self._marks[cell][kind].is_new, page.rows):
                    yield _Waiting(cell, kind, row)

    def _complete(
        self, batch: Sequence[_Waiting]
    ) -> Iterator[tuple[_Waiting, refusals.Refusal]]:
        """Yield the refusals, but for those of cells that do not answer."""
        rows: dict[str, list[refusals.Row]] = {}
        for one in batch:
            rows.setdefault(one.cell, []).append(one.row)

        def read(ctxt: typing.Any) -> list[refusals.Action | None]:
            return [
                refusals.read_action(ctxt, row) for row in rows[ctxt.cell_uuid]
            ]

        with self._signals.allowed():
            found = self._cells.ask(read, rows.__contains__)
        actions = {cell: iter(each) for cell, each in found.items()}
        for one in batch:
            if one.cell in actions:
                action = next(actions[one.cell])
                yield one, refusals.make(one.cell, one.kind, one.row, action)

    def _record(self, refusal: refusals.Refusal) -> bool:
        """Record a refusal; return False if it has to wait."""
        try:
            answer = self._explain.explain(refusal)
        except explainer.Unavailable as exc:
            if timeutils.utcnow() - refusal.time < PATIENCE:
                self._warn(messages.clean(exc))
                return False
            answer = explainer.Answer(reason='unavailable', detail=str(exc))
        else:
            self._problem = ''
        self._records.write(record.make(refusal, answer))
        if answer.document is None:
            self._metrics.unexplained.labels(answer.reason).inc()
        self._metrics.refusals.labels(
            refusal.operation, answer.constraint
        ).inc()
        return True

    def _warn(self, problem: str) -> None:
        # An outage is one line of the log.
        if not self._problem:
            LOG.warning('Refusals wait to be explained: %s', problem)
        self._problem = problem

    def _advance(
        self,
        pages: Mapping[str, Mapping[str, refusals.Page]],
        now: datetime.datetime,
    ) -> None:
        for cell, kinds in pages.items():
            for kind, page in kinds.items():
                self._marks[cell][kind].advance(page.rows, page.settled, now)
        self._state.write(self._marks)
