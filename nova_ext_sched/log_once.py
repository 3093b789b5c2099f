# SPDX-License-Identifier: Apache-2.0

"""Lines about what operators and members wrote, each logged once.

Every request and every host meets a malformed value in one aggregate. A
warning for each would flood the log.
"""

from collections.abc import Hashable
import math
import threading

from oslo_log import log as logging
from oslo_utils import timeutils

# How often the faults that are not logged one by one are counted.
_AGAIN = 300.0

# A fault that nobody met for so long makes room for another.
_FORGET = 3600.0

# Faults that are counted; a number beyond it says nothing more.
_MOST = 10_000


class LogOnce:
    """Logs each warning once, and only so many different ones.

    ===========================  ============================================
    warning                      what is logged
    ===========================  ============================================
    met before                   nothing
    new, while there is room     it
    new, without room            nothing at once; in five minutes, and every
                                 five minutes again, how many there were
    ===========================  ============================================

    What was logged keeps its place as long as it is met. So a thousand faults
    are a few lines, and none of them makes the log forget another. A warning
    that goes by what a member of a project wrote needs a ``key`` that does
    not, or a log of its own: it could take all the room.

    :param name: of the module that warns
    :param capacity: number of warnings that are logged one by one
    """

    def __init__(self, name: str, capacity: int = 100) -> None:
        self._logger = logging.getLogger(name)
        self._capacity = capacity
        # When each was last met; the one that nobody met for longest first.
        self._seen: dict[Hashable, float] = {}
        # Hashes, because many messages would be kept with them.
        self._more: set[int] = set()
        self._since = math.inf
        self._lock = threading.Lock()

    def warning(self, message: str, key: Hashable = None) -> None:
        """Log a message unless it was logged before.

        :param key: what makes the message distinct; by default its text
        """
        for line in self._choose(message, key):
            self._logger.warning('%s', line)

    def info(self, message: str, key: Hashable = None) -> None:
        """Log what nobody has to correct, in the same way, uncounted."""
        if message in self._choose(message, key):
            self._logger.info('%s', message)

    def _choose(self, message: str, key: Hashable) -> list[str]:
        with self._lock:
            return self._remember(message, message if key is None else key)

    def _remember(self, message: str, key: Hashable) -> list[str]:
        now = timeutils.now()
        lines = []
        if now >= self._since + _AGAIN:
            count = f'{len(self._more)}{"+" * (len(self._more) >= _MOST)}'
            lines.append(
                f'{count} more warnings in the last '
                f'{now - self._since:.0f} seconds, besides {len(self._seen)} '
                f'that are in the log. nova-ext-sched-status upgrade check '
                f'lists what is wrong in aggregates and flavors.'
            )
            self._more.clear()
            self._since = math.inf
        is_new = self._seen.pop(key, None) is None
        if is_new and len(self._seen) >= self._capacity:
            oldest = next(iter(self._seen))
            if now < self._seen[oldest] + _FORGET:
                self._since = min(self._since, now)
                if len(self._more) < _MOST:
                    self._more.add(hash(key))
                return lines
            del self._seen[oldest]
        self._seen[key] = now
        return [*lines, message] if is_new else lines
