#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Progress of a long command, on a terminal alone."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import typing

from rich import console
from rich import progress


@contextlib.contextmanager
def bar(
    stream: typing.Any, label: str, total: int | None = None
) -> Iterator[Callable[..., None]]:
    """Show a bar while the block runs, and nothing after it.

    Nothing is written where the stream is no terminal.

    :param stream: where to write, standard error as a rule
    :param total: how many steps there are; None where it is not known
    :yields: a function to call after each step; takes the number of steps
    """
    with progress.Progress(
        progress.TextColumn('{task.description}'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console.Console(file=stream),
        disable=not stream.isatty(),
        transient=True,
    ) as shown:
        task = shown.add_task(label, total=total)

        def advance(steps: int = 1) -> None:
            shown.advance(task, steps)

        yield advance
