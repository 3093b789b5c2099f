# SPDX-License-Identifier: Apache-2.0

"""One turn of the watcher: read refusals, explain them, keep the records."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
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

# Those of each kind of each cell.
Rows = Mapping[tuple[str, str], Sequence[refusals.Row]]


@dataclasses.dataclass
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

    asked: cells.Cells
    explaining: explainer.Explainer
    kept: records.Records
    state: position.File
    figures: metrics.Metrics
    signals: interrupt.Interrupt

    def __post_init__(self) -> None:
        self._labels = labels.Labels(self.figures)
        self._marks = self.state.read()
        looks = [mark.looked for mark in self._marks.values()]
        self._known = self.kept.known(
            max(looks, default=time.time()), self.state.path
        )
        # Since when refusals wait, by the names of their rows, and why the
        # last one did.
        self._since: dict[str, float] = {}
        self._problem = ''
        self._now = 0.0
        self._failures = 0

    def turn(self) -> None:
        """Record what nova refused since the last turn.

        :raises OSError: a record or the state cannot be written; the next
            turn tries again
        :raises interrupt.Stop: a signal arrived
        """
        self._now = timeutils.now()
        self._failures = 0
        self.explaining.begin_turn()
        with self.signals.allowed():
            rows = self._read()
        waiting = sorted(
            (
                row
                for place, each in rows.items()
                for row in each
                if self._marks[place].is_new(row)
            ),
            key=lambda row: (row.name in self._since, row.time, row.id),
        )
        self.figures.waiting.set(len(waiting))
        try:
            for number, row in enumerate(waiting):
                if number and number % _BATCH == 0:
                    self._advance(rows)
                is_known = (row.name, record.show(row.time)) in self._known
                if is_known or self._record(row):
                    self._since.pop(row.name, None)
                    self._marks[row.place].handled.add(row.id)
                    self.figures.waiting.dec()
        finally:
            self._advance(rows)
        if not waiting:
            self._since.clear()
        if not self._since:
            self._problem = ''
        self.figures.worked()

    def _read(self) -> Rows:
        rows = {}
        found = self.asked.ask(self._read_cell)
        for cell, (by_kind, newest) in found.items():
            for kind, each in by_kind.items():
                rows[cell, kind] = each
                mark = self._marks.setdefault(
                    (cell, kind), position.Mark(newest[kind])
                )
                mark.see(newest[kind], timeutils.now())
                mark.looked = time.time()
        names = self.asked.names
        self.figures.unread.set(len(self.asked.silent))
        self.figures.looked_at(names.values(), [names[cell] for cell in found])
        return rows

    def _read_cell(
        self, ctxt: typing.Any
    ) -> tuple[dict[str, list[refusals.Row]], dict[str, int]]:
        """Read a cell; its database may be restored, or rows archived."""
        cell = ctxt.cell_uuid
        after = {
            kind: mark.passed
            for (uuid, kind), mark in self._marks.items()
            if uuid == cell
        }
        rows, newest = refusals.read(ctxt, after or None)
        behind = [kind for kind in after if newest[kind] < after[kind]]
        for kind in behind:
            looked = datetime.datetime.fromtimestamp(
                self._marks[cell, kind].looked, datetime.UTC
            )
            passed = refusals.last_id_before(
                ctxt, kind, timeutils.normalize_time(looked)
            )
            LOG.warning(
                'Cell %(cell)s: its newest %(kind)s has ID %(newest)s, and '
                '%(passed)s was recorded already. Its database was restored '
                'or made anew, or rows were archived. Records go on behind '
                'ID %(new)s.',
                {
                    'cell': self.asked.names[cell],
                    'kind': kind,
                    'newest': newest[kind],
                    'passed': after[kind],
                    'new': passed,
                },
            )
            after[kind] = passed
            self._marks[cell, kind] = position.Mark(passed)
        if behind:
            self.figures.set_back.labels(self.asked.names[cell]).inc()
            return refusals.read(ctxt, after)
        return rows, newest

    def _record(self, row: refusals.Row) -> bool:
        """Record a refusal; return False if it has to wait."""
        if row.cell in self.asked.silent:
            return False
        with self.signals.allowed():
            found = self.asked.ask(
                lambda ctxt: refusals.complete(ctxt, row), row.cell
            )
        if row.cell not in found:
            return False
        refusal = found[row.cell]
        try:
            if self._failures >= _MOST_FAILURES:
                raise explainer.Unavailable(self._problem)
            answer = self.explaining.explain(refusal)
        except explainer.Unavailable as exc:
            self._failures += 1
            since = self._since.setdefault(row.name, self._now)
            if self._now - since < PATIENCE:
                # An outage is one line of the log.
                if not self._problem:
                    LOG.warning('Refusals wait to be explained: %s', exc)
                self._problem = str(exc)
                return False
            answer = explainer.Answer(reason='unavailable', detail=str(exc))
        else:
            self._failures = 0
        self.kept.write(record.make(refusal, answer))
        delay = timeutils.utcnow() - refusal.time
        self.figures.delay.observe(max(0.0, delay.total_seconds()))
        if answer.document is None:
            self.figures.unexplained.labels(answer.reason).inc()
        self._labels.count(refusal.operation, answer.constraint)
        self.figures.worked()
        return True

    def _advance(self, rows: Rows) -> None:
        for place, each in rows.items():
            self._marks[place].advance(each, self._now)
        self.state.write(self._marks)
