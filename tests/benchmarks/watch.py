# SPDX-License-Identifier: Apache-2.0

"""watch beside a large cloud, as a process, on MariaDB.

``python -m tests.benchmarks.watch [HOSTS]`` prints the numbers of
doc/source/reference/scale.rst; it needs MariaDB and RabbitMQ and takes half an
hour. What is measured is the watcher, placement and the databases
(:mod:`tests.benchmarks.copies`). Seconds of processor time do not grow with
other work on the machine; the others do.
"""

import collections
import contextlib
import pathlib
import signal
import sys
import time

import psutil

from tests.benchmarks import copies
from tests.deployment import watcher as deployed

#: Seconds between two turns.
INTERVAL = 1
#: Rows of tables in which nothing is of interest.
ROWS = 100_000


class Watcher:
    """The process, and what it took."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._child = deployed.start(cloud, cloud.records, INTERVAL)
        self._process = psutil.Process(self._child.pid)

    def memory(self):
        """Return what the process holds now, and at most, in MiB."""
        status = pathlib.Path(f'/proc/{self._child.pid}/status').read_text()
        found = dict(
            line.split(':', 1) for line in status.splitlines() if ':' in line
        )
        return (
            ' MiB, at most '.join(
                f'{int(found[key].split()[0]) / 1024:.1f}'
                for key in ('VmRSS', 'VmHWM')
            )
            + ' MiB'
        )

    def count(self):
        """Return the number of records."""
        if not self._cloud.records.exists():
            return 0
        return self._cloud.records.read_bytes().count(b'\n')

    def wait(self, count):
        while self.count() < count:
            if self._child.poll() is not None:
                raise RuntimeError('watch has ended')
            time.sleep(0.05)

    def end(self):
        """Send SIGTERM; return the exit status and the seconds."""
        begin = time.monotonic()
        self._child.send_signal(signal.SIGTERM)
        return self._child.wait(), time.monotonic() - begin

    @contextlib.contextmanager
    def measured(self, what, count=1, unit=''):
        """Print seconds and processor time of a ``with`` statement.

        :param count: what they are divided by
        """
        members = {
            'watch': [self._process],
            'placement': _family(self._cloud.placement.process),
            'MariaDB': _family(self._cloud.mariadb.process),
        }
        before = {name: _spent(one) for name, one in members.items()}
        begin = time.monotonic()
        yield
        seconds = time.monotonic() - begin
        spent = ', '.join(
            f'{name} {(_spent(one) - before[name]) / count:.4f}'
            for name, one in members.items()
        )
        say(
            f'{what}: {seconds / count:.2f} s{unit}; processor: {spent}; '
            f'watch: {self.memory()}'
        )


def _family(process):
    found = psutil.Process(process.pid)
    return [found, *found.children(recursive=True)]


def _spent(members):
    times = [one.cpu_times() for one in members]
    return sum(one.user + one.system for one in times)


def say(text):
    print(text, flush=True)


def idle(cloud, watcher, what):
    """Nothing is refused: what the databases are asked, and what they read."""
    names = ('Com_select', 'Rows_read')
    before = {name: cloud.status(name) for name in names}
    turns = 20
    with watcher.measured(f'{what}, a turn', turns):
        time.sleep(turns * INTERVAL)
    say(
        'a turn over two cells: '
        + ', '.join(
            f'{name} {(cloud.status(name) - before[name]) / turns:.1f}'
            for name in names
        )
    )


def many_rows(cloud, watcher):
    """Rows in which nothing is of interest, new ones and then old ones."""
    cloud.execute(
        'INSERT INTO nova_cell0.instance_faults '
        '(created_at, instance_uuid, code, message, deleted) '
        'SELECT UTC_TIMESTAMP(), uuid, 500, "Build of instance aborted", 0 '
        f'FROM nova_cell0.seq_1_to_{ROWS}, '
        '(SELECT uuid FROM nova_cell0.instances LIMIT 1) AS instance'
    )
    cloud.execute(
        'INSERT INTO nova_cell0.instance_actions '
        '(created_at, action, instance_uuid, request_id, start_time, deleted) '
        'SELECT UTC_TIMESTAMP(), "create", uuid, CONCAT("req-", seq), '
        f'UTC_TIMESTAMP(), 0 FROM nova_cell0.seq_1_to_{ROWS}, '
        '(SELECT uuid FROM nova_cell0.instances LIMIT 1) AS instance'
    )
    cloud.execute(
        'INSERT INTO nova_cell0.instance_actions_events '
        '(created_at, event, action_id, start_time, finish_time, result, '
        'deleted) SELECT UTC_TIMESTAMP(), "compute_build", id, '
        'UTC_TIMESTAMP(), UTC_TIMESTAMP(), "Success", 0 '
        'FROM nova_cell0.instance_actions'
    )
    idle(cloud, watcher, f'{ROWS} rows of the last minute in each table')
    time.sleep(60)
    idle(cloud, watcher, f'{ROWS} older rows in each table')


def one(cloud, watcher, flavor, memory_mb):
    """One refusal, and ten different ones."""
    for count in (1, 1, 1, 10):
        before = watcher.count()
        amounts = range(memory_mb, memory_mb + count)
        memory_mb += count
        cloud.refuse(flavor, amounts)
        with watcher.measured(
            f'refused by {flavor}, {count} different', count, ' each'
        ):
            watcher.wait(before + count)


def burst(cloud, watcher):
    """1,000 equal and 1,000 different refusals within a minute."""
    before = watcher.count()
    with watcher.measured('a burst of 2,000 refusals'):
        for part in range(10):
            begin = time.monotonic()
            cloud.refuse('filter', [1000] * 100)
            cloud.refuse('filter', range(1001 + part * 100, 1101 + part * 100))
            time.sleep(max(0, 6 - (time.monotonic() - begin)))
        watcher.wait(before + 2000)
    found = collections.Counter(
        record['unexplained'] or 'explained'
        for record in cloud.read()[before:]
    )
    say(f'the burst: {dict(found)}')


def memory(cloud, watcher):
    """10,000 records, with four explanations for a thousand."""
    amount = 3000
    for thousand in range(1, 11):
        before, begin = watcher.count(), time.monotonic()
        with watcher.measured(f'four explanations, {thousand},000 records'):
            for flavor in copies.FLAVORS:
                kinds = range(amount, amount + 2)
                cloud.refuse(
                    flavor, [kinds[n % len(kinds)] for n in range(500)]
                )
            watcher.wait(before + 1000)
        amount += 2
        # Another minute: each kind is explained anew.
        time.sleep(max(0, 61 - (time.monotonic() - begin)))


def ended(cloud, watcher, seconds):
    """SIGTERM in an explanation; return the next watcher."""
    before = watcher.count()
    # No request that was explained a minute ago.
    cloud.refuse('filter', [9000 + int(10 * seconds)])
    time.sleep(seconds)
    status, took = watcher.end()
    say(
        f'SIGTERM {seconds:.1f} s after a refusal: {took:.2f} s, status '
        f'{status}, {watcher.count() - before} records'
    )
    watcher = Watcher(cloud)
    watcher.wait(before + 1)
    return watcher


def main():
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with copies.Cloud(hosts=('host1',)) as cloud:
        cloud.refuse_first()
        cloud.copy_host(hosts - 1)
        watcher = Watcher(cloud)
        time.sleep(5)
        say(f'{hosts} hosts; load {psutil.getloadavg()[0]:.1f}')
        idle(cloud, watcher, 'idle')
        many_rows(cloud, watcher)
        before = cloud.mariadb.count('nova_cell0.instance_faults')
        one(cloud, watcher, 'placement', 100)
        one(cloud, watcher, 'filter', 200)
        for seconds in (1.5, 3, 6):
            watcher = ended(cloud, watcher, seconds)
        burst(cloud, watcher)
        time.sleep(61)
        memory(cloud, watcher)
        refused = cloud.mariadb.count('nova_cell0.instance_faults') - before
        records = cloud.read()
        say(
            f'{refused} refusals, {len(records)} records of '
            f'{len({record["id"] for record in records})} of them; '
            f'{cloud.records.stat().st_size >> 20} MiB'
        )
        say(f'load {psutil.getloadavg()[0]:.1f}')
        watcher.end()


if __name__ == '__main__':
    main()
