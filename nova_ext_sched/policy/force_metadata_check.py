# SPDX-License-Identifier: Apache-2.0

"""Whether an aggregate forces its metadata upon flavors.

"Aggregate Instance Type Filter", use cases 4 to 6.
"""

from collections.abc import Mapping
import functools

from oslo_utils import strutils

from nova_ext_sched import messages
from nova_ext_sched.policy import slips

FLAG = 'force_metadata_check'


def read(metadata: Mapping[str, str]) -> bool | None:
    """Return the flag of an aggregate; None if it is no boolean of oslo's.

    The aggregate does not enforce its metadata then.
    """
    return _read(metadata[FLAG]) if FLAG in metadata else False


def faults(name: str, metadata: Mapping[str, str]) -> list[str]:
    """List the fault of an aggregate's flag, if it has one."""
    if read(metadata) is not None:
        return []
    booleans = ', '.join(strutils.TRUE_STRINGS + strutils.FALSE_STRINGS)
    return [
        f'aggregate {messages.clean(name)}: metadata {FLAG!r}: expected one '
        f'of {booleans}, got {messages.quoted(metadata[FLAG])}; the aggregate '
        f'does not enforce its metadata'
    ]


def find_slips(name: str, metadata: Mapping[str, str]) -> list[str]:
    """Return which keys of an aggregate were to be the flag, and are not."""
    return [
        f'aggregate {messages.clean(name)}: metadata {messages.quoted(key)}: '
        f'expected the key {FLAG!r}; the item has no effect'
        for key in metadata
        if key != FLAG
        and (
            slips.nearly_begins(spelt := key.replace('-', '_'), [FLAG])
            or slips.resembles(spelt, FLAG)
        )
    ]


# oslo takes longer than the filter has for an aggregate.
@functools.lru_cache(maxsize=1024)
def _read(text: str) -> bool | None:
    try:
        return strutils.bool_from_string(text, strict=True)
    except ValueError:
        return None
