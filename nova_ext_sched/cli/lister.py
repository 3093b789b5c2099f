# SPDX-License-Identifier: Apache-2.0

"""A command that gives people a text, and programs rows or a document."""

import argparse
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import importlib.metadata
import json
import typing

from cliff import columns
from cliff import lister
from oslo_utils import timeutils

from nova_ext_sched.cli import layout

Row = Mapping[str, typing.Any]

# The format of people, of whole documents, and of rows whose cells are texts.
_TEXT = 'table'
_DOCUMENTS = ('json', 'yaml')
_FLAT = ('csv', 'value')


class Several(columns.FormattableColumn[list[typing.Any]]):
    """A cell of several values: a text for people, a list for programs."""

    def human_readable(self) -> str:
        """See cliff."""
        return ', '.join(map(str, self._value))


class Lister(lister.Lister):
    """What ``-f`` and ``-c`` choose.

    ======================  =================================================
    chosen                  what is written
    ======================  =================================================
    nothing                 :meth:`write_text`
    ``-f json``, ``yaml``   :meth:`make_document`; rows where it is None
    ``-f csv``, ``value``   rows; a cell of several values is JSON
    ``-c``,                 rows of these columns in any format, and in a
    ``--sort-column``       table where none is chosen
    ======================  =================================================
    """

    app: typing.Any
    formatter: typing.Any

    #: Said on standard error after rows.
    sentence = ''

    def sum_up(self) -> str:
        """Return what rows do not say; called when they are written."""
        return ''

    def write_text(self, out: layout.Layout, rows: list[Row]) -> None:
        """Write what people read.

        :param rows: of all columns, by their names
        """
        raise NotImplementedError

    def make_document(self, rows: list[Row]) -> typing.Any:
        """Return everything as one mapping; None where rows have it.

        :param rows: of all columns, by their names
        """
        return None

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[typing.Any]],
    ) -> int:
        """See cliff."""
        if not (parsed_args.columns or parsed_args.sort_columns):
            if parsed_args.formatter == _TEXT:
                out = layout.Layout(self.app.stdout, parsed_args.max_width)
                self.write_text(out, _name_cells(column_names, data))
                return 0
            if parsed_args.formatter in _DOCUMENTS:
                data = list(data)
                document = self.make_document(_name_cells(column_names, data))
                if document is not None:
                    self.formatter.emit_one(
                        list(document),
                        list(document.values()),
                        self.app.stdout,
                        parsed_args,
                    )
                    return 0
        if parsed_args.formatter in _FLAT:
            data = (list(map(_flatten, row)) for row in data)
        super().produce_output(parsed_args, column_names, data)
        self.sentence = self.sum_up()
        return 0


def begin_document(format_: int) -> dict[str, typing.Any]:
    """Return what every document begins with: its form, when, by what.

    :param format_: a number that changes when a reader must change
    """
    return {
        'format': format_,
        'time': timeutils.utcnow().isoformat(timespec='seconds') + 'Z',
        'versions': {
            name: importlib.metadata.version(name)
            for name in ('nova-ext-sched', 'nova')
        },
    }


def machine_readable(cell: object) -> object:
    """Return a cell as programs read it."""
    if isinstance(cell, columns.FormattableColumn):
        return cell.machine_readable()
    return cell


def _flatten(cell: object) -> object:
    value = machine_readable(cell)
    return cell if value is cell else json.dumps(value)


def _name_cells(
    column_names: Sequence[str], data: Iterable[Sequence[typing.Any]]
) -> list[Row]:
    return [dict(zip(column_names, row, strict=True)) for row in data]
