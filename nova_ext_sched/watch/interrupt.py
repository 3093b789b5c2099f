# SPDX-License-Identifier: Apache-2.0

"""Signals end waiting and long work at once, and never a write."""

from collections.abc import Iterator
import contextlib
import signal
import types


class Stop(SystemExit):
    """The process was asked to end.

    A SystemExit, because eventlet's hub lets nothing else through.
    """


class Interrupt:
    """Raises :class:`Stop` for a signal, at moments when that does no harm.

    SIGTERM, SIGINT and SIGHUP end the process.

    :ivar arrived: whether a signal has arrived
    """

    def __init__(self) -> None:
        self.arrived = False
        self._is_allowed = False

    def install(self) -> None:
        """Take over the signals of this process."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """Allow a signal to end the block at any moment.

        :raises Stop: a signal has arrived, before the block or within
        """
        self._is_allowed = True
        try:
            if self.arrived:
                raise Stop()
            yield
        finally:
            self._is_allowed = False

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        self.arrived = True
        if self._is_allowed:
            raise Stop()
