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
        scissors = _Scissors(*limits)
        found = scissors.cut(document)
        if scissors.left_out:
            places = (
                f'{messages.clean(place, 40)} ({number})'
                for place, number in scissors.left_out.items()
            )
            found['remarks'].append(
                f'Left out, because a record has a bound: {", ".join(places)}'
            )
        if len(json.dumps(found, separators=(',', ':'))) <= _EXPLANATION_BYTES:
            break
    return found


def clean(value: typing.Any) -> typing.Any:
    """Return what JSON can hold without secrets, each text within a bound."""
    return _Scissors(*_LIMITS[1]).cut(value)


class _Scissors:
    """Returns values with fewer entries and characters.

    :ivar left_out: how many entries are missing, and how many texts are cut,
        by where they stood
    """

    def __init__(self, entries: int, characters: int) -> None:
        self._entries = entries
        self._characters = characters
        self.left_out: collections.Counter[str] = collections.Counter()

    def cut(self, value: typing.Any, *path: str) -> typing.Any:
        if isinstance(value, str):
            text = messages.without_secrets(value)
            if len(text) <= self._characters:
                return text
            self._note(path, 1)
            return text[: self._characters] + '...'
        if isinstance(value, list):
            kept = self._choose(value, path)
            self._note(path, len(value) - len(kept))
            return [self.cut(one, *path) for one in kept]
        if isinstance(value, dict):
            most = max(self._entries, _LEAST_KEYS)
            self._note(path, max(0, len(value) - most))
            return {
                self.cut(key, *path, 'keys'): self.cut(one, *path, key)
                for key, one in list(value.items())[:most]
            }
        return value

    def _choose(
        self, values: list[typing.Any], path: tuple[str, ...]
    ) -> list[typing.Any]:
        if path == ('order',):
            return values[: min(self._entries, _MOST_HOSTS)]
        if path != ('constraints',):
            return values[: self._entries]
        ranked = sorted(
            range(len(values)), key=lambda one: -(values[one]['refused'] or 0)
        )
        return [values[one] for one in sorted(ranked[: self._entries])]

    def _note(self, path: tuple[str, ...], number: int) -> None:
        if number:
            self.left_out['.'.join(path[:2])] += number
