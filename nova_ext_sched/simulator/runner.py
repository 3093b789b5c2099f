# SPDX-License-Identifier: Apache-2.0

"""Running a scenario: a process for each cloud, and what they tell."""

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
import typing

from nova_ext_sched import exception
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import worker

#: Seconds between two calls of ``tick``.
TICK = 0.2


@dataclasses.dataclass(frozen=True)
class Log:
    """Where the log of the clouds goes.

    :param file: a path, :data:`worker.STDERR`, or None for nowhere
    :param level: the lowest level that goes there
    """

    file: str | None = None
    level: str = 'INFO'


Outcomes = list[expectation.Outcome]


def run(
    doc: document.Document,
    clouds: Sequence[bool] = (False,),
    log: Log | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> dict[bool, Outcomes]:
    """Run a scenario on one cloud or on several at once.

    :param doc: a checked scenario document
    :param clouds: for each cloud, whether it is plain nova
    :param log: where their log goes
    :param tick: called every TICK seconds with the number of hosts that are
        up and of servers that are placed, over all clouds
    :returns: for each cloud the outcome of each step
    :raises exception.ScenarioInvalid: nova or placement does not take a part
        of the scenario
    :raises exception.SimulationFailed: a cloud ended before its last step
    """
    outcomes: dict[bool, Outcomes] = {plain: [] for plain in clouds}
    done = 0
    processes: list[_Process] = []
    with (
        tempfile.TemporaryDirectory(
            prefix='nova-ext-sched-simulate-', ignore_cleanup_errors=True
        ) as scratch,
        selectors.DefaultSelector() as telling,
    ):
        try:
            for plain in clouds:
                process = _Process(doc, plain, log or Log(), scratch)
                processes.append(process)
                telling.register(
                    process.reading, selectors.EVENT_READ, process
                )
            while telling.get_map():
                for key, _ in telling.select(TICK):
                    process = key.data
                    for event in process.read():
                        match event['event']:
                            case 'finished':
                                telling.unregister(process.reading)
                            case 'step':
                                outcomes[process.plain].append(_outcome(event))
                            case 'host' | 'server':
                                done += 1
                            case _:
                                raise _failure(doc, process.plain, event)
                tick(done)
        finally:
            for process in processes:
                process.end()
    return outcomes


def _outcome(event: worker.Event) -> expectation.Outcome:
    return expectation.Outcome(
        placements=tuple(
            expectation.Placement(**placement)
            for placement in event['placements']
        ),
        reasons=tuple(event['reasons']),
    )


def _failure(
    doc: document.Document, plain: bool, event: worker.Event
) -> exception.NovaExtSchedError:
    cause = document.Words(event['cause'])
    if event['event'] == 'refused':
        fault = doc.fault(
            tuple(event['path']), 'what nova and placement take', cause
        )
    elif event['event'] == 'unstarted':
        fault = doc.fault(
            ('plain', 'nova_conf') if plain else ('nova_conf',),
            f'options that {worker.name(plain)} starts with',
            cause,
        )
    else:
        return exception.SimulationFailed(
            cloud=worker.name(plain), cause=cause
        )
    return exception.ScenarioInvalid(path=doc.file, faults=[fault])


class _Process:
    """A worker, and what it tells.

    :param doc: a checked scenario document
    :param plain: run nova without our package
    :param log: where its log goes
    :param scratch: a folder for its temporary files
    """

    def __init__(
        self, doc: document.Document, plain: bool, log: Log, scratch: str
    ) -> None:
        self.plain = plain
        self._rest = b''
        # What is said before there is a log, and after.
        self._stderr = (
            None if log.file == worker.STDERR else tempfile.TemporaryFile()
        )
        #: The file descriptor on which the worker tells events.
        self.reading, writing = os.pipe()
        self._process = subprocess.Popen(
            # -P: a scenario's folder may have a nova.py.
            [sys.executable, '-P', '-m', worker.__name__, str(writing)],
            stdin=subprocess.PIPE,
            stdout=self._stderr or sys.stderr,
            stderr=self._stderr,
            pass_fds=[writing],
            env=_environment(scratch),
        )
        os.close(writing)
        request = worker.Request(doc.data, plain, log.file, log.level)
        assert self._process.stdin is not None
        # One that died before it read tells why when it is read.
        with (
            contextlib.suppress(BrokenPipeError),
            self._process.stdin as stdin,
        ):
            stdin.write(json.dumps(dataclasses.asdict(request)).encode())

    def read(self) -> list[worker.Event]:
        """Return what was told since the last call; waits for something."""
        chunk = os.read(self.reading, 1 << 16)
        if not chunk:
            return [{'event': 'failed', 'cause': self._last_words()}]
        *lines, self._rest = (self._rest + chunk).split(b'\n')
        return [json.loads(line) for line in lines]

    def end(self) -> None:
        """Stop the worker, where it still runs."""
        self._process.kill()
        self._process.wait()
        os.close(self.reading)
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


def _environment(scratch: str) -> dict[str, typing.Any]:
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
