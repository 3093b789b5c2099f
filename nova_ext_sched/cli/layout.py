# SPDX-License-Identifier: Apache-2.0

"""The one way in which commands lay out what people read.

The first lines are the answer. What belongs to them follows, and what is long
is folded, with a count and the way to see all. A command inherits
:class:`.lister.Lister` and gets a :class:`Layout` to write with::

    def write_text(self, out, rows):
        out.say('No host: 0 of 300 hosts can take it.')
        out.counts([(213, 'are full (MEMORY_MB)'), (87, 'are isolated')])
        out.section('What each stage refuses:')
        out.table(('Stage', 'Refuses'), [('placement', 213)])
        out.fold(rows, 20, lambda row: out.say(row['Server'], 2), 'server')

Lines end between words. A name or a UUID is broken only where it is longer
than a line. ``--max-width`` means the same everywhere: the most columns of a
line. By default these are the terminal's, those of ``COLUMNS`` where it is
set, and 80 where there is neither.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import io
import shutil
import textwrap
import typing

from nova_ext_sched import messages

#: In place of a number of what was not counted.
NONE = '-'

# Where indentation leaves less, a line is longer than the width.
_NARROWEST = 20

T = typing.TypeVar('T')


class Layout:
    """Writes paragraphs, counts and tables to a stream.

    :param max_width: ``--max-width``; 0 for the terminal's
    :ivar width: the number of columns
    """

    def __init__(self, stream: typing.Any, max_width: int = 0) -> None:
        self.stream = stream
        self.width = (
            max_width if max_width > 0 else shutil.get_terminal_size().columns
        )

    def say(
        self, text: str = '', indent: int = 0, label: str = '', hang: int = 2
    ) -> None:
        """Write a paragraph; without text an empty line.

        :param indent: how far the paragraph is set in
        :param label: what the first line begins with; the others are set in
            as far as it reaches
        :param hang: how far the others are set in where there is no label
        """
        first = ' ' * indent + label
        later = ' ' * (len(first) if label else indent + hang)
        found = textwrap.wrap(
            text,
            max(self.width, len(later) + _NARROWEST),
            initial_indent=first,
            subsequent_indent=later,
            break_on_hyphens=False,
        )
        self._write(found or [first])

    def section(self, text: str) -> None:
        """Write an empty line, and the paragraph that a part begins with."""
        self.say()
        self.say(text)

    def counts(
        self,
        counts: Sequence[tuple[int, str]],
        most: int | None = None,
        noun: str = '',
        see: str = '',
    ) -> None:
        """Write a line for each number and what it counts.

        :param most: see :meth:`fold`; ``noun`` and ``see`` too; None for all
        """
        wide = max((len(str(number)) for number, _ in counts), default=0)
        self.fold(
            counts,
            len(counts) if most is None else most,
            lambda count: self.say(count[1], 2, f'{count[0]:>{wide}}  '),
            noun,
            see,
        )

    def fold(
        self,
        items: Sequence[T],
        most: int,
        write: Callable[[T], object],
        noun: str,
        see: str = '',
    ) -> None:
        """Write the first items, then how many more there are.

        The last one is written in place of a line that would count it.

        :param most: how many are written of more
        :param write: writes one
        :param noun: what an item is, in the singular
        :param see: what shows all: ``-f csv lists all``
        """
        shown = items if len(items) <= most + 1 else items[:most]
        for item in shown:
            write(item)
        if more := len(items) - len(shown):
            how = f' ({see})' if see else ''
            self.say(f'and {messages.count(f"more {noun}", more)}{how}', 2)

    def table(
        self, names: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Write a table; the widest columns wrap.

        :param rows: of cells. Numbers and :data:`NONE` stand to the right. A
            cell that is a list is a text and notes on it, a line each.
        """
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

        rows = list(rows)
        shown = table.Table(box=None, pad_edge=False)
        for number, name in enumerate(names):
            is_number = any(
                isinstance(row[number], int) or row[number] == NONE
                for row in rows
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
        self._write(map(str.rstrip, paper.file.getvalue().splitlines()))

    def _write(self, found: Iterable[str]) -> None:
        self.stream.writelines(f'{line}\n' for line in found)
