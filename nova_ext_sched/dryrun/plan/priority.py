# SPDX-License-Identifier: Apache-2.0

"""Reads the restart priorities of servers: which come first.

Servers that come first get the last places. Values that other tools write work
as they are:

==========================================  =============================
value, whatever its case                    priority, the highest first
==========================================  =============================
1 to 1000 (InstanceHA)                      it
highest, high, medium, low, lowest,         1000, 750, 500, 250, 1, 0
disabled (vSphere)
yes, y, true, t, on; no, n, false, f, off   750; 250
(``HA_Enabled`` of masakari)
anything else, or none                      500
==========================================  =============================
"""

from collections.abc import Mapping
import typing

import nova.conf
from oslo_utils import strutils

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF

#: The priority of a server without one.
MIDDLE = 500
_MOST = 1000

_WORDS = {
    'highest': 1000,
    'high': 750,
    'medium': MIDDLE,
    'low': 250,
    'lowest': 1,
    'disabled': 0,
}


def parse(value: str | None) -> int | None:
    """Return the priority that a value says; None if it cannot be read."""
    word = (value or '').strip().lower()
    if word.isascii() and word.isdecimal():
        number = int(word[:6])
        return number if 1 <= number <= _MOST else None
    try:
        is_first = strutils.bool_from_string(word, strict=True)
    except ValueError:
        return _WORDS.get(word)
    return _WORDS['high' if is_first else 'low']


def attrs() -> tuple[str, ...]:
    """Return the attributes of an Instance that priorities need."""
    is_read = 'server' in CONF.nova_ext_sched.restart_priority_sources
    return ('metadata',) * is_read


class Priorities:
    """Reads priorities, and notes what cannot be read.

    :ivar remarks: a sentence if values cannot be read
    """

    def __init__(self) -> None:
        ours = CONF.nova_ext_sched
        self._key, self._sources = (
            ours.restart_priority_key,
            ours.restart_priority_sources,
        )
        # One of the values that cannot be read, of each server.
        self._unread: dict[str, str] = {}

    @property
    def remarks(self) -> list[str]:
        if not self._unread:
            return []
        servers = messages.count('server', len(self._unread))
        verb = messages.agree(len(self._unread), 'counts', 'count')
        return [
            f'{servers} {verb} as without a restart priority: expected 1 to '
            f'{_MOST}, highest to lowest, yes or no in '
            f'{messages.clean(self._key)}, got '
            f'{messages.quoted(self._unread[min(self._unread)])}.'
        ]

    def take_unread(self) -> dict[str, str]:
        """Return the values that cannot be read, by server; forget them."""
        taken, self._unread = self._unread, {}
        return taken

    def add_unread(self, values: Mapping[str, str]) -> None:
        """Note what another process could not read."""
        self._unread |= values

    def read(self, spec_obj: typing.Any, instance: typing.Any = None) -> int:
        """Return a server's priority.

        :param spec_obj: the nova RequestSpec of its move
        :param instance: its nova Instance; None if there is none yet
        """
        for source in self._sources:
            value = read_properties(source, spec_obj, instance).get(self._key)
            found = None if value is None else parse(value)
            if found is not None:
                return found
            if value is not None and instance is not None:
                self._unread[instance.uuid] = value
        return MIDDLE


def read_properties(
    source: str, spec_obj: typing.Any, instance: typing.Any
) -> Mapping[str, str]:
    """Return the properties of a server's flavor or image, or its own.

    :param source: ``flavor``, ``image`` or ``server``
    :param spec_obj: a nova RequestSpec, for the flavor
    :param instance: the nova Instance for others; None if there is none yet
    """
    if source == 'flavor':
        return fields.get_field(spec_obj.flavor, 'extra_specs') or {}
    if source == 'server':
        # Of one that was not read with its host, nova reads it now.
        return (instance and instance.metadata) or {}
    return running_image.choose_copied(
        fields.get_field(instance, 'system_metadata') or {}
    )
