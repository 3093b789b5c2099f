# SPDX-License-Identifier: Apache-2.0

"""Bars beside the numbers that they compare."""

from collections.abc import Sequence
import dataclasses
import typing

from rich import console
from rich import measure
from rich import text

from nova_ext_sched.cli import terminal

#: How many columns a bar has; in a narrower table there is none.
NARROWEST, WIDEST = 12, 40

# What there is, and what was taken of it; in any encoding, and in one that
# has no blocks.
_SIGNS = '█░'
_PLAIN_SIGNS = '#.'


@dataclasses.dataclass(frozen=True)
class Bar:
    """A cell of a table that draws parts of a whole, as long as their numbers.

    The first is what there is, and has a sign at least where it is more than
    none; the second what was taken beside it.

    :ivar parts: numbers
    :ivar whole: the number that the width stands for
    :ivar styles: of the parts
    """

    parts: Sequence[float]
    whole: float
    styles: Sequence[str] = (terminal.GOOD, terminal.BAD)

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        shown = text.Text(no_wrap=True, overflow='crop')
        signs = _SIGNS
        if not can_show(signs, paper.encoding):
            signs = _PLAIN_SIGNS
        done, sum_ = 0, 0.0
        for number, sign, style in zip(
            self.parts, signs, self.styles, strict=False
        ):
            sum_ += number
            end = round(options.max_width * sum_ / self.whole)
            if not done and number:
                end = max(end, 1)
            shown.append(sign * (end - done), style)
            done = end
        yield shown

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


#: In place of one.
NO_BAR: Bar | str = ''


def compare(
    numbers: Sequence[typing.Any], style: str = terminal.GOOD
) -> list[Bar | str]:
    """Return a bar for each number; the largest fills the width.

    Text has none, nor has a number that is alone.

    :param style: of all
    """
    counted = [one for one in numbers if isinstance(one, int)]
    most = max(counted, default=0) if len(counted) > 1 else 0
    return [
        Bar((one,), most, (style,))
        if most and isinstance(one, int)
        else NO_BAR
        for one in numbers
    ]
