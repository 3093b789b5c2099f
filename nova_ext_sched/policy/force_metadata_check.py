# SPDX-License-Identifier: Apache-2.0

"""Which metadata items an aggregate forces upon flavors."""

from collections.abc import Collection
from collections.abc import Mapping
import functools

from oslo_utils import strutils

from nova_ext_sched import messages

FLAG = 'force_metadata_check'

#: nova's own unscoped extra spec; aggregates have nothing to say about it.
GROUP_POLICY = 'group_policy'


class ForceMetadataCheck:
    """Reads the flag: "Aggregate Instance Type Filter", use cases 4 to 6.

    ===================  =======================  ==========================
    flag                 key                      decision
    ===================  =======================  ==========================
    absent, or false     any                      not forced
    true                 any but those below      forced
    true                 the flag, ignored,       not forced
                         ``group_policy``, with
                         a reserved prefix
    no boolean of oslo   any                      not forced, and a fault
    ===================  =======================  ==========================

    :param ignored: metadata keys that no aggregate forces
    :param reserved_prefixes: prefixes of keys that belong to another policy
    """

    def __init__(
        self,
        ignored: Collection[str] = (),
        reserved_prefixes: Collection[str] = (),
    ) -> None:
        # The empty prefix would be that of every key.
        self._reserved = tuple(filter(None, reserved_prefixes))
        self._unforced = {FLAG, GROUP_POLICY, *ignored}

    def is_foreign(self, key: str) -> bool:
        """Return whether a key, in flavor or aggregate, is not compared."""
        return key == GROUP_POLICY or key.startswith(self._reserved)

    def may_force(self, key: str) -> bool:
        """Return whether an aggregate whose flag is true forces the key."""
        return key not in self._unforced and not key.startswith(self._reserved)

    def flag(self, metadata: Mapping[str, str]) -> bool | None:
        """Return the flag of an aggregate; None if it is malformed."""
        return _read_flag(metadata[FLAG]) if FLAG in metadata else False

    def forces(self, metadata: Mapping[str, str], key: str) -> bool:
        """Return whether an aggregate forces a key that it has."""
        return bool(self.flag(metadata)) and self.may_force(key)

    def faults(self, name: str, metadata: Mapping[str, str]) -> list[str]:
        """Return what is wrong with the flag of an aggregate, if anything."""
        if self.flag(metadata) is not None:
            return []
        booleans = ', '.join(strutils.TRUE_STRINGS + strutils.FALSE_STRINGS)
        return [
            f'aggregate {messages.clean(name)}: metadata {FLAG!r}: expected '
            f'one of {booleans}, got {messages.quoted(metadata[FLAG])}; the '
            f'aggregate forces nothing'
        ]


# oslo takes longer than the filter has for an aggregate.
@functools.lru_cache(maxsize=1024)
def _read_flag(text: str) -> bool | None:
    try:
        return strutils.bool_from_string(text, strict=True)
    except ValueError:
        return None
