# SPDX-License-Identifier: Apache-2.0

"""Reads the refusals that are not handled yet, so that each is handled once.

IDs of rows grow with time, but a transaction that began earlier may end later:
a row with a lower ID may appear after rows with higher ones were read. So an
ID counts as passed only :data:`SETTLED` seconds after the feed first saw it or
a higher one. Until then the feed remembers each handled ID. Only the test for
:data:`ABANDONED` compares a time of nova's with this host's clock.
"""

import collections
from collections.abc import Iterable
import dataclasses
import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched.watch import cells
from nova_ext_sched.watch import refusals

#: Seconds within which nova's transactions end: after that no row appears
#: below an ID that was seen before.
SETTLED = 60.0

#: The age at which a row that nova has not finished is given up.
ABANDONED = datetime.timedelta(hours=2)


class Position(typing.NamedTuple):
    """The position up to which one kind of row of one cell was handled.

    :ivar passed: the ID up to which all rows are done
    :ivar handled: higher IDs that were handled
    """

    passed: int
    handled: frozenset[int] = frozenset()

    def is_new(self, row: refusals.Row) -> bool:
        """Return whether a row is to be handled.

        ==================  =======
        row                 result
        ==================  =======
        passed or handled   False
        open                False
        any other           True
        ==================  =======
        """
        return (
            row.id > self.passed
            and row.id not in self.handled
            and not row.is_open
        )

    def handle(self, row_id: int) -> 'Position':
        """Return the position with an ID marked as handled."""
        return self._replace(handled=self.handled | {row_id})

    def advance(
        self, rows: Iterable[refusals.Row], settled: int
    ) -> 'Position':
        """Return the position, moved up to the settled ID.

        It is not moved past a row that is still to be handled, or that is open
        and not abandoned.

        :param rows: those above :attr:`passed`, in any order
        :param settled: the ID up to which no further row is expected
        """
        oldest = timeutils.utcnow() - ABANDONED
        bounds = [
            row.id - 1
            for row in rows
            if self.is_new(row) or (row.is_open and row.time > oldest)
        ]
        passed = min([max(settled, self.passed), *bounds])
        return Position(
            passed, frozenset(id_ for id_ in self.handled if id_ > passed)
        )


#: Positions by cell and kind of row (:attr:`.refusals.Row.source`).
Positions = dict[tuple[str, str], Position]


@dataclasses.dataclass
class _Seen:
    """The highest IDs of a source, each with the time when it was seen."""

    settled: int = 0
    _later: collections.deque[tuple[float, int]] = dataclasses.field(
        default_factory=collections.deque
    )

    def settle(self, moment: float) -> int:
        """Return the ID up to which no further row is expected.

        :param moment: a time before the rows were read
        """
        while self._later and self._later[0][0] <= moment - SETTLED:
            self.settled = self._later.popleft()[1]
        return self.settled

    def see(self, newest: int, moment: float) -> None:
        """Record the highest ID.

        :param moment: a time after it was read
        """
        if newest > (self._later[-1][1] if self._later else self.settled):
            self._later.append((moment, newest))


class Feed:
    """Reads new refusals, of all cells.

    Of a cell without a position only rows from now on are read. A cell that
    does not answer is read when it answers again.

    :param watched: the cells that are asked
    :param positions: the positions to start from
    :ivar positions: the current positions
    """

    def __init__(
        self,
        watched: cells.WatchedCells,
        positions: Positions,
    ) -> None:
        self.cells = watched
        self.positions = dict(positions)
        self._seen = collections.defaultdict[tuple[str, str], _Seen](_Seen)

    def read(self) -> list[refusals.Row]:
        """Return the rows to handle, of all cells together, oldest first."""
        after = collections.defaultdict[str, dict[str, int]](dict)
        for (cell, kind), position in self.positions.items():
            after[cell][kind] = position.passed
        begun_at = timeutils.now()
        answers = self.cells.ask(
            lambda ctxt: refusals.read(ctxt, after.get(ctxt.cell_uuid))
        )
        ended_at = timeutils.now()
        new: list[refusals.Row] = []
        for cell, (by_kind, newest) in answers.items():
            for kind, rows in by_kind.items():
                source = cell, kind
                old = self.positions.get(source, Position(newest[kind]))
                seen = self._seen[source]
                position = old.advance(rows, seen.settle(begun_at))
                seen.see(newest[kind], ended_at)
                self.positions[source] = position
                new += filter(position.is_new, rows)
        return sorted(new, key=lambda row: (row.time, row.id))

    def complete(self, row: refusals.Row) -> refusals.Refusal | None:
        """Return the refusal of a row; None if its cell does not answer."""
        if row.cell in self.cells.silent:
            return None
        answers = self.cells.ask(
            lambda ctxt: refusals.complete(ctxt, row), row.cell
        )
        return answers.get(row.cell)

    def handle(self, row: refusals.Row) -> None:
        """Mark a row as handled."""
        position = self.positions[row.source]
        self.positions[row.source] = position.handle(row.id)
