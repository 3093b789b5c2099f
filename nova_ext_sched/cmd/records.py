# SPDX-License-Identifier: Apache-2.0

"""The records that ``watch`` writes and ``explain --recorded`` reads.

They go to a file that logrotate may move, or to standard output.
"""

import json
import os
import pathlib
import sys
import typing

#: Where explain looks by default; the documentation's systemd unit writes it.
PATH = pathlib.Path('/var/log/nova/nova-ext-sched-watch.json')

# A crash may come between a record and the note of the position. At most this
# many bytes are looked through for records of before.
_TAIL = 16 * 2**20

# Bytes that are read at once to find where the last line ends.
_PIECE = 4096


class Records:
    """Records of refusals, one line of JSON each, the latest last.

    A line is in the file as a whole or not at all. When another file takes
    the place of the file, or none is there, the next record goes to a new
    one.

    :param path: None for standard output
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path

    def known_ids(self) -> set[str]:
        """Return the IDs of the latest records of the file.

        After a crash these may be refusals that the position does not have.

        :raises OSError: the file cannot be read
        """
        if self._path is None or not self._path.exists():
            return set()
        with self._path.open('rb') as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().splitlines()
        return {
            record['id']
            for line in lines
            if (record := _parse(line)).get('id')
        }

    def write(self, record: typing.Mapping[str, typing.Any]) -> None:
        """Append a record, on the disk when this returns.

        :raises OSError: it cannot be written; nothing of it is then in a file
        """
        line = json.dumps(record, separators=(',', ':')) + '\n'
        if self._path is None:
            sys.stdout.write(line)
            sys.stdout.flush()
            return
        # Opened for each: logrotate needs no signal.
        with self._path.open('a+b', buffering=0) as file:
            end = _find_end(file)
            file.truncate(end)
            try:
                rest = memoryview(line.encode())
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise

    def find(self, wanted: str) -> dict[str, typing.Any] | None:
        """Return the latest record of a request or a server.

        :param wanted: a request ID (``req-...``) or the UUID of a server
        :raises OSError: the file cannot be read
        """
        if self._path is None:
            return None
        found = None
        needle = wanted.encode()
        with self._path.open('rb') as file:
            for line in file:
                if needle in line:
                    record = _parse(line)
                    if wanted in (
                        record.get('request_id'),
                        record.get('server'),
                    ):
                        found = record
        return found


def _find_end(file: typing.Any) -> int:
    """Return where the last whole line ends; a crash may leave a piece."""
    end: int = file.seek(0, os.SEEK_END)
    start = end
    while start:
        start = max(0, start - _PIECE)
        file.seek(start)
        if newline := file.read(end - start).rfind(b'\n') + 1:
            return start + newline
    return 0


def _parse(line: bytes) -> dict[str, typing.Any]:
    # The first line of a tail is a piece; a person may have edited the file.
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
