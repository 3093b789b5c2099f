# SPDX-License-Identifier: Apache-2.0

"""Finds misspelt prefixes of metadata keys and extra specs."""

from collections.abc import Iterable
import difflib
import functools
import re

# How alike two words are, from 0 to 1: a letter wrong, missing or too much.
_ALIKE = 0.8


def nearly_begins(key: str, prefixes: Iterable[str]) -> bool:
    """Return whether a person reads one of the prefixes at a key's beginning.

    Neither case nor the blanks around key and prefix count.
    """
    return (
        key.strip()
        .lower()
        .startswith(tuple(prefix.strip().lower() for prefix in prefixes))
    )


# Requests meet the same keys, and to compare words takes a while.
@functools.lru_cache(maxsize=16384)
def resembles(key: str, prefix: str) -> bool:
    """Return whether a key looks like one with a misspelt prefix.

    ================================  ==================================
    prefix ``trait:``                 resembles it
    ================================  ==================================
    ``trait :X``, ``traits:X``,       yes
    ``tait:X``, ``trait1:X``,
    ``trait=X``, ``scope:trait:X``
    ``trait``, nothing behind it      yes
    ``trait:X``, ``Trait:X``          no: a person reads the prefix
    ``zone:trait``, ``portrait:X``    no
    ================================  ==================================

    Of a prefix that does not end in a colon, as ``filter_tenant_id``, the
    whole key is compared, but for digits at its end.
    """
    if nearly_begins(key, [prefix]):
        return False
    wanted = prefix.strip().lower()
    words = [word.strip() for word in re.split('[:=;]', key.lower())]
    if wanted.endswith(':'):
        wanted = wanted.rstrip(':')
        # The last one is what stands behind a prefix.
        words = words[:-1] or words
    else:
        words = [key.strip().lower().rstrip('0123456789')]
    return bool(difflib.get_close_matches(wanted, words, 1, _ALIKE))
