# SPDX-License-Identifier: Apache-2.0

"""Lines of a text for people, as wide as their terminal."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import shutil
import textwrap
import typing

Row = Mapping[str, typing.Any]


def fill(
    text: str, first: str = '', later: str = '  ', width: int = 0
) -> list[str]:
    """Return a paragraph as lines that end between words.

    They have the width of the terminal or of ``COLUMNS``, and 80 columns
    without either. A name or UUID is never broken.

    :param first: what the first line begins with
    :param later: what the others begin with
    :param width: ``--max-width`` of cliff, instead of the terminal's
    """
    return textwrap.wrap(
        text,
        width if width > 0 else shutil.get_terminal_size().columns,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Text:
    """Writes rows as lines; stands in for cliff's formatter of tables."""

    def emit_list(
        self,
        names: Sequence[str],
        data: Iterable[Sequence[typing.Any]],
        stdout: typing.TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write everything, once all is read, as cliff asks formatters to."""
        self._width = parsed_args.max_width
        rows = [dict(zip(names, row, strict=True)) for row in data]
        for line in self.render(rows):
            print(line, file=stdout)

    def render(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the lines of rows with all columns."""
        raise NotImplementedError

    def fill(self, text: str, first: str = '', later: str = '  ') -> list[str]:
        """Return a paragraph as lines, as wide as the user wants them."""
        return fill(text, first, later, self._width)
