# SPDX-License-Identifier: Apache-2.0

"""Reports of commands: text for people, documents and rows for programs.

A command makes a :class:`Report` before anything is written, and declares what
people read as :class:`Section`. It lays out nothing::

    sentence, first = report.begin('2 of 9 servers fail', 'Cell b is silent.')
    details = report.Section('Servers:', ['a', 'b'], 20, 'server')
    return report.Report(sentence, [*first, details], rows, status=3)

The first lines are the answer. What belongs to them follows, and what is long
is folded, with a count and the way to see all. ``--max-width`` means the same
everywhere: the most columns of a line. By default these are the terminal's,
those of ``COLUMNS`` where it is set, and 80 where there is neither.
"""

import argparse
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import json
import pathlib
import shutil
import sys
import types
import typing

from cliff import columns as cliff_columns
from cliff import lister

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import files
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import options
from nova_ext_sched.cli import page
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology

Line = layout.Line
Section = layout.Section
SEE_ALL = layout.SEE_ALL
NONE = layout.NONE
Indented = layout.Indented

# Formats: for people, of whole documents, and of rows of text.
_TEXT = 'table'
_DOCUMENTS = ('json', 'yaml')
_FLAT = ('csv', 'value')


@dataclasses.dataclass(frozen=True)
class Report:
    """The findings of a command: text, document, rows and exit status.

    :ivar sentence: the answer in one line, for whoever gets rows
    :ivar sections: the text for people, the answer first
    :ivar rows: of the command's columns
    :ivar document: returns everything as one mapping; None where rows have it
    :ivar status: the exit status
    :ivar hosts: the names of all hosts, where any is among what people read.
        A domain that they share is not shown in a terminal
    """

    sentence: str
    sections: Iterable[Section]
    rows: Iterable[Sequence[object]]
    document: Callable[[], Mapping[str, typing.Any]] | None = None
    status: int = base.FINE
    hosts: Collection[str] = ()


def begin(
    head: str,
    *remarks: str,
    counts: Sequence[tuple[int, str]] = (),
    styles: Mapping[str, str] = types.MappingProxyType({}),
) -> tuple[str, list[Section]]:
    """Return an answer in one line, and as the first sections of a text.

    :param head: a clause, without its stop
    :param remarks: sentences
    :param counts: numbers that the head relies on, and their nouns
    :param styles: of what is counted; by default each is bad
    """
    parts = ', '.join(f'{what} {number}' for number, what in counts)
    first = f'{head}: {parts}.' if parts else f'{head}.'
    lines = [
        Line(what, number, style=styles.get(what, terminal.BAD))
        for number, what in counts
    ]
    return ' '.join((first, *remarks)), [
        Section(f'{head}:' if parts else first, lines, style=terminal.ANSWER),
        *(Section(remark, apart=False) for remark in remarks),
    ]


def add_map(
    made: Report,
    parsed_args: argparse.Namespace,
    draw: Callable[[str | None], typing.Any],
) -> Report:
    """Return a report with a map of hosts behind its answer, if asked for.

    :param draw: returns what rich draws, by what ``--map-by`` says
    """
    if not topology.is_wanted(parsed_args):
        return made
    sections = list(made.sections)
    ends = (n for n, one in enumerate(sections) if n and one.apart)
    place = next(ends, len(sections))
    sections.insert(place, Section(body=draw(parsed_args.map_by)))
    return dataclasses.replace(made, sections=sections)


def append(made: Report, *drawn: typing.Any) -> Report:
    """Append renderables to a report."""
    bodies = [Section(body=one) for one in drawn]
    return dataclasses.replace(made, sections=[*made.sections, *bodies])


def say_origin(
    made: Report,
    parsed_args: argparse.Namespace,
    command: str,
    origin: plan_format.Origin | None = None,
) -> Report:
    """Add to a report how it was asked for, and what it supposes.

    :param command: the typed command line
    :param origin: the file that it is of, in place of a cloud
    """
    make_document, clause = made.document, options.say_supposed(parsed_args)
    if make_document is not None:
        supposed = options.list_supposed(parsed_args)

        def document() -> dict[str, typing.Any]:
            made = dict(make_document())
            if clause and (answer := made.get('answer')):
                made['answer'] = {
                    **answer,
                    'sentence': clause + answer['sentence'],
                }
            return {
                **made,
                **_describe_origin(origin),
                'command': command,
                'supposed': plan_format.make_supposed(supposed),
            }

        made = dataclasses.replace(made, document=document)
    said = _say_file(origin)
    if clause or said:
        first, *others = made.sections
        first = dataclasses.replace(first, title=clause + first.title)
        made = dataclasses.replace(
            made,
            sentence=' '.join([clause + made.sentence, *said]),
            sections=[
                first,
                *(Section(one, apart=False) for one in said),
                *others,
            ],
        )
    return made


