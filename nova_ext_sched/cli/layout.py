# SPDX-License-Identifier: Apache-2.0

"""Lays out text for people, section by section.

Lines end between words. A name or a UUID is broken only where it is longer
than a line. Widths count the columns of a terminal: a wide character, as in a
Japanese name, takes two.

``paper`` is the rich Console that prints a renderable.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import re
import textwrap
import typing

from rich import cells as rich_cells
from rich import console
from rich import measure
from rich import padding
from rich import segment
from rich import table
from rich import text as rich_text

from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import terminal

#: The end of a line that counts folded rows: the option that shows them.
SEE_ALL = '--all lists all'

#: A cell where there is no number, because nothing was counted.
NONE = '-'

# The least width of a text. If a label leaves less, the text goes below it; if
# the indentation leaves less, lines exceed the width.
_NARROWEST = 20

# Narrower tables show no bars.
_NARROWEST_WITH_BARS = 60
# rich has two blanks between columns.
_GAP = 2
# A width in which nothing wraps, to measure a table.
_UNLIMITED = 10_000
_UUID_WIDTH = 36
# Beside bars, a first column with texts up to this length does not wrap.
_LONGEST_UNBROKEN = 36

# Names of servers are not cut shorter, however narrow the terminal is.
_SHORTEST_NAME = 12

_UUID = re.compile(r'\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')
# Characters that would steer a terminal, or turn the direction of a text.
_CONTROL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]'
)
# Line breaks, which become blanks.
_BLANKS = str.maketrans(dict.fromkeys('\n\v\f\r', ' '))
# A filler after each wide character, so that len() counts columns.
_SECOND_HALF = '\ue000'


class Line(typing.NamedTuple):
    """A row of a section's text.

    :ivar text: the text of the line, which wraps
    :ivar label: a number or a text before the line; numbers are right-aligned
    :ivar name: name of a server, as its user wrote it. It precedes the text; a
        long name loses its middle
    :ivar notes: paragraphs below the line
    :ivar commands: commands of a shell below the line, which never wrap, so
        that they can be pasted
    :ivar style: style of the label
    :ivar uuid: UUID of the server. It ends the line if all lines have room for
        it, or if two servers share the name; else it replaces a missing name
    :ivar below: further rows below the line, a section without a title
    """

    text: str
    label: int | str = ''
    name: str = ''
    notes: Sequence[str] = ()
    style: str = ''
    uuid: str = ''
    below: 'Section | None' = None
    commands: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a text for people; a rich Console prints it.

    :ivar title: the paragraph that the section begins with
    :ivar rows: lines, or the cells of a table. Numbers and :data:`NONE` are
        right-aligned. A list is a text with notes below it; a renderable of
        rich is printed as it is.
    :ivar most: the number of rows shown; None for all. A single further row is
        shown too: the line that counts it would take as much room.
    :ivar noun: a word for a row, in the singular, such as ``server``
    :ivar columns: the column heads of a table; an empty head is that of bars.
        Without heads the rows are lines
    :ivar apart: whether an empty line comes before the section
    :ivar indent: indentation of the lines, and of the title's second and
        further ones
    :ivar body: a renderable in place of rows
    :ivar style: of the title; by default that of a heading if rows follow
    """

    title: str = ''
    rows: Sequence[str | Line | Sequence[object]] = ()
    most: int | None = None
    noun: str = ''
    columns: Sequence[str] = ()
    apart: bool = True
    indent: int = 2
    style: str = ''
    body: console.RenderableType | None = None

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        width, rows = options.max_width, self.rows
        if self.title:
            style = self.style or (terminal.HEADING if rows else '')
            yield from _wrap(self.title, width, hang=self.indent, style=style)
        if self.body is not None:
            yield self.body
        yield from self.lay(width)

    def lay(self, width: int) -> Iterator[console.RenderableType]:
        """Yield the rows that are shown, and the number of the others."""
        rows, most = self.rows, self.most
        shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
        if self.columns and shown:
            yield Table(self.columns, shown)
        else:
            yield from _lay_lines(shown, width, self.indent)
        if more := len(rows) - len(shown):
            noun = messages.count(f'more {self.noun}', more)
            text = f'and {noun} ({SEE_ALL})'
            yield from _wrap(text, width, self.indent, style=terminal.ASIDE)


class Indented(padding.Padding):
    """An indented cell of a table, with its notes."""

    def __init__(self, cell: object) -> None:
        super().__init__(render(cell), (0, 0, 0, 2))
        self.cell = cell


