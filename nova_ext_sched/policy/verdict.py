# SPDX-License-Identifier: Apache-2.0

"""What a policy answers about a host."""

from collections.abc import Sequence
import typing


class Verdict(typing.NamedTuple):
    """Whether a host may be used and, where it may not, why.

    The reason names what the operator can change (aggregate, key, wanted and
    offered value) but not the host: hosts that are refused for one cause
    share one reason, so that reasons can be counted.
    """

    passes: bool
    reason: str = ''


PASS = Verdict(True)


def reject(reason: str) -> Verdict:
    """Return the verdict that refuses a host for ``reason``."""
    return Verdict(False, reason)


def shown(text: str, longest: int = 255) -> str:
    """Return a text of an end user's as a reason may carry it.

    A scheduler hint may have any length and any characters: line breaks would
    forge lines of the log.

    :param text: for example a key that a request names
    :param longest: number of characters shown; nova's metadata keys have no
        more than 255
    """
    if len(text) <= longest and text.isprintable():
        return text
    more = '...' if len(text) > longest else ''
    return ascii(text[:longest]) + more


def first_few(names: Sequence[str], most: int = 10) -> str:
    """Return names as a reason lists them, and how many more there are.

    :param most: number of names: enough to recognize, short enough to read
    """
    more = len(names) - most
    return ', '.join(names[:most]) + (f' and {more} more' if more > 0 else '')
