# SPDX-License-Identifier: Apache-2.0

"""Replaces the names in the lines of a saved cloud by other words.

:mod:`.words` says which, and by what.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import gzip
import json
import pathlib
import tempfile
import typing

from nova_ext_sched.saved import container
from nova_ext_sched.saved import words

_Text = Callable[[str], str]


@contextlib.contextmanager
def replacing(
    writer: container.Writer, folder: pathlib.Path
) -> Iterator[container.Writer]:
    """Yield a writer for the lines of a cloud; write them with other words.

    They are written when the block ends, because the order of words needs all
    of them. Until then they are in a file without a name.

    :param folder: where that file is
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        with gzip.GzipFile('', 'wb', 1, file) as stream:
            yield container.Writer(stream)
        chosen = words.Words()

        def read() -> Iterator[container.Record]:
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as stream:
                yield from map(json.loads, stream)

        for _ in change_texts(read(), chosen.note, chosen.keep):
            pass
        chosen.settle()
        for record in change_texts(read(), chosen.replace, str):
            writer.write(record)


def change_texts(
    records: Iterable[container.Record], text: _Text, keep: _Text
) -> Iterator[container.Record]:
    """Yield the lines of a file with each text changed.

    :param text: changes a text
    :param keep: takes a text that is nova's own
    """

    def change_value(name: str, value: typing.Any) -> typing.Any:
        if isinstance(value, str):
            return (keep if name in words.KEPT else text)(value)
        if isinstance(value, list):
            return [change_value(name, one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            text(key): change_value(key, one) for key, one in value.items()
        }

    columns: list[str] = []
    for record in records:
        if isinstance(record, list):
            yield [*map(change_value, columns, record)]
        elif 'format' in record:
            yield record | {
                'cells': change_value('cells', record['cells']),
                'options': {
                    group: {
                        name: value
                        if name in words.OPTIONS.get(group, '').split()
                        else change_value(name, value)
                        for name, value in options.items()
                    }
                    for group, options in record['options'].items()
                },
            }
        elif 'table' in record:
            columns = record['columns']
            yield record | {'cell': text(record['cell'])}
        elif 'classes' in record or 'extensions' in record:
            for names in record.values():
                [*map(keep, names)]
            yield record
        elif 'end' in record:
            notes = [
                [note, *map(text, names)]
                for note, *names in record['end']['notes']
            ]
            yield {'end': record['end'] | {'notes': notes}}
        else:
            yield {
                kind: change_value(kind, value)
                for kind, value in record.items()
            }