def revise(section: Section, is_whole: bool, domain: str = '') -> Section:
    """Return a section without the hosts' domain; unfolded with ``--all``.

    Names of servers and commands stay as they are: a command needs the full
    name of a host when it is pasted.

    :param is_whole: whether ``--all`` is given, so that nothing is folded
    :param domain: the suffix to remove from host names, such as
        ``.prod.example.net``
    """
    # The domain at the end of a name, not inside a longer name.
    end = re.compile(rf'(?<=[\w]){re.escape(domain)}(?![\w-]|\.\w)')

    def say(cell: typing.Any) -> typing.Any:
        if isinstance(cell, str):
            return end.sub('', cell) if domain else cell
        if isinstance(cell, list):
            return list(map(say, cell))
        if isinstance(cell, Indented):
            return Indented(say(cell.cell))
        return cell

    def say_row(row: typing.Any) -> typing.Any:
        if isinstance(row, str):
            return say(row)
        if not isinstance(row, Line):
            return tuple(map(say, row))
        return row._replace(
            text=say(row.text),
            label=say(row.label),
            notes=list(map(say, row.notes)),
            below=row.below and revise(row.below, is_whole, domain),
        )

    return dataclasses.replace(
        section,
        title=say(section.title),
        rows=list(map(say_row, section.rows)),
        most=None if is_whole else section.most,
    )


def pad(text: str, width: int) -> str:
    """Return a text with blanks after it, up to a number of columns."""
    return text + ' ' * (width - rich_cells.cell_len(text))


def _wrap(
    text: str,
    width: int,
    indent: int = 0,
    label: str = '',
    hang: int = 2,
    style: str = '',
    label_style: str = '',
) -> Iterator[rich_text.Text]:
    """Yield the lines of a paragraph; without text an empty one.

    :param indent: of the paragraph
    :param label: begins the first line; later lines are indented to its end.
        If it leaves no room for the text, it is a line of its own
    :param hang: further indentation of later lines if there is no label
    """
    label = _fill_wide(disarm(label))
    if label and indent + len(label) + _NARROWEST > width:
        yield from _wrap(label.rstrip(), width, indent, style=label_style)
        indent, label = indent + hang, ''
    first = ' ' * indent + label
    later = ' ' * (len(first) if label else indent + hang)
    text = messages.without_secrets(text).expandtabs().translate(_BLANKS)
    lines = textwrap.wrap(
        _fill_wide(disarm(text)),
        max(width, len(later) + _NARROWEST),
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
    )
    before, before_style = first, label_style
    for line in lines or [first]:
        start = len(before.replace(_SECOND_HALF, ''))
        shown = rich_text.Text(
            line.replace(_SECOND_HALF, ''), no_wrap=True, overflow='ignore'
        )
        shown.stylize(before_style, indent, start)
        shown.stylize(style, start)
        shown.highlight_regex(_UUID, terminal.ASIDE)
        yield shown
        before, before_style = later, ''


def _fill_wide(text: str) -> str:
    """Return a text with a filler after each wide character.

    Its length is the number of its columns.
    """
    if text.isascii():
        return text
    return ''.join(
        one + _SECOND_HALF * (rich_cells.cell_len(one) - 1) for one in text
    )


def disarm(text: str) -> str:
    """Return a text with control characters as Python would write them."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _lay_lines(
    rows: Sequence[typing.Any], width: int, indent: int
) -> Iterator[console.RenderableType]:
    lines = [row if isinstance(row, Line) else Line(row) for row in rows]
    numbers = [one.label for one in lines if isinstance(one.label, int)]
    wide = len(str(max(numbers, default=0)))
    labels = [
        f'{one.label:>{wide}}  ' if one.label != '' else '' for one in lines
    ]
    texts = _name(lines, width - indent - max(map(len, labels), default=0))
    for line, label, text in zip(lines, labels, texts, strict=True):
        yield from _wrap(text, width, indent, label, label_style=line.style)
        for note in line.notes:
            yield from _wrap(note, width, indent + 2)
        for command in line.commands:
            yield rich_text.Text(
                ' ' * (indent + 2) + disarm(command),
                no_wrap=True,
                overflow='ignore',
            )
        if line.below:
            below = dataclasses.replace(line.below, indent=indent + 2)
            yield from below.lay(width)


def _name(lines: Sequence[Line], width: int) -> Iterator[str]:
    """Yield the text of each line, with its server's name and UUID."""
    count = rich_cells.cell_len
    wide = max((count(line.text) for line in lines if line.uuid), default=0)
    names = [
        _cut(messages.clean(line.name), width - wide - _GAP) for line in lines
    ]
    longest = max(map(count, names), default=0)
    has_room = longest + wide + 2 * _GAP + _UUID_WIDTH <= width
    for line, name in zip(lines, names, strict=True):
        if not line.uuid:
            yield line.text
        elif has_room:
            yield f'{pad(name, longest)}  {pad(line.text, wide)}  {line.uuid}'
        elif not name:
            yield f'{line.uuid}  {line.text}'
        else:
            end = f'  {line.uuid}' * (names.count(name) > 1)
            yield f'{pad(name, longest)}  {line.text}{end}'


