# SPDX-License-Identifier: Apache-2.0

"""Warnings about operators' data, once per distinct fault.

Every request and every host meets a malformed value in one aggregate. A
warning for each would flood the log.
"""

import collections
from collections.abc import Hashable
import threading

from oslo_log import log as logging


class FaultLog:
    """Logs each distinct fault once, and remembers a bounded number.

    :param logger: where the warnings go; the module that found the fault
    :param capacity: number of faults remembered; beyond it the oldest is
        forgotten and may be logged again
    """

    def __init__(
        self, logger: logging.KeywordArgumentAdapter, capacity: int = 1024
    ) -> None:
        self._logger = logger
        self._capacity = capacity
        self._seen: collections.OrderedDict[Hashable, None] = (
            collections.OrderedDict()
        )
        self._lock = threading.Lock()

    def warn(self, fault: str, key: Hashable = None) -> bool:
        """Log the message ``fault`` unless it was logged before.

        :param key: what makes the fault distinct; by default the message
        :returns: whether it was logged now
        """
        key = fault if key is None else key
        with self._lock:
            if key in self._seen:
                self._seen.move_to_end(key)
                return False
            self._seen[key] = None
            if len(self._seen) > self._capacity:
                self._seen.popitem(last=False)
        self._logger.warning('%s', fault)
        return True
