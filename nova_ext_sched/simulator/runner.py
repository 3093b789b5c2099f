# SPDX-License-Identifier: Apache-2.0

"""Running a scenario: a process for each cloud, and its result."""

from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
import selectors
import subprocess
import sys
import tempfile

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import worker

Outcomes = list[expectation.Outcome]


def run(
    requests: Sequence[worker.Request],
    advance: Callable[[int], None] = lambda steps: None,
    file: str = 'scenario',
) -> list[Outcomes]:
    """Run a scenario on one cloud or on several at once.

    :param requests: what each cloud runs
    :param advance: called with a number of hosts that came up and of servers
        that were placed, over all clouds
    :param file: what errors call the scenario
    :returns: for each cloud the outcome of each step
    :raises exception.ScenarioInvalid: nova or placement does not take a part
        of the scenario
    :raises exception.SimulationFailed: a cloud ended before its last step
    """
    with (
        tempfile.TemporaryDirectory(
            prefix='nova-ext-sched-simulation-', ignore_cleanup_errors=True
        ) as scratch,
        selectors.DefaultSelector() as selector,
        contextlib.ExitStack() as stack,
    ):
        workers = []
        for request in requests:
            started = _Worker(request, scratch)
            stack.callback(started.end)
            workers.append(started)
            selector.register(started.output, selectors.EVENT_READ, started)
        outcomes: dict[_Worker, Outcomes] = {}
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, 1 << 16)
                key.data.said += chunk
                advance(chunk.count(b'\n'))
                if not chunk:
                    selector.unregister(key.fileobj)
                    outcomes[key.data] = key.data.outcomes(file)
        return [outcomes[started] for started in workers]


class _Worker:
    """A process that runs one cloud.

    :param request: what it runs
    :param scratch: a folder for its temporary files
    """

    def __init__(self, request: worker.Request, scratch: str) -> None:
        self._request = request
        #: What it wrote on standard output so far.
        self.said = b''
        self._stderr = (
            None
            if request.log_file == worker.STDERR
            else tempfile.TemporaryFile(dir=scratch)
        )
        self._process = subprocess.Popen(
            # -P: a scenario's folder may have a nova.py.
            [sys.executable, '-P', '-m', worker.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(scratch),
            # Ctrl-C is the command's; it ends its workers.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.output = self._process.stdout
        # One that died before it read tells why when it is read.
        with (
            contextlib.suppress(BrokenPipeError),
            self._process.stdin as stdin,
        ):
            stdin.write(json.dumps(dataclasses.asdict(request)).encode())

    def outcomes(self, file: str) -> Outcomes:
        """Return the result of a process that has written it all.

        :raises exception.ScenarioInvalid: see :func:`run`
        :raises exception.SimulationFailed: see :func:`run`
        """
        try:
            result = json.loads(self.said)
        except ValueError:
            result = {'failed': self._last_words()}
        if 'faults' in result:
            raise exception.ScenarioInvalid(
                path=file,
                faults=[
                    document.Fault(tuple(path), expected, got)
                    for path, expected, got in result['faults']
                ],
            )
        if 'failed' in result:
            raise exception.SimulationFailed(
                cloud=self._request.name,
                cause=messages.quote(result['failed']),
            )
        return [expectation.Outcome.parse(part) for part in result['outcomes']]

    def end(self) -> None:
        """Stop the process, where it still runs."""
        self._process.kill()
        self._process.wait()
        self.output.close()
        if self._stderr is not None:
            self._stderr.close()

    def _last_words(self) -> str:
        status = self._process.wait()
        said = ''
        if self._stderr is not None:
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors='replace').strip()
        last = said.splitlines()[-1:] or ['nothing']
        return f'status {status}, last words: {last[0]}'


def _environment(scratch: str) -> dict[str, str]:
    """Return the environment of a worker.

    Without the operator's OS_ variables, some of which nova's harness and
    its libraries read.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('OS_')
    }
    environment['TMPDIR'] = scratch
    environment['PYTHONWARNINGS'] = 'ignore'
    return environment
