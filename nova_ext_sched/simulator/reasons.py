# SPDX-License-Identifier: Apache-2.0

"""Why the scheduler decided as it did, taken from what it logs."""

import logging
import re

_OURS = 'nova_ext_sched'

# nova's own lines that say which stage left no host, by their logger.
_NOVA = {
    'nova.filters': re.compile('Filter .* returned 0 hosts'),
    # A move leaves its own host, whatever placement returned.
    'nova.scheduler.host_manager': re.compile('Host filter ignoring hosts'),
    'nova.scheduler.manager': re.compile('Got no allocation candidates'),
    'nova.scheduler.request_filter': re.compile('.'),
}

#: The loggers to listen to, with the lowest level that each tells reasons at.
LEVELS = {
    _OURS: logging.DEBUG,
    'nova.filters': logging.INFO,
    'nova.scheduler.host_manager': logging.INFO,
    'nova.scheduler.manager': logging.INFO,
    'nova.scheduler.request_filter': logging.WARNING,
}


class Reasons(logging.Handler):
    """Collects the lines that tell why hosts were refused.

    All lines of our package, and of nova's scheduler those that name the
    stage at which the last host went.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        # Ordered, and each once.
        self._lines: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        line = record.getMessage()
        if record.name.partition('.')[0] != _OURS:
            wanted = _NOVA.get(record.name)
            if wanted is None or not wanted.match(line):
                return
            # What follows the first sentence is advice to the reader of a log.
            line = line.partition('. ')[0]
        self._lines[line.splitlines()[0]] = None

    def take(self) -> tuple[str, ...]:
        """Return what was collected since the last call."""
        lines = tuple(self._lines)
        self._lines.clear()
        return lines
