# SPDX-License-Identifier: Apache-2.0

"""Puts values that have one key together."""

from collections.abc import Hashable
from collections.abc import Iterable
import typing

_Key = typing.TypeVar('_Key', bound=Hashable)
_Value = typing.TypeVar('_Value')


def by_key(
    pairs: Iterable[tuple[_Key, _Value]],
) -> dict[_Key, list[_Value]]:
    """Return the values of each key; keys and values keep their order."""
    values: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values
