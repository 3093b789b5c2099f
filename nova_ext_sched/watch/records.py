# SPDX-License-Identifier: Apache-2.0

"""The records that ``watch`` writes and ``explain --recorded`` reads.

They go to a file that logrotate may move, or to standard output.
"""

from collections.abc import Mapping
import contextlib
import fcntl
import glob
import io
import json
import os
import pathlib
import sys
import typing

from nova_ext_sched import exception

#: The file that explain reads by default; the systemd unit of the
#: documentation writes it.
PATH = pathlib.Path('/var/log/nova/nova-ext-sched-watch.json')

#: Seconds after a refusal from which the cloud may have changed too much to
#: explain it.
LATE = 60

#: Bytes of a record, with its line break.
RECORD_BYTES = 64 * 1024

# The beginning of each record, so of a file of records, or of the piece that a
# crash left of one.
_BEGINNING = b'{"format":'
_BEGINNINGS = [_BEGINNING[:end] for end in range(len(_BEGINNING) + 1)]


class Records:
    """Records of refusals, one line of JSON each, the latest last.

    A line is in the file as a whole or not at all. If the file was moved or
    deleted, the next record goes to the file that now has the name, or to a
    new one. One process at a time writes a file.

    :param path: None for standard output
    :raises OSError: the file cannot be written
    :raises exception.InvalidValue: another process writes it, or it is not a
        file of records
    """

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        if path is not None:
            self._open(path)

    def last_ids(self) -> set[tuple[str, str, int]]:
        """Return the parts of the last record's ID in each file.

        logrotate may have moved the file, so the files that it moved are read,
        too.

        :raises OSError: a file cannot be read
        """
        ids = set()
        if self._path is not None:
            for path in _list_files(self._path):
                # A person may have edited the file.
                with contextlib.suppress(ValueError, KeyError):
                    cell, kind, number = _parse(_last_line(path))['id'].split(
                        ':'
                    )
                    ids.add((cell, kind, int(number)))
        return ids

    def write(self, record: Mapping[str, typing.Any]) -> None:
        """Append a record; it is on the disk when this returns.

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
        """Return the file that has the name now; lock it."""
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
    """Return the latest record of a request or server, or the one of an ID.

    Files that logrotate moved and did not compress are searched, too.

    :param wanted: a request ID (``req-...``), the UUID of a server, or a
        record's ID
    :raises OSError: a file cannot be read
    """
    # If there is no file, the error names the given one.
    for file in _list_files(path) or [path]:
        if record := _find(file, wanted):
            return record
    return None


def _list_files(path: pathlib.Path) -> list[pathlib.Path]:
    """Return a file and its rotated ones, the last written first."""
    found = filter(
        pathlib.Path.is_file, path.parent.glob(f'{glob.escape(path.name)}*')
    )
    return sorted(found, key=lambda one: one.stat().st_mtime, reverse=True)


def _find(path: pathlib.Path, wanted: str) -> dict[str, typing.Any] | None:
    last = None
    # Python decodes bytes of an argument that the locale does not know as lone
    # surrogates.
    needle = wanted.encode(errors='surrogateescape')
    with path.open('rb') as file:
        for line in file:
            if needle in line:
                record = _parse(line)
                names = ('id', 'request_id', 'server')
                if wanted in map(record.get, names):
                    last = record
    return last


def _last_line(path: pathlib.Path) -> bytes:
    """Return the last whole line; a crash may have left a piece of one."""
    with path.open('rb') as file:
        file.seek(max(0, path.stat().st_size - 2 * RECORD_BYTES))
        return file.read().rpartition(b'\n')[0].rpartition(b'\n')[2]


def _parse(line: bytes) -> dict[str, typing.Any]:
    # A person may have edited the file.
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        named = ('id', 'refused', 'server')
        if isinstance(record, dict) and all(
            isinstance(record.get(key), str) for key in named
        ):
            return record
    return {}
