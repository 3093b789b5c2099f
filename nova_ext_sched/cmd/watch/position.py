# SPDX-License-Identifier: Apache-2.0

"""How far the watcher has come in each cell, kept in a file.

IDs of rows grow with time, but a transaction that began earlier may end
later: a row may appear behind others that were read. So an ID counts as
passed only :data:`SETTLED` after the watcher first saw it, or a higher one;
above it the IDs that were handled are kept one by one. The clocks of others
do not matter.
"""

import collections
from collections.abc import Iterable
import dataclasses
import datetime
import json
import pathlib
import sqlite3

from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched.cmd.watch import refusals

#: Seconds after which no further row is expected before a row that was seen:
#: transactions of nova that add one end within it.
SETTLED = 60.0

#: Age at which a row that nova has not finished is no longer waited for.
ABANDONED = datetime.timedelta(hours=2)

# "nxsw": whose file it is. Another form of its table is to have another one.
_APPLICATION_ID = 0x6E787377

# How each file of SQLite begins.
_BEGINNING = b'SQLite format 3\0'


@dataclasses.dataclass
class Mark:
    """How far one kind of row of one cell was handled.

    :ivar passed: no row up to this ID is handled again
    :ivar handled: IDs above it that were handled
    :ivar looked: when the rows were read last, in seconds since the epoch
    """

    passed: int
    handled: set[int] = dataclasses.field(default_factory=set)
    looked: float = 0.0
    # The highest IDs that this process saw, each with the moment when.
    _seen: collections.deque[tuple[float, int]] = dataclasses.field(
        default_factory=collections.deque, compare=False, repr=False
    )
    _settled: int = dataclasses.field(default=0, compare=False, repr=False)

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

    def see(self, newest: int, moment: float) -> None:
        """Note the highest ID that there is.

        :param moment: not before it was read, by a clock that only grows
        """
        if newest > (self._seen[-1][1] if self._seen else self._settled):
            self._seen.append((moment, newest))

    def advance(self, rows: Iterable[refusals.Row], moment: float) -> None:
        """Pass what is settled, up to the first row that still has to wait.

        :param rows: those above :attr:`passed`, in any order
        :param moment: not after they were read, by the clock of :meth:`see`
        """
        while self._seen and self._seen[0][0] <= moment - SETTLED:
            self._settled = self._seen.popleft()[1]
        begun = timeutils.utcnow() - ABANDONED
        held = [
            row.id - 1
            for row in rows
            if self.is_new(row) or (row.is_open and row.time > begun)
        ]
        self.passed = min([max(self._settled, self.passed), *held])
        self.handled = {one for one in self.handled if one > self.passed}


#: By cell and kind.
Marks = dict[tuple[str, str], Mark]


class File:
    """The file that holds the marks of every cell, a database of SQLite.

    One process at a time has it.

    :param path: None to keep nothing: the next start begins at its present
    :ivar path: the same; SQLite's lock ends where this process closes another
        descriptor of the file
    :raises OSError: the file cannot be written
    :raises exception.InvalidValue: another process has it, or it holds
        something else
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self.path = path
        if path is not None:
            with path.open('a+b') as file:
                file.seek(0)
                # SQLite takes a file of few bytes for an empty one.
                if file.read(len(_BEGINNING)) not in (b'', _BEGINNING):
                    raise self._refuse('a file of another kind')
        self._database = sqlite3.connect(path or ':memory:', timeout=0)
        ask = self._database.execute
        try:
            ask('PRAGMA locking_mode = EXCLUSIVE')
            ask('BEGIN EXCLUSIVE')
            if ask('SELECT * FROM sqlite_master').fetchone() is None:
                ask(f'PRAGMA application_id = {_APPLICATION_ID}')
                ask(
                    'CREATE TABLE marks (cell TEXT, kind TEXT, passed INTEGER,'
                    ' handled TEXT, looked REAL, PRIMARY KEY (cell, kind))'
                )
            if ask('PRAGMA application_id').fetchone() != (_APPLICATION_ID,):
                raise self._refuse('another database')
            self._database.commit()
        except sqlite3.Error as exc:
            raise self._refuse(str(exc)) from exc

    def _refuse(self, got: str) -> exception.InvalidValue:
        return exception.InvalidValue(
            where=str(self.path),
            expected='the state of nova-ext-sched watch, which no other one '
            'uses (to begin at the present, remove the file)',
            got=got,
        )

    def read(self) -> Marks:
        """Return the marks."""
        return {
            (cell, kind): Mark(passed, set(json.loads(handled)), looked)
            for cell, kind, passed, handled, looked in self._database.execute(
                'SELECT cell, kind, passed, handled, looked FROM marks'
            )
        }

    def write(self, marks: Marks) -> None:
        """Keep marks, on the disk when this returns.

        :raises OSError: they cannot be written; those of before are kept
        """
        rows = [
            (*place, one.passed, json.dumps(sorted(one.handled)), one.looked)
            for place, one in marks.items()
        ]
        try:
            with self._database:
                self._database.executemany(
                    'REPLACE INTO marks VALUES (?, ?, ?, ?, ?)', rows
                )
        except sqlite3.Error as exc:
            raise OSError(f'{self.path}: {exc}') from exc
