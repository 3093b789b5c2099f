# SPDX-License-Identifier: Apache-2.0

"""Shortens explanations and texts for records, and removes secrets."""

from collections.abc import Callable
import json
import typing

from nova_ext_sched import messages
from nova_ext_sched.watch import records

# The most bytes of an explanation; the rest of a record is small.
_EXPLANATION_BYTES = records.RECORD_BYTES - 8 * 1024

# The most hosts of the scheduler's order that are kept.
_MOST_HOSTS = 20

# The number of keys of a dictionary that are kept in any case: as many as our
# documents have.
_LEAST_KEYS = 16

Document = dict[str, typing.Any]


def shorten(document: Document) -> Document:
    """Return an explanation that fits into a record.

    While it is too long, the most entries of its lists and the most characters
    of its texts are halved, and a remark is added.

    :param document: of :mod:`nova_ext_sched.dryrun.decision.document`; it
        stays as it is
    """
    document = document | {'order': document['order'][:_MOST_HOSTS]}
    # A list or text with more entries or characters would not fit anyway.
    most = _EXPLANATION_BYTES
    cut = whole = _cut(document, most)
    while len(json.dumps(cut, separators=(',', ':'))) > _EXPLANATION_BYTES:
        most //= 2
        # Only cut: the whole has no secrets any more, and to look for them
        # takes a hundred times as long.
        cut = _cut(whole, most, str)
        cut['remarks'].append(
            f'Cut, because a record has a bound: lists have {most} entries '
            f'at most, texts {most * 10} characters'
        )
    return cut


def clean(value: typing.Any) -> typing.Any:
    """Clean a value for JSON: no secrets, each text within a bound."""
    return _cut(value, 100)


def _cut(
    value: typing.Any,
    most: int,
    change: Callable[[str], str] = messages.without_secrets,
) -> typing.Any:
    """Cut lists to a number of entries, and texts to ten times as many signs.

    :param change: changes each text before it is cut
    """
    if isinstance(value, str):
        text = change(value)
        return text if len(text) <= most * 10 else f'{text[: most * 10]}...'
    if isinstance(value, list):
        return [_cut(one, most, change) for one in value[:most]]
    if isinstance(value, dict):
        keys = list(value)[: max(most, _LEAST_KEYS)]
        return {
            _cut(key, most, change): _cut(value[key], most, change)
            for key in keys
        }
    return value