def _describe_origin(
    origin: plan_format.Origin | None,
) -> dict[str, typing.Any]:
    """Describe the saved file, or the changed copy, that a document is of.

    The clock of such a command stopped when the cloud was saved.
    """
    if origin is None:
        return {}
    if not origin.file:
        return {'notes': origin.notes}
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return {
        'time': now.isoformat(timespec='seconds') + 'Z',
        'origin': dataclasses.asdict(origin),
    }


def _say_file(origin: plan_format.Origin | None) -> list[str]:
    if origin is None:
        return []
    if not origin.file:
        # A copy of the cloud itself, as it is now.
        return [*origin.notes]
    saved = origin.saved.replace('T', ' ').removesuffix('Z')
    name = messages.clean(origin.file)
    return [f'The cloud as saved in {name} at {saved} UTC.', *origin.notes]


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--output``."""
    cli_help.share(parser, cli_help.OUTPUT).add_argument(
        '--output',
        metavar='FILE',
        type=pathlib.Path,
        help='also write the answer to this file, as JSON; a command that '
        'fails leaves the file as it is',
    )


class Cell(cliff_columns.FormattableColumn):
    """A cell of several values: a text for people, a value for programs.

    :param text: by default the values, one after the other
    """

    def __init__(self, value: typing.Any, text: str | None = None) -> None:
        super().__init__(value)
        self._text = ', '.join(map(str, value)) if text is None else text

    def human_readable(self) -> str:
        """See cliff."""
        return self._text


def say(number: int | None) -> int | str:
    """Return the cell of a number; ``-`` for an unknown one."""
    return NONE if number is None else number


class Lister(base.Command, lister.Lister):
    """A command that makes a report; ``-f`` and ``-c`` choose its form.

    ======================  =================================================
    chosen                  what is written
    ======================  =================================================
    nothing                 the sections
    ``-f json``, ``yaml``   the document; rows where there is none
    ``-f csv``, ``value``   rows; a cell of several values is JSON
    ``-c``,                 rows of these columns in any format, and in a
    ``--sort-column``       table where none is chosen
    ======================  =================================================

    Where rows are written, the sentence goes to standard error. ``--html``
    writes a page besides; one of a command that failed says why.
    ``--output``, where a command has it, writes the document besides.
    """

    formatter: typing.Any

    #: The value of ``--color``.
    color: str

    #: The names of the columns, where these are always the same.
    columns: Sequence[str] = ()

    #: The help of ``--all``.
    all_means = 'show everything; shorten no list'

    #: The file of a saved cloud that its answer is of.
    origin: plan_format.Origin | None = None

    _report: Report | None = None
    _columns: Sequence[str] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        group = cli_help.share(parser, cli_help.OUTPUT)
        group.add_argument('--all', action='store_true', help=self.all_means)
        terminal.add_option(group)
        page.add_options(group)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        status = self._write_document(parsed_args, super().run(parsed_args))
        path = parsed_args.html or parsed_args.html_add
        if path is None or status == base.USAGE:
            return status
        made = self._report or Report('', [Section(self.fault)], ())
        try:
            page.write(
                parsed_args,
                ' '.join(
                    (
                        self.program,
                        self.cmd_name or '',
                        options.say_supposed(parsed_args).rstrip(': '),
                    )
                ).rstrip(),
                page.draw(
                    made.sections,
                    self._columns,
                    [*made.rows],
                    status,
                    (self.command_line, self.say_cloud()),
                ),
            )
        except OSError as exc:
            return self._fail_to_write('--html', path, exc)
        return status

    def _write_document(
        self, parsed_args: argparse.Namespace, status: int
    ) -> int:
        """Write the file of ``--output``; return the exit status."""
        path, made = getattr(parsed_args, 'output', None), self._report
        # Where the command failed, the file of an earlier run stays.
        if made is None or made.document is None:
            return status
        if path is not None:
            text = json.dumps(made.document(), indent=2) + '\n'
            try:
                files.write(path, text)
            except OSError as exc:
                return self._fail_to_write('--output', path, exc)
        if said := self.say_next(parsed_args, made):
            print(said, file=sys.stderr)
        return status

    def say_next(self, parsed_args: argparse.Namespace, made: Report) -> str:
        """Return where the answer was written, and how to go on with it.

        :returns: sentences; empty where there is nothing to say
        """
        path = getattr(parsed_args, 'output', None)
        return f'Written to {messages.clean(path)}.' if path else ''

    def say_cloud(self) -> str:
        """Return which cloud it is about; empty where that is not known."""
        return ''

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """Return the names of the columns of the rows."""
        return self.columns

    def make_report(self, parsed_args: argparse.Namespace) -> Report:
        """Return everything that is to be printed."""
        raise NotImplementedError

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Make the report.

        :raises base.UsageError: ``--column`` names none of the columns
        """
        self.color = parsed_args.color
        names = self.get_columns(parsed_args)
        try:
            # Checked before the work; cliff would refuse it afterwards.
            self._generate_columns_and_selector(parsed_args, names)
        except ValueError as exc:
            raise base.UsageError(
                f'There is no column '
                f'{messages.first_few(parsed_args.columns)}. The columns are '
                f'{", ".join(names)}.'
            ) from exc
        is_page_wanted = page.is_wanted(parsed_args)
        made = say_origin(
            self.make_report(parsed_args),
            parsed_args,
            self.command_line,
            self.origin,
        )
        if is_page_wanted:
            # Lists, because sections and rows are read twice.
            made = dataclasses.replace(
                made, sections=[*made.sections], rows=[*made.rows]
            )
        self._report, self._columns = made, names
        self.status = made.status
        return names, made.rows

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[typing.Any]],
    ) -> int:
        """See cliff."""
        made, format_ = self._report, parsed_args.formatter
        assert made is not None
        has_chosen = parsed_args.columns or parsed_args.sort_columns
        if self.is_text(parsed_args):
            self._write(self.app.stdout, made.sections, parsed_args)
        elif format_ in _DOCUMENTS and made.document and not has_chosen:
            document = made.document()
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
            self._write(sys.stderr, [Section(made.sentence)], parsed_args)
        return 0

    def is_text(self, parsed_args: argparse.Namespace) -> bool:
        """Return whether people read the answer."""
        has_chosen = parsed_args.columns or parsed_args.sort_columns
        return parsed_args.formatter == _TEXT and not has_chosen

    def write_part(
        self, made: Report, parsed_args: argparse.Namespace
    ) -> None:
        """Write findings so far for people, not for programs."""
        if self.is_text(parsed_args):
            made = say_origin(
                made, parsed_args, self.command_line, self.origin
            )
            self._report, self.status = made, made.status
            self._write(self.app.stdout, made.sections, parsed_args)
            self.app.stdout.flush()

    def _write(
        self,
        stream: typing.Any,
        sections: Iterable[Section],
        parsed_args: argparse.Namespace,
    ) -> None:
        assert self._report is not None
        domain = messages.find_domain(self._report.hosts)
        write(
            stream,
            (layout.revise(one, parsed_args.all, domain) for one in sections),
            parsed_args.max_width,
            self.color,
            self.status,
        )


def _flatten(cell: object) -> object:
    if isinstance(cell, cliff_columns.FormattableColumn):
        return json.dumps(cell.machine_readable())
    return cell


def write(
    stream: typing.Any,
    sections: Iterable[Section],
    max_width: int = 0,
    color: str = terminal.AUTO,
    status: int | None = None,
) -> None:
    """Write the text for people.

    :param max_width: ``--max-width``; 0 for the terminal's
    :param color: ``--color``
    :param status: of the command, which colours its answer
    """
    if max_width <= 0:
        max_width = shutil.get_terminal_size().columns
    paper = terminal.make(stream, color, max_width, status)
    for number, section in enumerate(sections):
        if number and section.apart:
            paper.print()
        paper.print(section, crop=False)
