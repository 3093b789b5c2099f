# SPDX-License-Identifier: Apache-2.0

"""What does not answer, in the log: when it begins and when it ends.

Every request meets an outage of a database. A line for each would bury the
cause.
"""

import math

from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import messages

# An outage that lasts is said again, for alerts and for logs that rotate.
_AGAIN = 300.0

# A request that needs no answer says nothing about the others. So an outage
# is over when one gets its answer and none has failed for so long.
_QUIET = 30.0

# Their text says it all. Anything else may be a fault of the code.
_WITHOUT_TRACEBACK = (
    db_exception.DBError,
    ks_exc.ClientException,
    nova_exception.NovaException,
    OSError,
)


class Outage:
    """An outage, as one line for each type of exception and one at its end.

    :param name: of the module that meets it
    :param level: of the lines about it
    """

    def __init__(self, name: str, level: int = logging.ERROR) -> None:
        self._logger = logging.getLogger(name)
        self._level = level
        # When each type of exception was logged.
        self._logged: dict[type, float] = {}
        self._since = self._last = 0.0
        self._count = 0

    def begin(self, message: str, exc: BaseException) -> None:
        """Log what a failure means, and its cause.

        At DEBUG if there was one of the type in the last five minutes.
        """
        now = timeutils.now()
        if not self._logged:
            self._since, self._count = now, 0
        self._count += 1
        self._last = now
        text = f'{message}: {messages.describe(exc)}'
        if now < self._logged.get(type(exc), -math.inf) + _AGAIN:
            self._logger.debug('%s', text)
            return
        self._logged[type(exc)] = now
        self._logger.log(
            self._level,
            '%s',
            text,
            exc_info=None if isinstance(exc, _WITHOUT_TRACEBACK) else exc,
        )

    def end(self, message: str) -> None:
        """Log that there was an answer, if the outage is over by that."""
        now = timeutils.now()
        if not self._logged or now < self._last + _QUIET:
            return
        self._logged.clear()
        self._logger.warning(
            '%s again, after %s in %.0f seconds.',
            message,
            messages.count('failure', self._count),
            self._last - self._since,
        )
