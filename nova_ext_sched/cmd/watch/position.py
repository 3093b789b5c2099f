# SPDX-License-Identifier: Apache-2.0

"""How far the watcher has come in each cell, kept in a file.

IDs of rows grow with time, but a transaction that began earlier may end
later: a row may appear behind others that were read. So an ID counts as
passed only when the rows up to it are older than :data:`SETTLED`; above it
the IDs that were handled are kept one by one.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime
import json
import os
import pathlib
import tempfile
import typing

from nova_ext_sched import exception

#: Age at which no further row is expected before a row: transactions of nova
#: that add one end within it.
SETTLED = datetime.timedelta(seconds=60)

#: Age at which a row that nova has not finished is no longer waited for.
ABANDONED = datetime.timedelta(hours=2)

_VERSION = 1


class HasIdAndTime(typing.Protocol):
    """A row of :mod:`.refusals`."""

    @property
    def id(self) -> int: ...

    @property
    def time(self) -> datetime.datetime: ...

    @property
    def is_open(self) -> bool: ...


@dataclasses.dataclass
class Mark:
    """How far one kind of row of one cell was handled.

    :ivar passed: no row up to this ID is handled again
    :ivar handled: IDs above it that were handled
    """

    passed: int
    handled: set[int] = dataclasses.field(default_factory=set)

    def is_new(self, row: HasIdAndTime) -> bool:
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

    def add(self, row_id: int) -> None:
        """Note that a row was handled."""
        self.handled.add(row_id)

    def advance(
        self,
        rows: Iterable[HasIdAndTime],
        settled: int | None,
        now: datetime.datetime,
    ) -> None:
        """Pass what is settled, up to the first row that still has to wait.

        :param rows: those above :attr:`passed`, in any order
        :param settled: no row will appear any more up to this ID
        :param now: in UTC
        """
        if settled is None:
            return
        for row in rows:
            waits = row.is_open and now - row.time < ABANDONED
            if row.id <= settled and (waits or self.is_new(row)):
                settled = row.id - 1
        self.passed = settled
        self.handled = {one for one in self.handled if one > self.passed}


Marks = dict[str, dict[str, Mark]]


class File:
    """The file that holds the marks of every cell.

    It is written anew as a whole and put in place, so that a reader or a
    crash finds the old one or the new one.

    :param path: None to keep nothing: the next start begins at its present
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path

    def read(self) -> Marks:
        """Return the marks by cell and kind; empty without a file.

        :raises exception.InvalidValue: the file holds something else
        :raises OSError: it cannot be read
        """
        if self._path is None or not self._path.exists():
            return {}
        text = self._path.read_text()
        try:
            document = json.loads(text)
            if document['version'] != _VERSION:
                raise ValueError(document['version'])
            return {
                cell: {
                    kind: Mark(int(one['passed']), set(one['handled']))
                    for kind, one in kinds.items()
                }
                for cell, kinds in document['cells'].items()
            }
        except (ValueError, LookupError, TypeError, AttributeError) as exc:
            raise exception.InvalidValue(
                where=str(self._path),
                expected='the state of nova-ext-sched watch (to begin at the '
                'present, remove the file)',
                got=text[:100],
            ) from exc

    def write(self, marks: Mapping[str, Mapping[str, Mark]]) -> None:
        """Replace the file.

        :raises OSError: it cannot be written
        """
        if self._path is None:
            return
        document = {
            'version': _VERSION,
            'cells': {
                cell: {
                    kind: {
                        'passed': mark.passed,
                        'handled': sorted(mark.handled),
                    }
                    for kind, mark in kinds.items()
                }
                for cell, kinds in marks.items()
            },
        }
        with tempfile.NamedTemporaryFile(
            'w', dir=self._path.parent, prefix=self._path.name, delete=False
        ) as new:
            try:
                json.dump(document, new)
                new.flush()
                os.fsync(new.fileno())
                os.replace(new.name, self._path)
            except BaseException:
                pathlib.Path(new.name).unlink(missing_ok=True)
                raise
