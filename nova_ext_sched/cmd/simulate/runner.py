# SPDX-License-Identifier: Apache-2.0

"""Running a scenario: a process for each cloud, and its result."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd.simulate import expectation
from nova_ext_sched.cmd.simulate import worker


def run(
    requests: Sequence[worker.Request],
    advance: Callable[[int, str], None] = lambda steps, phase: None,
    file: str = 'scenario',
) -> list[expectation.Run]:
    """Run a scenario on one cloud or on several at once.

    :param requests: what each cloud runs
    :param advance: called with 1 and what is being done, for each host that
        came up, each aggregate and each server that was placed, on any cloud
    :param file: what errors call the scenario
    :returns: what each cloud did
    :raises exception.ScenarioInvalid: nova or placement does not take a part
        of the scenario
    :raises exception.SimulationFailed: a cloud ended before its last step
    """
    with (
        tempfile.TemporaryDirectory(
            prefix='nova-ext-sched-simulation-', ignore_cleanup_errors=True
        ) as scratch,
        futures.ThreadPoolExecutor() as pool,
        # Left first: a thread waits for its process.
        contextlib.ExitStack() as stack,
    ):
        running = []
        for request in requests:
            process = stack.enter_context(_process(request, scratch))
            running.append(
                pool.submit(_wait, request, *process, advance, file)
            )
        for finished in futures.as_completed(running):
            finished.result()
        return [finished.result() for finished in running]


@contextlib.contextmanager
def _process(
    request: worker.Request, scratch: str
) -> Iterator[tuple[subprocess.Popen[str], typing.TextIO]]:
    """Start a worker, and kill it where it still runs in the end.

    :yields: the process, and what it writes on standard error
    """
    # Without those of an operator's shell, some of which nova's harness and
    # its libraries read.
    kept = {key: os.environ[key] for key in os.environ if key[:3] != 'OS_'}
    with (
        tempfile.TemporaryFile('w+', dir=scratch) as stdin,
        tempfile.TemporaryFile('w+', dir=scratch, errors='replace') as stderr,
    ):
        json.dump(dataclasses.asdict(request), stdin)
        stdin.seek(0)
        with subprocess.Popen(
            # -P: a scenario's folder may have a nova.py.
            [sys.executable, '-P', '-m', worker.__name__],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=None if request.log_file == worker.STDERR else stderr,
            text=True,
            env={**kept, 'TMPDIR': scratch, 'PYTHONWARNINGS': 'ignore'},
            # Ctrl-C is the command's; it ends its workers.
            start_new_session=True,
        ) as process:
            try:
                yield process, stderr
            finally:
                process.kill()


def _wait(
    request: worker.Request,
    process: subprocess.Popen[str],
    stderr: typing.TextIO,
    advance: Callable[[int, str], None],
    file: str,
) -> expectation.Run:
    """Wait for the result of a worker; see :func:`run`."""
    assert process.stdout is not None
    line = ''
    for line in process.stdout:
        if line[:1] == '+':
            advance(1, line[1:].strip())
    try:
        result = json.loads(line)
    except ValueError:
        status = process.wait()
        stderr.seek(0)
        last = stderr.read().strip().splitlines()[-1:] or ['nothing']
        result = {'failed': f'status {status}, last words: {last[0]}'}
    if 'faults' in result:
        raise exception.ScenarioInvalid(path=file, findings=result['faults'])
    if 'failed' in result:
        raise exception.SimulationFailed(
            cloud=request.name, cause=messages.clean(result['failed'])
        )
    return expectation.Run.parse(result['run'])
