# SPDX-License-Identifier: Apache-2.0

"""Keeps what was written by others within bounds, and secrets out of it."""

from collections.abc import Iterator
import json
import typing

from nova_ext_sched import messages

#: Bytes of a record, with its line break.
RECORD_BYTES = 64 * 1024

# Of an explanation; the rest of a record is small.
_EXPLANATION_BYTES = RECORD_BYTES - 8 * 1024

# How many hosts of the scheduler's order are kept.
_MOST_HOSTS = 20

# One after the other, until it fits: entries of a list, and characters of a
# text, of which JSON needs up to 12 bytes for each.
_LIMITS = (
    (1000, 10_000),
    (200, 1000),
    (60, 300),
    (20, 100),
    (4, 40),
    (2, 40),
)

# A dictionary keeps as many, because documents have that many keys of ours.
_LEAST_KEYS = 16

Document = dict[str, typing.Any]


def shorten(document: Document) -> Document:
    """Return an explanation that fits into a record.

    What is left out is in a remark. Where much is, constraints that refuse no
    host go first.

    :param document: see nova_ext_sched.cmd.explain.document; it stays as it
        is
    """
    for limits in _LIMITS:
        left_out: dict[str, int] = {}
        found = {
            **document,
            'order': document['order'][:_MOST_HOSTS],
            'constraints': _choose(document['constraints'], limits[0]),
        }
        for key in ('order', 'constraints'):
            if number := len(document[key]) - len(found[key]):
                left_out[key] = number
        found = _cut(found, limits, (), left_out)
        if left_out:
            found['remarks'].append(
                'Left out, because a record has a bound: '
                + ', '.join(_describe(left_out))
            )
        if size(found) <= _EXPLANATION_BYTES:
            break
    return found


def clean(value: typing.Any) -> typing.Any:
    """Return what JSON can hold without secrets, each text within a bound."""
    return _cut(value, _LIMITS[1], (), {})


def size(document: Document) -> int:
    """Return the number of bytes of a document as a record has it."""
    return len(json.dumps(document, separators=(',', ':')))


def _choose(constraints: list[Document], most: int) -> list[Document]:
    chosen = sorted(
        range(len(constraints)),
        key=lambda number: -(constraints[number]['refused'] or 0),
    )[:most]
    return [constraints[number] for number in sorted(chosen)]


def _cut(
    value: typing.Any,
    limits: tuple[int, int],
    path: tuple[str, ...],
    left_out: dict[str, int],
) -> typing.Any:
    """Return a value with fewer entries and characters.

    :param left_out: gets how many entries are missing, and how many texts are
        cut, by where they stood
    """
    entries, characters = limits
    if isinstance(value, dict):
        entries = max(entries, _LEAST_KEYS)
    place = '.'.join(path[:2])
    if isinstance(value, str):
        text = messages.without_secrets(value)
        if len(text) > characters:
            left_out[place] = left_out.get(place, 0) + 1
            return text[:characters] + '...'
        return text
    if not isinstance(value, list | dict):
        return value
    if more := max(0, len(value) - entries):
        left_out[place] = left_out.get(place, 0) + more
    if isinstance(value, list):
        return [_cut(one, limits, path, left_out) for one in value[:entries]]
    return {
        _cut(key, limits, (*path, 'keys'), left_out): _cut(
            one, limits, (*path, key), left_out
        )
        for key, one in list(value.items())[:entries]
    }


def _describe(left_out: dict[str, int]) -> Iterator[str]:
    for place, number in left_out.items():
        yield f'{messages.clean(place, 40)} ({number})'
