# SPDX-License-Identifier: Apache-2.0

"""Several jobs answer as one does, on cells that groups and storage join."""

from concurrent import futures
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import psutil
import sqlalchemy as sa

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.functional import base
from tests.functional import sharing

HOSTS = [f'host{number}' for number in range(1, 9)]
#: After it, servers of every cell violate a policy.
ISOLATED = ('--aggregate-property', 'odd', 'trait:CUSTOM_A=required')


class JobsTestCase(sharing.StorageMixin, base.CloudTestCase):
    NUMBER_OF_CELLS = 4
    weights = {host: 900 - 100 * number for number, host in enumerate(HOSTS)}
    cells = {
        host: f'cell{number % 4 + 1}' for number, host in enumerate(HOSTS)
    }
    hosts = len(HOSTS)
    engine = many_hosts.ManyHostsTestCase.engine

    def setUp(self):
        super().setUp()
        self.share(60, *HOSTS[:6])
        # Each rack has hosts of several cells.
        for rack in range(3):
            name = f'rack{rack}'
            self.aggregate(name, HOSTS[rack::3], failure_domain=name)
        self.aggregate('odd', HOSTS[::2])
        disk = self.flavor(vcpu=2, disk=10)
        spread = self.create_group()
        hint = {'different_failure_domain': ['true']}
        for host in HOSTS[1:4]:
            self.boot(host=host, hints={'group': spread, **hint})
        pair = self.create_group(policy='affinity')
        for _ in range(2):
            self.boot(host='host5', hints={'group': pair})
        # A request that names a host gets nothing of what hosts share.
        for _ in range(3):
            self.boot(flavor=disk)
        # host1 has more than the other one of its cell takes.
        large = self.flavor(vcpu=4)
        for host in HOSTS:
            self.boot(host=host, flavor=large)
        self.processes = self.useFixture(process.Processes(self))

    def ask(self, *words, run=None):
        answer = (run or self.processes.run)(*words, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        document = json.loads(answer.out)
        self.assertEqual([], document['faults'])
        for name in ('time', 'command'):
            del document[name]
        return answer, document

    def test_documents_are_equal(self):
        for numbers, *words in (
            ((2, 9), 'survive'),
            ((4,), 'survive', '--lose', 'domain'),
            ((2,), 'survive', '--spare', 'host8'),
            ((4,), 'audit', *ISOLATED),
            ((2,), 'audit', '--summary', *ISOLATED),
            ((2,), 'mend', *ISOLATED),
        ):
            one, expected = self.ask(*words)
            for number in numbers:
                answer, document = self.ask(*words, '--jobs', str(number))
                self.assertEqual(expected, document)
                self.assertEqual(one.status, answer.status)
                said = f'{min(number, 4)} jobs take at most '
                self.assertIn(said, answer.err)
            if words[0] == 'survive':
                # There is something to say of both kinds.
                failures = expected['failures']
                self.assertTrue(any(f['causes'] for f in failures))
                self.assertTrue(any(f['moves'] for f in failures))
            else:
                self.assertEqual(3, answer.status)

    def test_a_cloud_in_a_file(self):
        """placement's tables are in the process, and go with each job."""
        path = self.processes.folder / 'cloud.json.gz'
        saved = self.processes.run('save', path)
        self.assertEqual(0, saved.status, saved.err)
        (_, one), (_, several) = (
            self.ask('survive', '--from', path, *words, run=process.run)
            for words in ((), ('--jobs', '2'))
        )
        self.assertEqual(one, several)

    def test_connections(self):
        """One to each cell, as of one job, and two more for each job."""
        self.processes = self.useFixture(
            process.Processes(self, backend='mysql')
        )
        one, several = (
            self.count_connections('survive', *words)
            for words in ((), ('--jobs', '4'))
        )
        self.assertLess(0, one)
        self.assertLessEqual(several, one + 2 * 4)

    def count_connections(self, *words):
        """Return the most connections to MariaDB while a command runs."""
        engine = self.processes.engines['nova_api']
        names = [one.url.database for one in self.processes.engines.values()]
        query = sa.select(sa.func.count()).select_from(
            sa.text('information_schema.processlist')
        )
        query = query.where(sa.column('db').in_(names))
        most = 0
        with futures.ThreadPoolExecutor() as pool, engine.connect() as asking:
            done = pool.submit(self.ask, *words)
            while not done.done():
                # One is this.
                most = max(most, asking.execute(query).scalar() - 1)
                time.sleep(0.005)
            done.result()
        return most

    def test_interrupted(self):
        """However it ends, no job is left."""
        command = subprocess.Popen(
            [
                *(sys.executable, '-m', 'nova_ext_sched.cli.main', 'survive'),
                *('--config-file', self.processes.folder / 'nova.conf'),
                *('--jobs', '2', '-f', 'json'),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Whatever libraries run while they are imported is no job.
        said = next(line for line in command.stderr if 'jobs take' in line)
        self.assertIn('2 jobs take at most', said)
        seen = psutil.Process(command.pid)
        started = []
        while len(started) < 2:
            self.assertIsNone(command.poll())
            for job in set(seen.children()).difference(started):
                # However busy this machine is, it does not end first.
                job.suspend()
                started.append(job)
            time.sleep(0.01)
        command.send_signal(signal.SIGINT)
        # Nor before it has heard that: a stopped job cannot end yet.
        while not all(map(_is_told_to_end, started)):
            self.assertIsNone(command.poll())
            time.sleep(0.01)
        for job in started:
            job.resume()
        _, err = command.communicate()
        self.assertEqual(130, command.returncode)
        self.assertTrue(err.endswith('interrupted\n'), err)
        self.assertNotIn('Traceback', err)
        self.assertEqual([], [one for one in started if one.is_running()])


def _is_told_to_end(job):
    """Return whether SIGTERM waits for a process that is stopped."""
    status = pathlib.Path(f'/proc/{job.pid}/status').read_text()
    [pending] = re.findall(r'^ShdPnd:\s*(\w+)$', status, re.MULTILINE)
    return bool(int(pending, 16) >> signal.SIGTERM - 1 & 1)
