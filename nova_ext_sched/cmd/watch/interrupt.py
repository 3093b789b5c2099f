# SPDX-License-Identifier: Apache-2.0

"""Signals end waiting and long work at once, and never a write."""

from collections.abc import Iterator
import contextlib
import signal
import types


class Stop(SystemExit):
    """The process was told to end, or to begin anew.

    A SystemExit, because eventlet's hub lets nothing else through.
    """


def hold() -> None:
    """Let SIGHUP wait until :meth:`Interrupt.install`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


class Interrupt:
    """Raises :class:`Stop` for a signal, where that does no harm.

    ========  =========================
    signal    :attr:`pending`
    ========  =========================
    SIGTERM   the process is to end
    SIGINT    the same
    SIGHUP    nova.conf is to be reread
    ========  =========================

    SIGHUP would end the process before its handler is there: it waits from
    :func:`hold` to :meth:`install`. Python has no handler that outlives
    ``exec``, but what is held stays held.

    :ivar pending: the signal that arrived, None before
    """

    def __init__(self) -> None:
        self.pending: int | None = None
        self._is_allowed = False

    def install(self) -> None:
        """Take over the signals of this process."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Let a signal end the block at any moment.

        :raises Stop: one has arrived, before or within
        """
        self._is_allowed = True
        try:
            if self.pending is not None:
                raise Stop()
            yield
        finally:
            self._is_allowed = False

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        # To end counts more than to begin anew.
        if self.pending in (None, signal.SIGHUP):
            self.pending = number
        if self._is_allowed:
            raise Stop()
