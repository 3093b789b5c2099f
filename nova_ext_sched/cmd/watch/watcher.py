# SPDX-License-Identifier: Apache-2.0

"""One turn of the watcher: read refusals, explain them, keep the records."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import time
import typing

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched.cmd import records
from nova_ext_sched.cmd.watch import cells
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import labels
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import record
from nova_ext_sched.cmd.watch import refusals

LOG = logging.getLogger(__name__)

#: Seconds for which a refusal waits for a database or for placement before it
#: is recorded without an explanation.
PATIENCE = 300.0

# The position is noted after so many refusals of a turn: a crash repeats no
# more of them, fewer than Records.known() returns.
_BATCH = 100

# When so many refusals in a row cannot be explained, the others of the turn
# wait: what has to be asked is away for all.
_MOST_FAILURES = 3


class _Waiting(typing.NamedTuple):
    cell: str
    kind: str
    row: refusals.Row

    @property
    def key(self) -> tuple[str, str, int]:
        return self.cell, self.kind, self.row.id


class Watcher:
    """Keeps a record of every refusal, each once, in the order of their times.

    =====================================  =================================
    what happens                           what follows
    =====================================  =================================
    a cell does not answer                 its refusals are read later
    placement or a database does not       the refusal waits, and is tried
    answer while one is explained          again behind all others, for
                                           :data:`PATIENCE`; then it is
                                           recorded without an explanation
    the server is gone, or nova tried      recorded without an explanation
    hosts and ran out of them
    more refusals than may be explained    recorded without an explanation
    in a minute
    the records' file cannot be written    everything waits
    the process ends                       the next one goes on behind the
                                           last record
    the newest row of a cell is below      goes on behind what was there when
    what was recorded                      the cell was read last
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
        self._labels = labels.Labels()
        figures.begin(
            self._labels.operations,
            self._labels.constraints,
            explainer.REASONS,
        )
        self._marks = marks = state.read()
        looks = [
            one.looked for kinds in marks.values() for one in kinds.values()
        ]
        self._known = kept.known(max(looks, default=time.time()), state.path)
        # Since when refusals wait, and why the last one did.
        self._since: dict[tuple[str, str, int], float] = {}
        self._problem = ''
        self._now = 0.0
        self._failures = 0

    def turn(self) -> int:
        """Record what nova refused since the last turn.

        :returns: the number of records
        :raises OSError: a record or the state cannot be written; the next
            turn tries again
        :raises interrupt.Stop: a signal arrived
        """
        self._now = timeutils.now()
        self._failures = 0
        self._explain.begin_turn()
        with self._signals.allowed():
            self._begin_new_cells()
            pages = self._read()
        waiting = sorted(
            self._find_new(pages),
            key=lambda one: (one.key in self._since, one.row.time, one.row.id),
        )
        self._metrics.waiting.set(len(waiting))
        count = 0
        try:
            for start in range(0, len(waiting), _BATCH):
                if start:
                    self._advance(pages)
                batch = waiting[start : start + _BATCH]
                for one, refusal in self._complete(batch):
                    self._signals.check()
                    if self._is_known(refusal):
                        pass
                    elif self._record(one, refusal):
                        count += 1
                    else:
                        continue
                    self._since.pop(one.key, None)
                    self._marks[one.cell][one.kind].add(one.row.id)
                    self._metrics.waiting.dec()
        finally:
            self._advance(pages)
        if not waiting:
            self._since.clear()
        if not self._since:
            self._problem = ''
        self._metrics.worked()
        return count

    def _is_known(self, refusal: refusals.Refusal) -> bool:
        return (refusal.id, record.show(refusal.time)) in self._known

    def _begin_new_cells(self) -> None:
        found = self._cells.ask(
            refusals.last_ids, lambda uuid: uuid not in self._marks
        )
        for cell, ids in found.items():
            self._marks[cell] = {
                kind: position.Mark(one, looked=time.time())
                for kind, one in ids.items()
            }

    def _read(self) -> dict[str, dict[str, refusals.Page]]:
        def read(ctxt: typing.Any) -> dict[str, refusals.Page]:
            kinds = self._marks[ctxt.cell_uuid]
            after = {kind: mark.passed for kind, mark in kinds.items()}
            pages = refusals.read(ctxt, after)
            if all(pages[kind].newest >= after[kind] for kind in kinds):
                return pages
            self._set_back(ctxt, pages)
            return refusals.read(
                ctxt, {kind: mark.passed for kind, mark in kinds.items()}
            )

        pages = self._cells.ask(read, self._marks.__contains__)
        for cell, kinds in pages.items():
            for kind, page in kinds.items():
                mark = self._marks[cell][kind]
                mark.see(page.newest, timeutils.now())
                mark.looked = time.time()
        names = self._cells.names()
        self._metrics.unread.set(len(self._cells.silent))
        self._metrics.looked_at(
            names.values(), [names[cell] for cell in pages]
        )
        return pages

    def _set_back(
        self, ctxt: typing.Any, pages: Mapping[str, refusals.Page]
    ) -> None:
        """Go on where a cell's database was restored, or rows archived."""
        cell = self._cells.names()[ctxt.cell_uuid]
        for kind, mark in self._marks[ctxt.cell_uuid].items():
            if pages[kind].newest >= mark.passed:
                continue
            looked = datetime.datetime.fromtimestamp(
                mark.looked, datetime.UTC
            ).replace(tzinfo=None)
            passed = refusals.last_id_before(ctxt, kind, looked)
            LOG.warning(
                'Cell %(cell)s: its newest %(kind)s has ID %(newest)s, and '
                '%(passed)s was recorded already. Its database was restored '
                'or made anew, or rows were archived. Records go on behind '
                'ID %(new)s.',
                {
                    'cell': cell,
                    'kind': kind,
                    'newest': pages[kind].newest,
                    'passed': mark.passed,
                    'new': passed,
                },
            )
            mark.begin(passed)
        self._metrics.set_back.labels(cell).inc()

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

    def _record(self, one: _Waiting, refusal: refusals.Refusal) -> bool:
        """Record a refusal; return False if it has to wait."""
        try:
            if self._failures >= _MOST_FAILURES:
                raise explainer.Unavailable(self._problem)
            answer = self._explain.explain(refusal)
        except explainer.Unavailable as exc:
            self._failures += 1
            since = self._since.setdefault(one.key, self._now)
            if self._now - since < PATIENCE:
                self._warn(str(exc))
                return False
            answer = explainer.Answer(reason='unavailable', detail=str(exc))
        else:
            self._failures = 0
        self._records.write(record.make(refusal, answer))
        delay = timeutils.utcnow() - refusal.time
        self._metrics.delay.observe(max(0.0, delay.total_seconds()))
        if answer.document is None:
            self._metrics.unexplained.labels(answer.reason).inc()
        self._metrics.refusals.labels(
            self._labels.operation(refusal.operation),
            self._labels.constraint(answer.constraint),
        ).inc()
        self._metrics.worked()
        return True

    def _warn(self, problem: str) -> None:
        # An outage is one line of the log.
        if not self._problem:
            LOG.warning('Refusals wait to be explained: %s', problem)
        self._problem = problem

    def _advance(
        self, pages: Mapping[str, Mapping[str, refusals.Page]]
    ) -> None:
        now = timeutils.utcnow()
        for cell, kinds in pages.items():
            for kind, page in kinds.items():
                self._marks[cell][kind].advance(page.rows, self._now, now)
        self._state.write(self._marks)
