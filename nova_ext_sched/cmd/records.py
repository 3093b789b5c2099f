# SPDX-License-Identifier: Apache-2.0

"""The records that ``watch`` writes and ``explain --recorded`` reads.

They go to a file that logrotate may move, or to standard output.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import fcntl
import glob
import gzip
import io
import json
import os
import pathlib
import sys
import typing
import zlib

from nova_ext_sched import exception

#: Where explain looks by default; the documentation's systemd unit writes it.
PATH = pathlib.Path('/var/log/nova/nova-ext-sched-watch.json')

#: Bytes of a record, with its line break.
RECORD_BYTES = 64 * 1024

# How each record begins, and so a file of records, or what a crash left of it.
_BEGINNING = b'{"format":'
_BEGINNINGS = [_BEGINNING[:end] for end in range(len(_BEGINNING) + 1)]

# A crash may come between a record and the note of the position. At most this
# many bytes are looked through for records of before: hundreds.
_TAIL = 16 * 2**20

# Seconds by which the time of a file may lie before that of a process.
_CLOCKS = 60


class Records:
    """Records of refusals, one line of JSON each, the latest last.

    A line is in the file as a whole or not at all. When another file takes
    the place of the file, or none is there, the next record goes to a new
    one. One process at a time writes a file.

    :param path: None for standard output
    :raises OSError: the file cannot be written
    :raises exception.InvalidValue: another process writes it, or it is no
        file of records
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        if path is not None:
            self._open(path)

    def known(
        self, since: float, apart_from: pathlib.Path | None
    ) -> set[tuple[str, str]]:
        """Return ID and time of the refusals of the latest records.

        After a crash these may be refusals that the position does not have.
        logrotate may have moved the file meanwhile, and compressed it.

        :param since: seconds since the epoch; files that were not written
            after that are not looked through
        :param apart_from: a file that is not looked into
        :raises OSError: a file cannot be read
        """
        if self._path is None:
            return set()
        found = set()
        for path in self._path.parent.glob(f'{glob.escape(self._path.name)}*'):
            if (
                path.is_file()
                and path.stat().st_mtime >= since - _CLOCKS
                and not (apart_from and path.samefile(apart_from))
            ):
                for record in map(_parse, _last_lines(path)):
                    if record:
                        found.add((record['id'], record['refused']))
        return found

    def write(self, record: Mapping[str, typing.Any]) -> None:
        """Append a record, on the disk when this returns.

        :raises OSError: it cannot be written; nothing of it is then in a file
        """
        line = json.dumps(record, separators=(',', ':')) + '\n'
        if self._path is None:
            sys.stdout.write(line)
            sys.stdout.flush()
            return
        file = self._open(self._path)
        # A crash may have left a piece of a line.
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - RECORD_BYTES)
        tail = os.pread(file.fileno(), RECORD_BYTES, start)
        end = start + tail.rfind(b'\n') + 1
        file.truncate(end)
        try:
            rest = memoryview(line.encode())
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise

    def _open(self, path: pathlib.Path) -> io.FileIO:
        """Return the file that has the name now, locked."""
        with contextlib.suppress(FileNotFoundError):
            if self._file is not None and os.path.samestat(
                path.stat(), os.fstat(self._file.fileno())
            ):
                return self._file
        file = open(path, 'a+b', buffering=0)
        got: object = b''
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_file():
                got = os.pread(file.fileno(), len(_BEGINNING), 0)
        except BlockingIOError:
            got = 'one that another process has locked'
        if got not in _BEGINNINGS:
            file.close()
            raise exception.InvalidValue(
                where=str(path),
                expected='a file that no other nova-ext-sched watch writes, '
                'with nothing but records',
                got=got,
            )
        if self._file is not None:
            self._file.close()
        self._file = file
        return file


def find(path: pathlib.Path, wanted: str) -> dict[str, typing.Any] | None:
    """Return the latest record of a request or a server.

    :param wanted: a request ID (``req-...``) or the UUID of a server
    :raises OSError: the file cannot be read
    """
    found = None
    needle = wanted.encode()
    with path.open('rb') as file:
        for line in file:
            if needle in line:
                record = _parse(line)
                if wanted in (record.get('request_id'), record.get('server')):
                    found = record
    return found


def _last_lines(path: pathlib.Path) -> Iterator[bytes]:
    opened = gzip.open if path.suffix == '.gz' else open
    # gzip may be at work.
    with contextlib.suppress(EOFError, gzip.BadGzipFile, zlib.error):
        with opened(path, 'rb') as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            yield from file


def _parse(line: bytes) -> dict[str, typing.Any]:
    # The first line of a tail is a piece; a person may have edited the file.
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        named = ('id', 'refused', 'server')
        if isinstance(record, dict) and all(
            isinstance(record.get(key), str) for key in named
        ):
            return record
    return {}
