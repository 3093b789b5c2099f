# SPDX-License-Identifier: Apache-2.0

"""How text that people wrote appears in messages, logs and errors."""

from collections.abc import Callable
from collections.abc import Sequence
import typing


def clean(text: object, longest: int = 255) -> str:
    """Return a text that a user or an operator wrote, safe for one line.

    A name, a metadata value or a scheduler hint may have any length and any
    characters; a line break would forge a line of the log.

    ============================  ==========================================
    text                          result
    ============================  ==========================================
    printable and short           as it is
    with other characters         as a Python literal in ASCII
    longer than ``longest``       the beginning as a literal, then ``...``
    ============================  ==========================================

    :param text: what somebody wrote, or what ``str`` gives of it
    :param longest: number of characters shown; nova's metadata keys have no
        more than 255
    """
    text = str(text)
    if len(text) <= longest and text.isprintable():
        return text
    more = '...' if len(text) > longest else ''
    return ascii(text[:longest]) + more


def quoted(text: object) -> str:
    """Return a value that somebody wrote, in quotation marks, for one line."""
    return f"'{clean(text)}'"


def describe(exc: BaseException) -> str:
    """Return an exception as one line: its type, and the first line it says.

    The further lines of a database's error are its statement.
    """
    line = str(exc).strip().partition('\n')[0]
    return f'{type(exc).__name__}: {clean(line, 1000)}'


def count(noun: str, number: int) -> str:
    """Return a number of things: ``1 host``, ``2 hosts``."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def agree(number: int, one: str, many: str) -> str:
    """Return the form of a verb that agrees with a number of things."""
    return one if number == 1 else many


def part(number: int, whole: int, noun: str, one: str, many: str) -> str:
    """Return what some of many things do: ``1 of 3 hosts is``.

    :param one: the verb and what follows, of one thing
    :param many: the same of several
    """
    verb = one if whole == 1 else agree(number, one, many)
    return f'{number} of {count(noun, whole)} {verb}'


def first_few(
    names: Sequence[typing.Any],
    most: int = 10,
    show: Callable[[typing.Any], str] = clean,
) -> str:
    """Return the first names for a message, and how many more there are.

    :param most: number of names shown: enough to recognize, short enough to
        read
    :param show: returns the text for one name, and must clean it
    """
    more = len(names) - most
    shown = ', '.join(show(name) for name in names[:most])
    return shown + (f' and {more} more' if more > 0 else '')


def install_extra(extra: str) -> str:
    """Return how to install an extra of this package, which is on no index."""
    return (
        f"in a clone of nova-ext-sched, pip install '.[{extra}]'; from a "
        f"wheel, pip install './nova_ext_sched-VERSION-py3-none-any.whl"
        f"[{extra}]'"
    )
