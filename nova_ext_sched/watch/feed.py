# SPDX-License-Identifier: Apache-2.0

"""Reads nova's refusals since the last look, each once.

IDs of rows grow with time, but a transaction that began earlier may end
later: a row may appear behind others that were read. So an ID counts as
passed only :data:`SETTLED` after the feed first saw it, or a higher one; above
it the IDs that were handled are kept one by one. The clocks of others do not
matter.
"""

import collections
from collections.abc import Iterable
import dataclasses
import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched.watch import cells
from nova_ext_sched.watch import refusals

#: Seconds after which no further row is expected before a row that was seen:
#: transactions of nova that add one end within it.
SETTLED = 60.0

#: Age at which a row that nova has not finished is no longer waited for.
ABANDONED = datetime.timedelta(hours=2)


class Position(typing.NamedTuple):
    """The position up to which one kind of row of one cell was handled.

    :ivar passed: no row up to this ID is handled again
    :ivar handled: IDs above it that were handled
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

    def handle(self, number: int) -> 'Position':
        """Return the position after the row of an ID was handled."""
        return self._replace(handled=self.handled | {number})

    def advance(
        self, rows: Iterable[refusals.Row], settled: int
    ) -> 'Position':
        """Return the position behind the settled and handled rows.

        The first row that still has to wait holds it.

        :param rows: those above :attr:`passed`, in any order
        :param settled: the ID up to which no further row is expected
        """
        begun = timeutils.utcnow() - ABANDONED
        held = [
            row.id - 1
            for row in rows
            if self.is_new(row) or (row.is_open and row.time > begun)
        ]
        passed = min([max(settled, self.passed), *held])
        return Position(
            passed, frozenset(one for one in self.handled if one > passed)
        )


#: By cell and kind of row.
Positions = dict[tuple[str, str], Position]


@dataclasses.dataclass
class _Seen:
    """The highest IDs that were seen, each with the moment when."""

    settled: int = 0
    _later: collections.deque[tuple[float, int]] = dataclasses.field(
        default_factory=collections.deque
    )

    def settle(self, moment: float) -> int:
        """Return the ID up to which no further row is expected.

        :param moment: before the rows were read
        """
        while self._later and self._later[0][0] <= moment - SETTLED:
            self.settled = self._later.popleft()[1]
        return self.settled

    def see(self, newest: int, moment: float) -> None:
        """Record the highest ID.

        :param moment: after it was read
        """
        if newest > (self._later[-1][1] if self._later else self.settled):
            self._later.append((moment, newest))


class Feed:
    """Reads the rows of all cells that may be refusals.

    A cell that the positions do not have begins at its present; one that does
    not answer is read later.

    :param positions: how far they were handled before
    :ivar positions: positions up to which they are handled
    """

    def __init__(
        self,
        asked: cells.WatchedCells,
        positions: Positions,
    ) -> None:
        self.asked = asked
        self.positions = dict(positions)
        self._seen = collections.defaultdict[tuple[str, str], _Seen](_Seen)

    def read(self) -> list[refusals.Row]:
        """Return the rows to handle, those of all cells by their times."""
        after = collections.defaultdict[str, dict[str, int]](dict)
        for (cell, kind), position in self.positions.items():
            after[cell][kind] = position.passed
        begin = timeutils.now()
        rows = self.asked.ask(
            lambda ctxt: refusals.read(ctxt, after.get(ctxt.cell_uuid))
        )
        end = timeutils.now()
        new: list[refusals.Row] = []
        for cell, (by_kind, newest) in rows.items():
            for kind, rows in by_kind.items():
                place = cell, kind
                before = self.positions.get(place, Position(newest[kind]))
                seen = self._seen[place]
                now = before.advance(rows, seen.settle(begin))
                seen.see(newest[kind], end)
                self.positions[place] = now
                new += filter(now.is_new, rows)
        return sorted(new, key=lambda row: (row.time, row.id))

    def complete(self, row: refusals.Row) -> refusals.Refusal | None:
        """Return the refusal of a row; None where its cell is silent."""
        if row.cell in self.asked.silent:
            return None
        found = self.asked.ask(
            lambda ctxt: refusals.complete(ctxt, row), row.cell
        )
        return found.get(row.cell)

    def handle(self, row: refusals.Row) -> None:
        """Mark a row as handled."""
        position = self.positions[row.place]
        self.positions[row.place] = position.handle(row.id)
