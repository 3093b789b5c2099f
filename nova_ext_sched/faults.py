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

    :param name: of the module that finds the faults
    :param capacity: number of faults remembered; beyond it the oldest is
        forgotten and may be logged again
    """

    def __init__(self, name: str, capacity: int = 1024) -> None:
        self._logger = logging.getLogger(name)
        self._capacity = capacity
        self._seen: collections.OrderedDict[Hashable, None] = (
            collections.OrderedDict()
        )
        self._lock = threading.Lock()

    def warn(self, fault: str, key: Hashable = None) -> None:
        """Log the message ``fault`` unless it was logged before.

        :param key: what makes the fault distinct; by default the message
        """
        key = fault if key is None else key
        with self._lock:
            is_new = key not in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > self._capacity:
                self._seen.popitem(last=False)
        if is_new:
            self._logger.warning('%s', fault)
