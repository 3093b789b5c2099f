# SPDX-License-Identifier: Apache-2.0

"""Ctrl-C ends a command wherever it arrives."""

import _thread
from collections.abc import Iterator
import contextlib
import signal
import sys
import threading
import time
import typing

# Seconds in which the code that dropped the interrupt returns.
_SECONDS = 0.01


@contextlib.contextmanager
def certain() -> Iterator[None]:
    """Repeat a Ctrl-C that Python dropped, until the block ends by it.

    Python raises KeyboardInterrupt in whatever code runs. In a callback of a
    weak reference, in ``__del__`` and in a callback from C it prints
    "Exception ignored in" and goes on: importlib alone has a callback for
    each module.
    """
    before = sys.unraisablehook

    def repeat(dropped: typing.Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        # An exception that is raised here would be dropped, too.
        _thread.start_new_thread(_interrupt_later, ())

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt_later() -> None:
    time.sleep(_SECONDS)
    # To the main thread, so that it stops waiting for a service.
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
