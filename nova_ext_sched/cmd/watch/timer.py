# SPDX-License-Identifier: Apache-2.0

"""When it is time for what is done every now and then."""

from oslo_utils import timeutils


class Timer:
    """Tells when it is time, first at once.

    :param interval: seconds from the beginning of one time to that of the
        next; None for never
    """

    def __init__(self, interval: float | None) -> None:
        self._interval = interval
        self._next = 0.0

    def is_due(self) -> bool:
        """Return whether it is time, and note that it begins now."""
        now = timeutils.now()
        if self._interval is None or now < self._next:
            return False
        self._next = now + self._interval
        return True
