# SPDX-License-Identifier: Apache-2.0

"""Expands patterns of names: ``compute{01..50}``."""

from collections.abc import Iterable
import itertools
import re

# The most names of a pattern: more hosts than one process can simulate. A
# mistyped number must not exhaust the memory.
MAX_NAMES = 1000

_RANGE = re.compile(r'\{(\d+)\.\.(\d+)\}')


def expand(pattern: str) -> list[str]:
    """Return the names of a pattern.

    ``{A..B}`` counts from A to B, both included, with the leading zeros of
    A, as shells do. A pattern may have several ranges; one without a range is
    a name.

    :raises ValueError: B is less than A, or the pattern has more than
        MAX_NAMES names
    """
    text, *ranges = _RANGE.split(pattern)
    pieces = [[text]]
    size = 1
    for begin, end, text in zip(
        *(ranges[part::3] for part in range(3)), strict=True
    ):
        first, last = int(begin), int(end)
        if last < first:
            raise ValueError(
                f'a range that ends before it begins: {{{begin}..{end}}}'
            )
        size *= last - first + 1
        if size > MAX_NAMES:
            raise ValueError(f'more than {MAX_NAMES} names')
        numbers = range(first, last + 1)
        pieces += [f'{number:0{len(begin)}}' for number in numbers], [text]
    return [''.join(parts) for parts in itertools.product(*pieces)]


def expand_all(patterns: str | Iterable[str]) -> list[str]:
    """Return the names of one pattern or of several, in order.

    :raises ValueError: as :func:`expand`
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    return [name for pattern in patterns for name in expand(pattern)]
