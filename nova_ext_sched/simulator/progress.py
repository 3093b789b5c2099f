# SPDX-License-Identifier: Apache-2.0

"""Progress on standard error, where a run takes a while."""

from collections.abc import Callable
import time
import typing

from rich import console
from rich import progress as rich_progress

#: Seconds before anything is shown, and between two lines where standard
#: error is no terminal.
PATIENCE = 1.5
LINES = 10.0


class Progress:
    """Shows how far a run is: a bar on a terminal, else a line now and then.

    :param total: the number of hosts and servers over all clouds
    :param stream: where to show it
    :param clock: tells seconds
    """

    def __init__(
        self,
        total: int,
        stream: typing.TextIO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._stream = stream
        self._clock = clock
        self._begin = clock()
        self._next = self._begin + PATIENCE
        self._bar: rich_progress.Progress | None = None
        self._task: typing.Any = None

    def __enter__(self) -> 'Progress':
        return self

    def __exit__(self, *args: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int) -> None:
        """Show that ``done`` of the total are done."""
        now = self._clock()
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif now < self._next:
            return
        elif self._stream.isatty():
            self._bar = rich_progress.Progress(
                console=console.Console(file=self._stream), transient=True
            )
            self._task = self._bar.add_task(
                'Simulating', total=self._total, completed=done
            )
            self._bar.start()
        else:
            self._next = now + LINES
            print(
                f'Simulating: {done} of {self._total} hosts and servers after '
                f'{now - self._begin:.0f} s',
                file=self._stream,
                flush=True,
            )
