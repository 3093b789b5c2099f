# SPDX-License-Identifier: Apache-2.0

"""Logs faults in data of operators and members once, not by request.

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


#: Advice for what the status check reads: metadata and extra specs.
CHECKED = (
    ' nova-ext-sched-status upgrade check lists what is wrong in aggregates '
    'and flavors.'
)


class LogOnce:
    """Logs each line once while it is met, and only so many different ones.

    ===========================  ============================================
    line                         what is logged
    ===========================  ============================================
    has a place                  nothing
    new, while there is room     it; it has a place then
    new, without room, and       it, in the place of the one that nobody met
    nobody met another for an    for longest, which is new again
    hour
    new, without room            nothing at once; in five minutes, and every
                                 five minutes again, how many there were
    ===========================  ============================================

    What was logged keeps its place as long as it is met. So a thousand faults
    are a few lines, and none of them makes the log forget another. A line
    that goes by what a member of a project wrote needs a ``key`` that does
    not, or a log of its own: it could take all the room. A log has lines of
    one level, and the count has that level too.

    :param name: of the module that writes
    :param capacity: number of lines that are logged one by one
    :param advice: where those are listed that are only counted, if anywhere:
        :data:`CHECKED`
    """

    def __init__(
        self, name: str, capacity: int = 100, advice: str = ''
    ) -> None:
        self._logger = logging.getLogger(name)
        self._capacity = capacity
        self._advice = advice
        # When each was last met; the one that nobody met for longest first.
        self._seen: dict[Hashable, float] = {}
        # Hashes, because many messages would be kept with them.
        self._more: set[int] = set()
        self._since = math.inf
        self._lock = threading.Lock()

    def warning(self, message: str, key: Hashable = None) -> None:
        """Log a fault that an operator must correct, but only once.

        :param key: what makes the message distinct; by default its text
        """
        self._log(logging.WARNING, message, key)

    def info(self, message: str, key: Hashable = None) -> None:
        """Like :func:`warning`, at INFO.

        What members write is of this kind: a warning raises an alert.
        """
        self._log(logging.INFO, message, key)

    def _log(self, level: int, message: str, key: Hashable) -> None:
        with self._lock:
            lines = self._remember(message, message if key is None else key)
        for line in lines:
            self._logger.log(level, '%s', line)

    def _remember(self, message: str, key: Hashable) -> list[str]:
        now = timeutils.now()
        lines = []
        if now >= self._since + _AGAIN:
            count = f'{len(self._more)}{"+" * (len(self._more) >= _MOST)}'
            lines.append(
                f'{count} more of this kind in the last '
                f'{now - self._since:.0f} seconds, besides {len(self._seen)} '
                f'that are in the log.{self._advice}'
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
