# SPDX-License-Identifier: Apache-2.0

"""What a terminal shows, as a picture: light or dark, as its reader chose."""

from collections.abc import Iterator
import html

from rich import ansi
from rich import cells
from rich import console
from rich import style

# Of a cell, and of its font.
_WIDE, _HIGH, _SIZE = 10, 21, 16
_EDGE = 12

# Those that a command wears, by their numbers in escape sequences.
_COLOURS = {1: 'red', 2: 'green', 7: 'white'}

# Each is seen on its ground with a contrast of at least 4.5.
_SHEET = """\
  rect { fill: #f6f8fa; }
  text { font: 16px monospace; fill: #24292f; white-space: pre; }
  .bold { font-weight: bold; }
  .dim { fill: #626a72; }
  .green { fill: #18702f; }
  .red { fill: #b8202a; }
  .white { fill: #fff; }
  .on-red { fill: #b8202a; }
  @media (prefers-color-scheme: dark) {
    rect { fill: #1b2028; }
    text { fill: #d8dee6; }
    .dim { fill: #9aa3ad; }
    .green { fill: #5cc475; }
    .red { fill: #ff8078; }
  }
"""


def draw(text: str, columns: int) -> str:
    """Return a picture in SVG, which needs no file but itself.

    :param text: what a command wrote, with escape sequences of colours
    :param columns: of the terminal; all pictures of one scale have the same,
        but where a command that is typed is longer
    :raises KeyError: it has a colour that pictures do not have
    """
    lines = list(ansi.AnsiDecoder().decode(text.rstrip('\n')))
    wide = max([columns, *map(len, lines)]) * _WIDE + 2 * _EDGE
    high = len(lines) * _HIGH + 2 * _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}">',
        f'<style>\n{_SHEET}</style>',
        f'<rect width="{wide}" height="{high}" rx="8"/>',
    ]
    paper = console.Console()
    for row, line in enumerate(lines):
        column = 0
        for piece, worn, _control in line.render(paper):
            parts += _draw_piece(piece, worn or style.Style(), row, column)
            column += cells.cell_len(piece)
    return '\n'.join([*parts, '</svg>', ''])


def _draw_piece(
    piece: str, worn: style.Style, row: int, column: int
) -> Iterator[str]:
    names = [name for name in ('bold', 'dim') if getattr(worn, name)]
    if worn.color:
        names.append(_COLOURS[worn.color.number])
    at, top = _EDGE + column * _WIDE, _EDGE + row * _HIGH
    if worn.bgcolor:
        ground = _COLOURS[worn.bgcolor.number]
        yield (
            f'<rect class="on-{ground}" x="{at}" y="{top}" '
            f'width="{cells.cell_len(piece) * _WIDE}" height="{_HIGH}"/>'
        )
    at += (len(piece) - len(piece.lstrip())) * _WIDE
    if piece := piece.strip():
        worn_names = f' class="{" ".join(names)}"' if names else ''
        # As wide as its cells in any font.
        yield (
            f'<text{worn_names} x="{at}" y="{top + _SIZE}" '
            f'textLength="{cells.cell_len(piece) * _WIDE}" '
            f'lengthAdjust="spacingAndGlyphs">{html.escape(piece)}</text>'
        )
