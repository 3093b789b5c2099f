# SPDX-License-Identifier: Apache-2.0

"""Reports of commands: text for people, documents and rows for programs.

A command makes a :class:`Report` before anything is written. Its text is a
list of :class:`Section`, which :mod:`.layout` lays out. For example::

    sentence, first = report.begin('2 of 9 servers fail', 'Cell b is silent.')
    details = report.Section('Servers:', ['a', 'b'], 20, 'server')
    return report.Report(sentence, [*first, details], rows, status=3)

The first lines are the answer. Remarks and details follow; long lists are
folded, with a count and the option that shows all. ``--max-width`` limits the
width of lines in every section. By default the limit is the width of the
terminal, ``COLUMNS`` where it is set, and 80 where there is neither.
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

from nova_ext_sched import files
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
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

    :ivar sentence: the answer on one line; if rows are written, it goes to
        standard error
    :ivar sections: the text for people, the answer first
    :ivar rows: rows of cells, one cell for each of the command's columns
    :ivar document: returns the whole document; None if the rows have
        everything
    :ivar status: the exit status
    :ivar hosts: the names of all hosts; the text drops the DNS domain that
        they share. Empty if the text names no host
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

    :param head: a clause without a full stop
    :param remarks: sentences
    :param counts: numbers below the head, each with its noun
    :param styles: the style of each number, by its noun; by default
        :data:`.terminal.BAD`
    """
    parts = ', '.join(f'{noun} {number}' for number, noun in counts)
    first = f'{head}: {parts}.' if parts else f'{head}.'
    lines = [
        Line(noun, number, style=styles.get(noun, terminal.BAD))
        for number, noun in counts
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
    """Return a report with a map of hosts after its answer, if asked for.

    :param draw: a function that makes the map; it takes the value of
        ``--map-by``, None if that is not given
    """
    if not topology.is_wanted(parsed_args):
        return made
    sections = list(made.sections)
    # The answer ends at the next section with an empty line before it.
    ends = (n for n, one in enumerate(sections) if n and one.apart)
    place = next(ends, len(sections))
    sections.insert(place, Section(body=draw(parsed_args.map_by)))
    return dataclasses.replace(made, sections=sections)


def say_origin(
    made: Report,
    parsed_args: argparse.Namespace,
    command: str,
    origin: plan_format.Origin | None = None,
) -> Report:
    """Return a report that names its origin.

    Its text begins with the supposed changes, and names the saved file. Its
    document has both, and the command line.

    :param command: the typed command line
    :param origin: the saved cloud, or the changed copy, that the answer is
        for; None for the cloud itself
    """
    make_document, clause = made.document, options.say_supposed(parsed_args)
    if make_document is not None:
        supposed = options.list_supposed(parsed_args)

        def document() -> dict[str, typing.Any]:
            whole = dict(make_document())
            if clause and (answer := whole.get('answer')):
                whole['answer'] = {
                    **answer,
                    'sentence': clause + answer['sentence'],
                }
            return {
                **whole,
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
    """Describe the saved file, or the changed copy, that an answer is for."""
    if origin is None:
        return {}
    if not origin.file:
        return {'notes': origin.notes}
    # The real time replaces that of the heading: for a saved cloud, oslo's
    # timeutils stands at the time of saving.
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return {
        'time': now.isoformat(timespec='seconds') + 'Z',
        'origin': dataclasses.asdict(origin),
    }


def _say_file(origin: plan_format.Origin | None) -> list[str]:
    if origin is None:
        return []
    if not origin.file:
        # A changed copy of the cloud as it is now.
        return [*origin.notes]
    saved = origin.saved.replace('T', ' ').removesuffix('Z')
    name = messages.clean(origin.file)
    return [f'The cloud as saved in {name} at {saved} UTC.', *origin.notes]


class Cell(cliff_columns.FormattableColumn):
    """A cell of several values: a text for people, a value for programs.

    :param text: for people; by default the values with commas between them
    """

    def __init__(self, value: typing.Any, text: str | None = None) -> None:
        super().__init__(value)
        self._text = ', '.join(map(str, value)) if text is None else text

    def human_readable(self) -> str:
        """See cliff."""
        return self._text


def make_cell(value: int | str | None) -> int | str:
    """Return a value for a cell; ``-`` for None."""
    return NONE if value is None else value


class Lister(base.Command, lister.Lister):
    """A command that makes a report; ``-f`` and ``-c`` choose its form.

    ======================  =================================================
    chosen                  what is written
    ======================  =================================================
    nothing                 the sections
    ``-f json``, ``yaml``   the document; rows if there is none
    ``-f csv``, ``value``   rows; a cell of several values is JSON
    ``-c``,                 rows of these columns, in the chosen format or,
    ``--sort-column``       without ``-f``, as a table
    ======================  =================================================

    If rows are written, the sentence goes to standard error. ``--html`` also
    writes a page; if the command fails, the page gives the reason.
    ``--output``, which some commands have, also writes the document.
    """

    #: cliff's formatter for the value of ``-f``.
    formatter: typing.Any

    #: The value of ``--color``.
    color: str

    #: The names of the columns, if no option changes them.
    columns: Sequence[str] = ()

    #: The help of ``--all``.
    all_means = 'show everything; shorten no list'

    #: Whether it has ``--output``.
    has_output = False

    #: The saved cloud, or the changed copy, that the answer is for; None for
    #: the cloud itself.
    origin: plan_format.Origin | None = None

    _report: Report | None = None
    _columns: Sequence[str] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        group = cli_help.share(parser, cli_help.OUTPUT)
        group.add_argument('--all', action='store_true', help=self.all_means)
        base.add(group, terminal.OPTION)
        base.add(group.add_mutually_exclusive_group(), page.OPTIONS)
        if self.has_output:
            group.add_argument(
                '--output',
                metavar='FILE',
                type=pathlib.Path,
                help='also write the answer to this file, as JSON; a command '
                'that fails leaves the file as it is',
            )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, and write the files of ``--output`` and ``--html``.

        :returns: the exit status
        """
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
        """Write the document to the file of ``--output``, if one is named.

        Then write to standard error where it is, and how to go on. A report
        without a document gets neither.

        :returns: the exit status
        """
        path, made = getattr(parsed_args, 'output', None), self._report
        # If the command failed, the file of an earlier run stays.
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

        :returns: sentences; empty if nothing was written and there is no next
            step
        """
        path = getattr(parsed_args, 'output', None)
        return f'Written to {messages.clean(path)}.' if path else ''

    def say_cloud(self) -> str:
        """Return which cloud the answer is about; empty if unknown."""
        return ''

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """Return the names of the columns of the rows."""
        return self.columns

    def make_report(self, parsed_args: argparse.Namespace) -> Report:
        """Return the report; its text, document and rows are written later."""
        raise NotImplementedError

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Make the report; return its columns and rows for cliff.

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
        """Return whether the answer is written as text for people."""
        has_chosen = parsed_args.columns or parsed_args.sort_columns
        return parsed_args.formatter == _TEXT and not has_chosen

    def write_part(
        self, made: Report, parsed_args: argparse.Namespace
    ) -> None:
        """Write the findings so far, if they are written as text."""
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
    :param status: the command's exit status, which colours its answer
    """
    if max_width <= 0:
        max_width = shutil.get_terminal_size().columns
    paper = terminal.make(stream, color, max_width, status)
    for number, section in enumerate(sections):
        if number and section.apart:
            paper.print()
        paper.print(section, crop=False)
