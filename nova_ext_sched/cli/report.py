# SPDX-License-Identifier: Apache-2.0

"""How a command tells what it found: to people a text, to programs the rest.

A command makes a :class:`Report` before anything is written, and declares what
people read as :class:`Section`. It lays out nothing::

    sentence, first = report.begin('2 of 9 servers fail', 'Cell b is silent.')
    details = report.Section('Servers:', ['a', 'b'], 20, 'server')
    return report.Report(sentence, [*first, details], rows, status=3)

The first lines are the answer. What belongs to them follows, and what is long
is folded, with a count and the way to see all. Lines end between words. A name
or a UUID is broken only where it is longer than a line. ``--max-width`` means
the same everywhere: the most columns of a line. By default these are the
terminal's, those of ``COLUMNS`` where it is set, and 80 where there is
neither.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import io
import json
import shutil
import sys
import textwrap
import typing

from cliff import columns as cliff_columns
from cliff import lister

from nova_ext_sched import messages
from nova_ext_sched.cli import base

#: What shows all that is folded.
SEE_ALL = '-f json lists all'

#: In place of a number of what was not counted.
NONE = '-'

# The format of people, of whole documents, and of rows whose cells are texts.
_TEXT = 'table'
_DOCUMENTS = ('json', 'yaml')
_FLAT = ('csv', 'value')

# Where a label leaves less, the text stands below it; where indentation does,
# a line is longer than the width.
_NARROWEST = 20

# Of a name that a user gave a server, this much is seen on every terminal.
_SHORTEST_NAME = 12


class Line(typing.NamedTuple):
    """A row that people read.

    :ivar text: wraps
    :ivar label: stands before it; numbers of a section end in one column
    :ivar name: of a server, as a user wrote it; as much as has room is seen
    :ivar notes: paragraphs below it
    """

    text: str
    label: int | str = ''
    name: str = ''
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of what people read.

    :ivar title: the paragraph that it begins with
    :ivar rows: lines, or the cells of a table. Numbers and :data:`NONE` stand
        to the right. A cell that is a list is a text and notes on it.
    :ivar most: how many rows are seen of more; None for all. The last one is
        written in place of a line that would count it.
    :ivar noun: what a row is, in the singular
    :ivar columns: the heads of a table; empty for lines
    :ivar apart: whether an empty line stands before it
    :ivar indent: how far lines, and what of the title wraps, are set in
    """

    title: str = ''
    rows: Sequence[str | Line | Sequence[object]] = ()
    most: int | None = None
    noun: str = ''
    columns: Sequence[str] = ()
    apart: bool = True
    indent: int = 2


@dataclasses.dataclass(frozen=True)
class Report:
    """What a command found.

    :ivar sentence: the answer in one line, for whoever gets rows
    :ivar sections: what people read, the answer first
    :ivar rows: of the command's columns
    :ivar document: returns everything as one mapping; None where rows have it
    :ivar status: the exit status
    """

    sentence: str
    sections: Iterable[Section]
    rows: Iterable[Sequence[object]]
    document: Callable[[], Mapping[str, typing.Any]] | None = None
    status: int = base.FINE


def begin(
    head: str, *remarks: str, counts: Sequence[tuple[int, str]] = ()
) -> tuple[str, list[Section]]:
    """Return an answer in one line, and as the first sections of a text.

    :param head: a clause, without its stop
    :param remarks: sentences
    :param counts: numbers that the head stands on, and what they count
    """
    parts = ', '.join(f'{what} {number}' for number, what in counts)
    first = f'{head}: {parts}.' if parts else f'{head}.'
    lines = [Line(what, number) for number, what in counts]
    return ' '.join((first, *remarks)), [
        Section(f'{head}:' if parts else first, lines),
        *(Section(remark, apart=False) for remark in remarks),
    ]


class Cell(cliff_columns.FormattableColumn[typing.Any]):
    """A cell of several values: a text for people, a value for programs.

    :param text: by default the values, one after the other
    """

    def __init__(self, value: typing.Any, text: str | None = None) -> None:
        super().__init__(value)
        self._text = ', '.join(map(str, value)) if text is None else text

    def human_readable(self) -> str:
        """See cliff."""
        return self._text