def _cut(name: str, room: int) -> str:
    """Return a name that fits; if it does not, without its middle.

    Names often differ in a number at their end alone.
    """
    room = max(room, _SHORTEST_NAME)
    if rich_cells.cell_len(name) <= room:
        return name
    end = (room - 3) // 3
    # A blank is in place of a wide character of which only half fits.
    first = rich_cells.set_cell_size(name, room - 3 - end).rstrip()
    last = rich_cells.set_cell_size(name[::-1], end).rstrip()[::-1]
    return f'{first}...{last}'


@dataclasses.dataclass(frozen=True)
class Table:
    """A table; the widest columns wrap.

    :ivar names: the heads of the columns; empty for a column of bars
    """

    names: Sequence[str]
    rows: Sequence[typing.Any]

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        shown = self._build(0)
        if '' in self.names and options.max_width >= _NARROWEST_WITH_BARS:
            # Bars take the room that words and numbers leave.
            wide = measure.Measurement.get(
                paper, options.update_width(_UNLIMITED), shown
            )
            room = options.max_width - wide.maximum - _GAP
            width = max(bars.NARROWEST, min(room, bars.WIDEST))
            if not self.names[-1]:
                width -= _count_edge(paper, options)
            shown = self._build(width)
        for line in paper.render_lines(shown, options, pad=False):
            # rich fills lines with blanks.
            while line and not line[-1].text.strip():
                del line[-1]
            if line:
                last = line.pop()
                line.append(segment.Segment(last.text.rstrip(), last.style))
            yield from (*line, segment.Segment.line())

    def _build(self, bar_width: int) -> table.Table:
        """Return rich's table.

        :param bar_width: of the column of bars; 0 for a table without bars
        """
        shown = table.Table(
            box=None, pad_edge=False, header_style=terminal.HEADING
        )
        columns: list[Sequence[object]] = []
        for name, cells in zip(
            self.names, zip(*self.rows, strict=True), strict=True
        ):
            is_bar = not name
            is_number = any(
                isinstance(cell, int) or cell == NONE for cell in cells
            )
            if is_bar and not (bar_width and any(cells)):
                continue
            # Bars must not take so much room that the first column wraps.
            is_name = (
                bool(bar_width) and not columns and _are_short_texts(cells)
            )
            columns.append(cells)
            shown.add_column(
                render(name),
                width=bar_width if is_bar else None,
                justify='right' if is_number else 'left',
                no_wrap=is_number or is_bar or is_name,
                overflow='fold',
            )
        for row in zip(*columns, strict=True):
            shown.add_row(*map(render, row))
        return shown


def _count_edge(
    paper: console.Console, options: console.ConsoleOptions
) -> int:
    """Return by how much rich makes the last column wider than its width.

    Before 14.3 it adds padding there, although pad_edge is False.
    """
    two = table.Table('', '', box=None, pad_edge=False, show_header=False)
    two.columns[1].width = 1
    two.add_row('x', 'x')
    wide = measure.Measurement.get(paper, options, two)
    return wide.maximum - len('x  x')


def _are_short_texts(cells: Sequence[object]) -> bool:
    return all(
        isinstance(cell, str) and len(cell) <= _LONGEST_UNBROKEN
        for cell in cells
    )


def render(cell: object) -> console.RenderableType:
    """Return the renderable of a cell of a table."""
    if isinstance(cell, list):
        first, *notes = cell
        return console.Group(render(first), *map(Indented, notes))
    if isinstance(cell, console.ConsoleRenderable):
        return cell
    shown = rich_text.Text(disarm(str(cell)))
    shown.highlight_regex(_UUID, terminal.ASIDE)
    return shown
