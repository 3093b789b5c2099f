# SPDX-License-Identifier: Apache-2.0

"""Reads refusals, has them explained and keeps the records, turn by turn."""

import contextlib
import dataclasses
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched.request_filters import base
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import record
from nova_ext_sched.watch import refusals
from nova_ext_sched.watch import sink

LOG = logging.getLogger(__name__)

#: Seconds for which a refusal waits for a database or for placement before it
#: is recorded without an explanation.
PATIENCE = 300.0

# The number of refusals in a row that cannot be explained from which the
# others of the turn wait: the service that has to be asked is away for all.
_MOST_FAILURES = 3


@dataclasses.dataclass
class Recorder:
    """Keeps a record of every refusal, each once, in the order of their times.

    =====================================  =================================
    event                                  effect
    =====================================  =================================
    a cell does not answer                 its refusals are read later
    placement or a database does not       the refusal waits, and is tried
    answer while a refusal is explained    again after all others, for
                                           :data:`PATIENCE` seconds; then it
                                           is recorded without an explanation
    the server is gone, or each host that  the refusal is recorded without an
    the scheduler chose refused it         explanation
    more refusals than can be explained    those are recorded without an
    in a minute                            explanation
    records or positions cannot be         everything waits
    written
    =====================================  =================================
    """

    feed: feed.Feed
    explaining: explainer.Explainer
    sink: sink.Sink
    figures: metrics.Metrics
    signals: interrupt.Interrupt

    def __post_init__(self) -> None:
        # The times since when refusals wait, by the names of their rows, and
        # the problem for which the last one does.
        self._since: dict[str, float] = {}
        self._problem = ''
        self._now = 0.0
        self._failures = 0

    def run(self, interval: float) -> None:
        """Take turns until a signal arrives; log the error of a turn.

        :param interval: seconds between two turns
        """
        failing = base.Outage(__name__)
        with contextlib.suppress(interrupt.Stop):
            while True:
                fault = None
                try:
                    self.turn()
                except Exception as exc:
                    fault = exc
                if fault:
                    failing.failed('Refusals cannot be recorded yet', fault)
                with self.signals.may_interrupt():
                    time.sleep(interval)

    def turn(self) -> None:
        """Record the refusals since the last turn.

        :raises OSError: a record or the positions cannot be written; the next
            turn tries again
        :raises interrupt.Stop: a signal arrived
        """
        self._now = timeutils.now()
        self._failures = 0
        self.explaining.begin_turn()
        with self.signals.may_interrupt():
            rows = self.feed.read()
        watched = self.feed.cells
        self.figures.unread.set(len(watched.silent))
        self.figures.looked_at(watched.names, watched.silent)
        # Refusals that have waited before come after all others.
        rows.sort(key=lambda row: row.name in self._since)
        self.figures.waiting.set(len(rows))
        self.explaining.others_wait = len(rows) > 1
        # Before the first record, and after each: so the noted positions lack
        # at most one record.
        self.sink.note(self.feed.positions)
        for row in rows:
            self._record(row)
        if not rows:
            self._since.clear()
        if not self._since:
            self._problem = ''
        self.figures.worked()

    def _record(self, row: refusals.Row) -> None:
        """Record a refusal, unless it has to wait."""
        with self.signals.may_interrupt():
            refusal = self.feed.complete(row)
        explained = refusal and self._explain(refusal)
        if not (refusal and explained):
            return
        self.sink.write(record.make(refusal, explained))
        self.feed.handle(row)
        self._since.pop(row.name, None)
        self._count(refusal, explained)
        self.sink.note(self.feed.positions)

    def _explain(
        self, refusal: refusals.Refusal
    ) -> explainer.Explained | None:
        """Return the explanation of a refusal; None if it has to wait."""
        try:
            if self._failures >= _MOST_FAILURES:
                raise explainer.Unavailable(self._problem)
            explained = self.explaining.explain(refusal)
        except explainer.Unavailable as exc:
            self._failures += 1
            since = self._since.setdefault(refusal.name, self._now)
            if self._now - since >= PATIENCE:
                return explainer.Explained(
                    reason='unavailable', detail=str(exc)
                )
            problem = str(exc)
        else:
            self._failures = 0
            return explained
        # Log one line for each outage.
        if not self._problem:
            LOG.warning('Refusals cannot be explained yet: %s', problem)
        self._problem = problem
        return None

    def _count(
        self, refusal: refusals.Refusal, explained: explainer.Explained
    ) -> None:
        delay = timeutils.utcnow() - refusal.time
        self.figures.delay.observe(max(0.0, delay.total_seconds()))
        if explained.document is None:
            self.figures.unexplained.labels(explained.reason).inc()
        self.figures.refusals.labels(
            refusal.operation or 'other',
            explained.find_constraint(refusal, 'label'),
        ).inc()
        self.figures.waiting.dec()
        self.figures.worked()