class Lister(base.Command, lister.Lister):
    """A command that makes a report; ``-f`` and ``-c`` choose what of it.

    ======================  =================================================
    chosen                  what is written
    ======================  =================================================
    nothing                 the sections
    ``-f json``, ``yaml``   the document; rows where there is none
    ``-f csv``, ``value``   rows; a cell of several values is JSON
    ``-c``,                 rows of these columns in any format, and in a
    ``--sort-column``       table where none is chosen
    ======================  =================================================

    Where rows are written, the sentence goes to standard error.
    """

    formatter: typing.Any

    _report: Report

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """Return the names of the columns of the rows."""
        raise NotImplementedError

    def make_report(self, parsed_args: argparse.Namespace) -> Report:
        """Return everything that is to be told."""
        raise NotImplementedError

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Make the report.

        :raises base.UsageError: ``--column`` names none of the columns
        """
        names = self.get_columns(parsed_args)
        try:
            # Before the work; cliff would refuse it after.
            self._generate_columns_and_selector(parsed_args, names)
        except ValueError as exc:
            raise base.UsageError(
                f'There is no column '
                f'{messages.first_few(parsed_args.columns)}. The columns are '
                f'{", ".join(names)}.'
            ) from exc
        self._report = self.make_report(parsed_args)
        self.status = self._report.status
        return names, self._report.rows

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[typing.Any]],
    ) -> int:
        """See cliff."""
        found, format_ = self._report, parsed_args.formatter
        has_chosen = parsed_args.columns or parsed_args.sort_columns
        if format_ == _TEXT and not has_chosen:
            write(self.app.stdout, found.sections, parsed_args.max_width)
        elif format_ in _DOCUMENTS and found.document and not has_chosen:
            document = found.document()
            self.formatter.emit_one(
                list(document),
                list(document.values()),
                self.app.stdout,
                parsed_args,
            )
        else:
            if format_ in _FLAT:
                data = (list(map(_flatten, row)) for row in data)
            super().produce_output(parsed_args, column_names, data)
            self.app.stdout.flush()
            said = [Section(found.sentence)]
            write(sys.stderr, said, parsed_args.max_width)
        return 0


def _flatten(cell: object) -> object:
    if isinstance(cell, cliff_columns.FormattableColumn):
        return json.dumps(cell.machine_readable())
    return cell


def write(
    stream: typing.Any, sections: Iterable[Section], max_width: int = 0
) -> None:
    """Write what people read.

    :param max_width: ``--max-width``; 0 for the terminal's
    """
    if max_width <= 0:
        max_width = shutil.get_terminal_size().columns
    out = _Writer(stream, max_width)
    for number, section in enumerate(sections):
        if number and section.apart:
            out.say()
        out.write(section)


@dataclasses.dataclass
class _Writer:
    """Lays out sections.

    :ivar width: the number of columns
    """

    stream: typing.Any
    width: int

    def write(self, section: Section) -> None:
        if section.title:
            self.say(section.title, hang=section.indent)
        rows, most = section.rows, section.most
        shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
        if section.columns and shown:
            self._write_table(section.columns, shown)
        else:
            self._write_lines(shown, section.indent)
        if more := len(rows) - len(shown):
            noun = messages.count(f'more {section.noun}', more)
            self.say(f'and {noun} ({SEE_ALL})', section.indent)

    def say(
        self, text: str = '', indent: int = 0, label: str = '', hang: int = 2
    ) -> None:
        """Write a paragraph; without text an empty line.

        :param indent: how far the paragraph is set in
        :param label: what the first line begins with; the others are set in
            as far as it reaches. One that leaves no room stands by itself
        :param hang: how far the others are set in where there is no label
        """
        if label and indent + len(label) + _NARROWEST > self.width:
            self.say(label.rstrip(), indent)
            indent, label = indent + hang, ''
        first = ' ' * indent + label
        later = ' ' * (len(first) if label else indent + hang)
        lines = textwrap.wrap(
            messages.without_secrets(text),
            max(self.width, len(later) + _NARROWEST),
            initial_indent=first,
            subsequent_indent=later,
            break_on_hyphens=False,
        )
        self.stream.writelines(f'{line}\n' for line in lines or [first])

    def _write_lines(self, rows: Sequence[typing.Any], indent: int) -> None:
        lines = [row if isinstance(row, Line) else Line(row) for row in rows]
        numbers = [one.label for one in lines if isinstance(one.label, int)]
        wide = len(str(max(numbers, default=0)))
        for text, label, name, notes in lines:
            before = f'{label:>{wide}}  ' if label != '' else ''
            if name:
                room = self.width - indent - len(before) - len(text) - 2
                text = f'{text}  {_cut(messages.clean(name), room)}'
            self.say(text, indent, before)
            for note in notes:
                self.say(note, indent + 2)

    def _write_table(
        self, names: Sequence[str], rows: Sequence[typing.Any]
    ) -> None:
        """Write a table; the widest columns wrap."""
        # Of the extras: a command that lacks one must be able to say so.
        from rich import console
        from rich import padding
        from rich import table

        def render(cell: object) -> console.RenderableType:
            if not isinstance(cell, list):
                return str(cell)
            first, *notes = cell
            return console.Group(
                first, *(padding.Padding(note, (0, 0, 0, 2)) for note in notes)
            )

        shown = table.Table(box=None, pad_edge=False)
        for name, cells in zip(names, zip(*rows, strict=True), strict=True):
            is_number = any(
                isinstance(cell, int) or cell == NONE for cell in cells
            )
            shown.add_column(
                name,
                justify='right' if is_number else 'left',
                no_wrap=is_number,
                overflow='fold',
            )
        for row in rows:
            shown.add_row(*map(render, row))
        paper = console.Console(
            file=io.StringIO(),
            width=self.width,
            color_system=None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        paper.print(shown)
        # rich fills lines with blanks.
        for line in paper.file.getvalue().splitlines():
            self.stream.write(f'{line.rstrip()}\n')


def _cut(name: str, room: int) -> str:
    room = max(room, _SHORTEST_NAME)
    return name if len(name) <= room else f'{name[: room - 3]}...'
