# SPDX-License-Identifier: Apache-2.0

"""The file of a saved cloud: lines of JSON, compressed.

====================  =====================================================
line                  what it says
====================  =====================================================
a mapping, the first  ``format``, when it was saved, and what belongs to
                      all of the cloud
a mapping             one thing: ``{"provider": {...}}``; ``table`` begins
                      a table
a list                a row of the table that began last
a mapping, the last   ``{"end": {...}}``, with the number of lines before it
====================  =====================================================

What reads it bounds the size: no file can fill the memory or the disk.
"""

from collections.abc import Iterator
import contextlib
import gzip
import json
import os
import pathlib
import typing
import zlib

from nova_ext_sched import exception
from nova_ext_sched import files
from nova_ext_sched import messages

#: Changes when a reader of the file must change.
FORMAT = 1

# Bytes: of a line, and of all lines of a file whatever its size. One of real
# clouds is 15 times as large as it is compressed.
_LONGEST = 8 * 2**20
_ALWAYS = 64 * 2**20
_MOST = 8 * 2**30
# Bytes of what is kept in memory: all but rows.
_KEPT = 256 * 2**20
_RATIO = 100

Record = typing.Any


class SavedInvalid(exception.InvalidValue):
    """A file is no saved cloud, or not one that can be trusted."""


class Writer:
    """Writes lines; see :func:`write`.

    :ivar lines: number of lines written
    """

    def __init__(self, stream: typing.Any) -> None:
        self._stream = stream
        self.lines = 0

    def write(self, record: Record) -> None:
        """Write one line."""
        text = json.dumps(record, separators=(',', ':'))
        self._stream.write(text.encode() + b'\n')
        self.lines += 1


@contextlib.contextmanager
def write(path: pathlib.Path) -> Iterator[Writer]:
    """Open a file to write: whole, for its owner alone, or not at all.

    :raises OSError: it cannot be written
    """
    with (
        files.replacing(path.resolve()) as file,
        gzip.GzipFile('', 'wb', 6, file, mtime=0) as stream,
    ):
        yield Writer(stream)


def read(path: pathlib.Path) -> Iterator[Record]:
    """Yield the lines of a file, each a mapping or a list.

    :raises SavedInvalid: it is damaged or cut, or larger than such a file is
    :raises OSError: it cannot be read
    """
    end, number, kept = None, 0, _KEPT
    with path.open('rb') as file, gzip.GzipFile(fileobj=file) as stream:
        left = min(
            _MOST, max(_ALWAYS, _RATIO * os.fstat(file.fileno()).st_size)
        )
        while line := _read_line(path, stream):
            left -= len(line)
            if not line.startswith(b'['):
                kept -= len(line)
            is_large = min(left, kept) < 0 or len(line) > _LONGEST
            if end is not None or is_large:
                raise invalid(
                    path,
                    'lines of some megabytes at most, an end, and a size that '
                    'fits that of the file',
                    f'more (line {number + 1})',
                )
            record = _parse(path, line, number)
            if isinstance(record, dict) and 'end' in record:
                end = record['end']
                if not isinstance(end, dict) or end.get('lines') != number:
                    raise invalid(path, f'{number} lines', str(end))
            number += 1
            yield record
    if end is None:
        raise invalid(path, 'an end', f'a file that was cut (line {number})')


def _read_line(path: pathlib.Path, stream: typing.Any) -> bytes:
    try:
        line: bytes = stream.readline(_LONGEST + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
        raise invalid(path, _WHAT, str(exc)) from exc
    return line


def _parse(path: pathlib.Path, line: bytes, number: int) -> Record:
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        raise invalid(
            path, f'JSON in line {number + 1}', type(exc).__name__
        ) from exc
    if not isinstance(record, dict | list):
        raise invalid(path, 'mappings and lists', f'line {number + 1}')
    return record


def _refuse(constant: str) -> typing.NoReturn:
    # Python reads Infinity and NaN, which no database holds.
    raise ValueError(constant)


_WHAT = 'a whole file that nova-ext-sched save wrote'


def invalid(path: pathlib.Path, expected: str, got: object) -> SavedInvalid:
    """Return the error of a file."""
    return SavedInvalid(where=f'--from {path}', expected=expected, got=got)


def say_note(note: list[str]) -> str:
    """Return a sentence of a file: a text, and the names that end it."""
    text, *names = map(messages.clean, note)
    return ' '.join([text, *[messages.first_few(names)] * bool(names)]) + '.'
