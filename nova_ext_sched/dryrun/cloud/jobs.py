# SPDX-License-Identifier: Apache-2.0

"""Works on parts of a cloud in several processes, as one would.

Each job is a fork of this process, made once the cloud is read; it works on
one part after the other. A part is of one cell as a rule: what is remembered
of one cell's servers is of no use for another's.

===========================  ================================================
of all jobs together         at most
===========================  ================================================
requests to placement        :data:`REQUESTS` at once
connections to databases     one for each cell, as of one job, and
                             :data:`_KEPT` for each job
memory                       what :func:`say` says, or the command fails
===========================  ================================================

A job that fails, or dies, fails the command, and ends the others.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import gc
import multiprocessing
from multiprocessing import connection as mp_connection
import pickle
import resource
import signal
import sqlite3
import time
import typing

from nova.scheduler.client import report
import requests
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot

#: Requests to placement at once. One job sends one, of some a few.
REQUESTS = 2

# Connections that a job keeps open while it works on a part: that of nova's
# API database, and that of the cell.
_KEPT = 2

# What a job may take beyond what this process holds when it begins.
_MORE_MIB = 1024

# Seconds between two messages on progress.
_PAUSE = 0.2

_Part = typing.TypeVar('_Part')
_Found = typing.TypeVar('_Found')

#: Works on a part; called with it, and a callback for each step.
Work = Callable[[_Part, progress.Advance], _Found]


class JobFailed(exception.NovaExtSchedError):
    """A job did not end as it should; the text says what became of it."""

    message = '{sentence}'

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence=sentence)


def limit(cloud: snapshot.Snapshot, wanted: int) -> int:
    """Return how many jobs there can be: no more than cells with hosts.

    If there are several, what all of them need is read.
    """
    if wanted > 1:
        _read_common(cloud)
    cells = {node.cell_uuid for node in cloud.nodes.values()}
    return max(1, min(wanted, len(cells)))


def say(number: int) -> str:
    """Return a sentence on what jobs take, before they begin."""
    most = _find_most_memory()
    return (
        f'{number} jobs take at most {number * most:,} MiB of memory '
        f'together, {most:,} each.'
    )


def _find_most_memory() -> int:
    """Return how many MiB a job may take."""
    return _read_memory() + _MORE_MIB


def _read_memory() -> int:
    """Return how many MiB this process holds, or held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run(
    cloud: snapshot.Snapshot,
    parts: Sequence[_Part],
    work: Work[_Part, _Found],
    number: int,
    advance: progress.Advance = progress.silent,
) -> Iterator[tuple[int, _Found]]:
    """Yield the result of each part as it ends.

    What a job could not read of the cloud is in ``cloud`` then.

    :param parts: those that take longest come first
    :param number: the result of :func:`limit`
    :param advance: called after each step
    :returns: the index of the part, and what ``work`` returned
    :raises JobFailed: a job died
    :raises Exception: what ``work`` raised
    """
    if not parts:
        return
    _close_connections()
    process.end_threads()
    # What is there is shared with all jobs, until one writes there.
    gc.freeze()
    team = _Team(cloud, parts, work, min(number, len(parts)))
    try:
        team.start()
        yield from team.collect(advance)
    finally:
        team.close()
        gc.unfreeze()


def _read_common(cloud: snapshot.Snapshot) -> None:
    """Read what all jobs need, once."""
    _ = (
        cloud.states,
        cloud.services,
        cloud.unmapped,
        cloud.under_way,
        cloud.zones,
        cloud.cell_of_server,
        cloud.nodes_by_cell,
    )


def _close_connections() -> None:
    """Close what two processes cannot share; it is opened again when needed.

    That are idle connections to databases and services, whoever has them. A
    database in memory is copied with the process.
    """
    gc.unfreeze()
    for kept in gc.get_objects():
        kind = type(kept)
        if issubclass(kind, requests.Session):
            kept.close()
        elif issubclass(kind, sa.engine.Engine) and kept.url.database:
            kept.dispose()


@dataclasses.dataclass
class _Worker:
    """A job, seen by who started it.

    :ivar part: the index of the part that it works on; None for none
    """

    process: typing.Any
    connection: typing.Any
    part: int | None = None


