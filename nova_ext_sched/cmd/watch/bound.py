# SPDX-License-Identifier: Apache-2.0

"""Keeps what was written by others within bounds, and secrets out of it."""

import collections
import json
import typing

from nova_ext_sched import messages
from nova_ext_sched.cmd import records

# Of an explanation; the rest of a record is small.
_EXPLANATION_BYTES = records.RECORD_BYTES - 8 * 1024

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
        found, left_out = _cut(document, *limits)
        if left_out:
            places = (
                f'{messages.clean(place, 40)} ({number})'
                for place, number in left_out.items()
            )
            found['remarks'].append(
                f'Left out, because a record has a bound: {", ".join(places)}'
            )
        if len(json.dumps(found, separators=(',', ':'))) <= _EXPLANATION_BYTES:
            break
    return found


def clean(value: typing.Any) -> typing.Any:
    """Return what JSON can hold without secrets, each text within a bound."""
    return _cut(value, *_LIMITS[1])[0]


def _cut(
    value: typing.Any, entries: int, characters: int
) -> tuple[typing.Any, collections.Counter[str]]:
    """Return a value with fewer entries and characters.

    :returns: the value, and how many entries are missing and how many texts
        are cut, by where they stood
    """
    left_out: collections.Counter[str] = collections.Counter()

    def cut(one: typing.Any, *path: str) -> typing.Any:
        place = '.'.join(path[:2])
        if isinstance(one, str):
            text = messages.without_secrets(one)
            if len(text) <= characters:
                return text
            left_out[place] += 1
            return f'{text[:characters]}...'
        if isinstance(one, list):
            kept = _choose(one, place, entries)
            left_out[place] += len(one) - len(kept)
            return [cut(each, *path) for each in kept]
        if isinstance(one, dict):
            keys = list(one)[: max(entries, _LEAST_KEYS)]
            left_out[place] += len(one) - len(keys)
            return {
                cut(key, *path, 'keys'): cut(one[key], *path, key)
                for key in keys
            }
        return one

    # Without those of which nothing is missing.
    return cut(value), +left_out


def _choose(
    values: list[typing.Any], place: str, most: int
) -> list[typing.Any]:
    if place == 'order':
        return values[: min(most, _MOST_HOSTS)]
    if place != 'constraints':
        return values[:most]
    ranked = sorted(
        range(len(values)), key=lambda one: -(values[one]['refused'] or 0)
    )
    return [values[one] for one in sorted(ranked[:most])]
