# SPDX-License-Identifier: Apache-2.0

"""Warnings about what operators wrote, each logged once.

Every request and every host meets a malformed value in one aggregate. A
warning for each would flood the log.
"""

from collections.abc import Hashable
import threading

import cachetools
from oslo_log import log as logging


class LogOnce:
    """A log of warnings that has each once, and remembers a bounded number.

    :param name: of the module that warns
    :param capacity: number of warnings remembered; beyond it the oldest is
        forgotten and may be logged again
    """

    def __init__(self, name: str, capacity: int = 1024) -> None:
        self._logger = logging.getLogger(name)
        self._seen: cachetools.LRUCache[Hashable, None] = cachetools.LRUCache(
            capacity
        )
        self._lock = threading.Lock()

    def warning(self, message: str, key: Hashable = None) -> None:
        """Log a message unless it was logged before.

        :param key: what makes the message distinct; by default its text
        """
        key = message if key is None else key
        with self._lock:
            is_new = key not in self._seen
            self._seen[key] = None
        if is_new:
            self._logger.warning('%s', message)
