# SPDX-License-Identifier: Apache-2.0

"""Progress of a long command, only on a terminal."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import typing

from rich import progress

from nova_ext_sched.cli import terminal


@contextlib.contextmanager
def bar(
    stream: typing.Any,
    label: str,
    total: int | None = None,
    color: str = terminal.AUTO,
) -> Iterator[Callable[..., None]]:
    """Show a bar while the block runs, and nothing after it.

    Nothing is written if the stream is not a terminal.

    :param stream: the stream of the bar, usually standard error
    :param total: number of steps; None if it is not known
    :param color: ``--color``
    :yields: a function to call after each step. It takes the number of steps
        done, and a new label. Called with a ``total``, it starts again at 0
        of this number of steps.
    """
    if not stream.isatty():
        # rich before 15 ends even a disabled bar with a line break.
        yield lambda steps=1, label=None, total=None: None
        return
    with progress.Progress(
        progress.TextColumn('{task.description}', markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=terminal.make(stream, color),
        transient=True,
    ) as shown:
        task = shown.add_task(label, total=total)

        def advance(
            steps: int = 1, label: str | None = None, total: int | None = None
        ) -> None:
            if total is not None:
                shown.reset(task, total=total)
                steps = 0
            shown.update(task, advance=steps, description=label)

        yield advance
