# SPDX-License-Identifier: Apache-2.0

"""Bars beside the numbers that they compare."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing

from rich import console
from rich import measure
from rich import text

from nova_ext_sched.cli import terminal

#: The least and the greatest width of a bar.
NARROWEST, WIDEST = 12, 40

# The signs of both parts of a bar: of what there is, and of what was taken.
# The plain ones are for encodings without blocks.
_SIGNS = '█░'
_PLAIN_SIGNS = '#.'


@dataclasses.dataclass(frozen=True)
class Bar:
    """A cell of a table that draws numbers as parts of a bar.

    The first part is what there is; above 0 it has one sign at least. The
    second is what was taken of it.

    :ivar parts: the number of each part
    :ivar whole: the number that fills the width
    :ivar styles: of the parts
    """

    parts: Sequence[float]
    whole: float
    styles: Sequence[str] = (terminal.GOOD, terminal.BAD)

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        shown = text.Text(no_wrap=True, overflow='crop')
        is_shown = can_show(_SIGNS, paper.encoding)
        for sign, (begin, end, style) in zip(
            _SIGNS if is_shown else _PLAIN_SIGNS,
            self.divide(options.max_width),
            strict=False,
        ):
            shown.append(sign * (end - begin), style)
        yield shown

    def divide(self, width: int) -> Iterator[tuple[int, int, str]]:
        """Yield beginning, end and style of each part.

        :param width: of the whole
        """
        done, sum_ = 0, 0.0
        for number, style in zip(self.parts, self.styles, strict=False):
            sum_ += number
            end = round(width * sum_ / self.whole)
            if not done and number:
                end = max(end, 1)
            yield done, end, style
            done = end

    def __rich_measure__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> measure.Measurement:
        return measure.Measurement(NARROWEST, WIDEST)


def can_show(signs: str, encoding: str) -> bool:
    """Return whether an encoding has these signs."""
    try:
        signs.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


#: The cell of a row without a bar.
NO_BAR: Bar | str = ''


def compare(
    numbers: Sequence[typing.Any], style: str = terminal.GOOD
) -> list[Bar | str]:
    """Return a bar for each number; the largest fills the width.

    Texts have no bar. Nor has a single number: there is none to compare.

    :param style: of all bars
    """
    counted = [one for one in numbers if isinstance(one, int)]
    most = max(counted, default=0) if len(counted) > 1 else 0
    return [
        Bar((one,), most, (style,))
        if most and isinstance(one, int)
        else NO_BAR
        for one in numbers
    ]