@dataclasses.dataclass
class _Team:
    """The jobs of one command."""

    cloud: snapshot.Snapshot
    parts: Sequence[typing.Any]
    work: Work[typing.Any, typing.Any]
    number: int

    def __post_init__(self) -> None:
        self._workers: list[_Worker] = []
        self._waiting = iter(range(len(self.parts)))

    def start(self) -> None:
        """Start the jobs, each with its first part."""
        forking = multiprocessing.get_context('fork')
        job = _Job(
            self.cloud,
            self.parts,
            self.work,
            forking.BoundedSemaphore(REQUESTS),
            max(1, len(self.cloud.cells) // self.number),
        )
        for _ in range(self.number):
            here, there = forking.Pipe()
            # Else one would see no end of another's.
            others = [here, *(one.connection for one in self._workers)]
            child = forking.Process(
                target=job.run, args=(there, others), daemon=True
            )
            child.start()
            there.close()
            self._workers.append(_Worker(child, here))
        for worker in self._workers:
            self._go_on(worker)

    def _go_on(self, worker: _Worker) -> None:
        worker.part = next(self._waiting, None)
        with contextlib.suppress(OSError):
            # One that has died is noticed when it is listened to.
            worker.connection.send(worker.part)

    def collect(
        self, advance: progress.Advance
    ) -> Iterator[tuple[int, typing.Any]]:
        """Yield results, and count steps, until all parts are done."""
        by_connection = {one.connection: one for one in self._workers}
        while busy := [
            one.connection for one in self._workers if one.part is not None
        ]:
            for ready in mp_connection.wait(busy):
                worker = by_connection[ready]
                message = self._receive(worker)
                if isinstance(message, int):
                    advance(message)
                elif isinstance(message, Exception):
                    raise message
                else:
                    self._take_faults(message)
                    yield typing.cast(int, worker.part), message.found
                    self._go_on(worker)

    def _receive(self, worker: _Worker) -> typing.Any:
        try:
            return worker.connection.recv()
        except (EOFError, OSError) as exc:
            worker.process.join()
            raise JobFailed(
                f'A job died ({_say_end(worker.process.exitcode)}), and there '
                'is no answer without it.'
            ) from exc

    def _take_faults(self, ended: '_Ended') -> None:
        cloud = self.cloud
        cloud.silent_cells = {**ended.silent_cells, **cloud.silent_cells}
        cloud.doubts += [
            one for one in ended.doubts if one not in cloud.doubts
        ]

    def close(self) -> None:
        """End all jobs."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()


def _say_end(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f'signal {signal.Signals(-status).name}'
    return f'exit status {status}'


class _Ended(typing.NamedTuple):
    """A part that is done, as a job sends it.

    :ivar silent_cells: as of the snapshot; ``doubts`` too
    """

    found: typing.Any
    silent_cells: dict[str, str]
    doubts: list[str]


@dataclasses.dataclass
class _Job:
    """Works on parts, in a process of its own.

    :ivar turns: lets so many send requests to placement at once
    :ivar cells_at_once: of how many cells the databases are asked at once
    """

    cloud: snapshot.Snapshot
    parts: Sequence[typing.Any]
    work: Work[typing.Any, typing.Any]
    turns: typing.Any
    cells_at_once: int

    def __post_init__(self) -> None:
        self._seconds = time.process_time()
        self._most = _find_most_memory()

    def run(
        self, connection: typing.Any, others: Sequence[typing.Any]
    ) -> None:
        """Work on the parts that are sent, until there is none.

        :param connection: sends indexes of parts, and takes what becomes of
            them
        :param others: connections of other processes
        """
        # Ctrl-C reaches who started it, and that ends it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for other in others:
            other.close()
        self._prepare()
        kept = _Connections(_KEPT)
        reporting = _Reporting(connection, self._most)
        # Nobody listens any more if the command was killed.
        with contextlib.suppress(EOFError, OSError):
            while (part := connection.recv()) is not None:
                kept.close()
                connection.send(self._make(part, reporting))

    def _prepare(self) -> None:
        """Make this process one of several."""
        process.renew_hub()
        process.seconds_before = self._seconds
        self.cloud.limit_cells(self.cells_at_once)
        client, turns = report.SchedulerReportClient, self.turns
        get = client.get

        def get_in_turn(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
            with turns:
                return get(*args, **kwargs)

        client.get = get_in_turn

    def _make(self, part: int, reporting: '_Reporting') -> typing.Any:
        """Work on a part; return the message with its result."""
        try:
            result = self.work(self.parts[part], reporting)
            reporting.flush()
        except Exception as exc:
            return _make_portable(exc)
        cloud = self.cloud
        return _Ended(result, cloud.silent_cells, cloud.doubts)


class _Reporting:
    """Sends the steps of a job, and checks its memory.

    :param most: how many MiB it may take
    """

    def __init__(self, connection: typing.Any, most: int) -> None:
        self._connection, self._most = connection, most
        self._steps, self._told = 0, time.monotonic()

    def __call__(
        self,
        steps: int = 1,
        label: str | None = None,
        total: int | None = None,
    ) -> None:
        """Count steps; see :class:`.progress.Advance`.

        :raises JobFailed: it takes more memory than it may
        """
        if total is None:
            self._steps += steps
        if time.monotonic() - self._told >= _PAUSE:
            self.flush()

    def flush(self) -> None:
        """Send the steps so far; raise as a call does."""
        if _read_memory() > self._most:
            raise JobFailed(
                f'A job takes more than the {self._most:,} MiB of memory that '
                f'it may. Run the command without --jobs.'
            )
        if self._steps:
            self._connection.send(self._steps)
        self._steps, self._told = 0, time.monotonic()


class _Connections:
    """Closes all but a few connections to databases once they are idle.

    :param most: how many stay open
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[int, typing.Any] = {}
        sa.event.listen(sa.pool.Pool, 'checkin', self._check)
        sa.event.listen(sa.pool.Pool, 'close', self._forget)

    def _check(self, raw: object, record: typing.Any) -> None:
        # SQLite has no server; what is supposed is in a database in memory.
        is_server = raw is not None and not isinstance(raw, sqlite3.Connection)
        if not is_server or id(record) in self._kept:
            return
        if len(self._kept) < self._most:
            self._kept[id(record)] = record
        else:
            record.invalidate()

    def _forget(self, _: object, record: typing.Any) -> None:
        self._kept.pop(id(record), None)

    def close(self) -> None:
        """Close all that are open; none is in use."""
        for record in [*self._kept.values()]:
            record.invalidate()


def _make_portable(exc: Exception) -> Exception:
    """Return an error that can be sent, with the same text."""
    try:
        pickle.loads(pickle.dumps(exc))
    except Exception:
        return JobFailed(messages.say_error(exc))
    return exc
