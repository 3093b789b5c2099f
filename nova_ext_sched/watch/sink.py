# SPDX-License-Identifier: Apache-2.0

"""Writes records, and the positions up to which they were written."""

from collections.abc import Mapping
import fcntl
import json
import os
import pathlib
import typing

from nova_ext_sched import exception
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import records

#: Changes when the state has another form.
FORMAT = 1


class Sink:
    """Writes each record, and then the positions that include it.

    ============================  ===========================================
    the process is killed         the next process
    ============================  ===========================================
    before it writes a record     writes it
    between record and positions  finds the record at the end of the file; to
                                  standard output it writes it again
    after both                    writes the records after it
    ============================  ===========================================

    :param path: the file of the records; None for standard output
    :param state: the file of the positions; None to keep none: the next
        process then records refusals from its start on
    :raises OSError: a file cannot be written
    :raises exception.InvalidValue: another process has a file open, or it
        holds something else
    """

    def __init__(
        self, path: pathlib.Path | None, state: pathlib.Path | None
    ) -> None:
        self._records = records.Records(path)
        self._state = state
        if state is not None:
            self._lock = state.with_name(f'{state.name}.lock').open('a')
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._refuse('one that another process uses') from None

    def read(self) -> feed.Positions:
        """Return the positions, which include every record that was written.

        :raises OSError: a file cannot be read
        :raises exception.InvalidValue: the file has no positions
        """
        if self._state is None or not self._state.exists():
            return {}
        try:
            written = json.loads(self._state.read_bytes())
            if written['format'] != FORMAT:
                raise ValueError(f'format {written["format"]}')
            positions = {
                (cell, kind): feed.Position(passed, frozenset(handled))
                for cell, kind, passed, handled in written['positions']
            }
        except (LookupError, TypeError, ValueError) as exc:
            raise self._refuse(f'another file: {exc}') from exc
        for cell, kind, number in self._records.last_ids():
            if (source := (cell, kind)) in positions:
                positions[source] = positions[source].handle(number)
        return positions

    def write(self, record: Mapping[str, typing.Any]) -> None:
        """Write a record; :meth:`note` its position before the next one.

        :raises OSError: it cannot be written; nothing of it is then in a file
        """
        self._records.write(record)

    def note(self, positions: feed.Positions) -> None:
        """Write the positions; they are on the disk when this returns.

        :raises OSError: they cannot be written; the old ones are kept
        """
        if self._state is None:
            return
        text = json.dumps(
            {
                'format': FORMAT,
                'positions': [
                    [*source, position.passed, sorted(position.handled)]
                    for source, position in positions.items()
                ],
            }
        )
        new = self._state.with_name(f'{self._state.name}.new')
        with new.open('w') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._state)

    def _refuse(self, got: str) -> exception.InvalidValue:
        return exception.InvalidValue(
            where=str(self._state),
            expected='the state of nova-ext-sched watch, which no other one '
            'uses (to begin at the present, remove the file)',
            got=got,
        )
