# SPDX-License-Identifier: Apache-2.0

"""What holds for each line that the package logs, in every test."""

import copy
import functools
import logging
import math
import sys

from oslo_config import cfg
from oslo_log import formatters


def forget():
    """Let the package log again what an earlier test saw logged.

    It logs many lines once a process; a test stands for a process.
    """
    for log in _find_logs(len(sys.modules)):
        if isinstance(log, dict):
            log.clear()
        elif hasattr(log, '_logged'):
            log._logged.clear()
        else:
            log._seen.clear()
            log._more.clear()
            log._since = math.inf


@functools.lru_cache(1)
def _find_logs(_):
    # Again only where modules were imported since.
    return [
        value
        for module, found in list(sys.modules.items())
        if module.startswith('nova_ext_sched.')
        for name, value in vars(found).items()
        if type(value).__name__ in ('LogOnce', 'Outage') or name == 'OUTAGES'
    ]


class Causes(logging.Handler):
    """Collects the lines that say their cause twice.

    oslo.log appends the exception under way, uncleaned, to a warning that is
    logged inside an ``except`` clause, and to a line with a traceback.
    """

    def __init__(self):
        super().__init__(logging.WARNING)
        self._formatter = formatters.ContextFormatter(
            '%(message)s', config=cfg.CONF
        )
        self._faults = []

    def emit(self, record):
        record = copy.copy(record)
        text = record.getMessage()
        line = self._formatter.format(record)
        if record.exc_info:
            kind, *_ = record.exc_info
            says_twice = kind.__name__ in text
        else:
            says_twice = not line.endswith(text)
        if says_twice:
            self._faults.append(line)

    def begin(self):
        """Look at what the package logs from now on."""
        self._faults.clear()
        logging.getLogger('nova_ext_sched').addHandler(self)

    def check(self):
        """Fail if there are any."""
        if self._faults:
            raise AssertionError('\n'.join(self._faults))

    def end(self):
        """Look no more."""
        logging.getLogger('nova_ext_sched').removeHandler(self)


#: Of the test that runs.
CAUSES = Causes()
