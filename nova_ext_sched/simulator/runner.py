# SPDX-License-Identifier: Apache-2.0

"""Runs a scenario, in a process for each cloud."""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import json
import os
import subprocess
import sys
import tempfile

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import worker

Advance = Callable[[int, str], None]

# The most bytes of a line on a worker's standard output; a result is a line.
_LONGEST = 1 << 30


def run(
    requests: Sequence[worker.Run],
    advance: Advance = lambda steps, phase: None,
    file: str = 'scenario',
) -> list[expectation.Run]:
    """Run a scenario on one cloud or on several at once.

    :param requests: the scenarios of each cloud
    :param advance: called with 1 and the name of the phase, for each host and
        aggregate that was made and each server that was placed, on any cloud
    :param file: the name of the scenario in errors
    :returns: the results of each cloud
    :raises exception.ScenarioInvalid: nova does not accept a part of the
        scenario
    :raises exception.SimulationFailed: a cloud ended before its last step
    """

    async def run_all(scratch: str) -> list[expectation.Run]:
        return await asyncio.gather(
            *(_run(request, advance, file, scratch) for request in requests)
        )

    with tempfile.TemporaryDirectory(
        prefix='nova-ext-sched-simulation-', ignore_cleanup_errors=True
    ) as scratch:
        # If one worker fails, this ends the others.
        return asyncio.run(run_all(scratch))


async def _run(
    request: worker.Run, advance: Advance, file: str, scratch: str
) -> expectation.Run:
    """Run a worker to its end, or kill it; see :func:`run`."""
    # Without OS_ variables of an operator's shell: nova's harness and its
    # libraries read some of them.
    kept = {key: os.environ[key] for key in os.environ if key[:3] != 'OS_'}
    with (
        tempfile.TemporaryFile('w+', dir=scratch) as stdin,
        tempfile.TemporaryFile('w+', dir=scratch, errors='replace') as stderr,
    ):
        json.dump(dataclasses.asdict(request), stdin)
        stdin.seek(0)
        process = await asyncio.create_subprocess_exec(
            # -P: a scenario's folder may have a nova.py.
            *(sys.executable, '-P', '-m', worker.__name__),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=None if request.log_file == worker.STDERR else stderr,
            limit=_LONGEST,
            env={**kept, 'TMPDIR': scratch, 'PYTHONWARNINGS': 'ignore'},
            # Ctrl-C goes to the command, which ends its workers.
            start_new_session=True,
        )
        assert process.stdout is not None
        line = b''
        try:
            async for line in process.stdout:
                if line[:1] == b'+':
                    advance(1, line[1:].decode().strip())
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            result = json.loads(line)
        except ValueError:
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
