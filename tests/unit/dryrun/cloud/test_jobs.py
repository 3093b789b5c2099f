# SPDX-License-Identifier: Apache-2.0

import collections
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types
from unittest import mock

from nova.scheduler.client import report
from oslo_utils import eventletutils
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process


class LocalError(Exception):
    """Of a form that cannot be sent."""

    def __init__(self, first, second):
        super().__init__(f'{first} and {second}')


class AloneTestCase(testtools.TestCase):
    """The tests of jobs in a process that no other test has patched.

    eventlet patches a process for good, and multiprocessing only if that was
    not imported before.
    """

    def test_jobs(self):
        if not eventletutils.is_monkey_patched('thread'):
            self.skipTest('they run in this process')
        done = subprocess.run(
            [
                *(sys.executable, '-W', 'ignore', '-m', 'testtools.run'),
                'tests.unit.dryrun.cloud.test_jobs.JobsTestCase',
                'tests.unit.dryrun.audit.test_auditor.AuditorTestCase',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


class JobsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        if eventletutils.is_monkey_patched('thread'):
            self.skipTest('AloneTestCase runs it')
        self.cloud = types.SimpleNamespace(
            cells=dict.fromkeys('abcdefgh'),
            silent_cells={},
            doubts=['old'],
            limit_cells=lambda number: setattr(self.cloud, 'most', number),
        )
        self.steps = mock.Mock()

    def run_jobs(self, work, parts='abcdef', number=3):
        """Return what becomes of each part; no job is left then."""
        try:
            return dict(jobs.run(self.cloud, parts, work, number, self.steps))
        finally:
            self.assertEqual([], multiprocessing.active_children())

    def assertFails(self, expected, work):
        failed = self.assertRaises(type(expected), self.run_jobs, work)
        self.assertEqual(str(expected), str(failed))
        return failed

    def test_no_part(self):
        """Such as the failures of hosts without servers."""
        self.assertEqual({}, self.run_jobs(mock.Mock(), ''))

    def test_each_part_once(self):
        def work(part, advance):
            for _ in range(5):
                advance()
            # What only tells how far it is.
            advance(steps=0, label='now', total=9)
            return part.upper(), os.getpid(), self.cloud.most

        found = self.run_jobs(work)
        self.assertEqual('ABCDEF', ''.join(found[n][0] for n in range(6)))
        used = {one[1] for one in found.values()}
        self.assertNotIn(os.getpid(), used)
        self.assertLessEqual(len(used), 3)
        # Eight cells among three jobs.
        self.assertEqual({2}, {one[2] for one in found.values()})
        steps = [sum(call.args) for call in self.steps.mock_calls]
        self.assertEqual(30, sum(steps))

    def test_no_more_jobs_than_parts(self):
        found = self.run_jobs(lambda part, _: os.getpid(), 'ab', 4)
        self.assertEqual({0, 1}, {*found})

    def test_limit(self):
        cloud = mock.Mock()
        for hosts, wanted, number in (
            ('aab', 4, 2),
            ('abc', 2, 2),
            ('aaa', 2, 1),
            ('abc', 1, 1),
            ('', 2, 1),
        ):
            nodes = [types.SimpleNamespace(cell_uuid=one) for one in hosts]
            cloud.nodes = dict(enumerate(nodes))
            self.assertEqual(number, jobs.limit(cloud, wanted))

    def test_faults_come_back(self):
        def work(part, _):
            if part in 'bc':
                self.cloud.silent_cells[part] = 'away'
                self.cloud.doubts.append('new')

        self.run_jobs(work)
        self.assertEqual({'b': 'away', 'c': 'away'}, self.cloud.silent_cells)
        self.assertEqual(['old', 'new'], self.cloud.doubts)

    def test_errors_keep_their_text(self):
        for expected in (
            placement.PlacementFailed(query='/x', cause='503'),
            cells.CellFailed(cell='cell1', cause='away'),
            exception.InvalidValue(where='a', expected='b', got='c'),
            exception.UnknownName('host', 'host1', ['host2']),
            ValueError('wrong'),
        ):

            def work(part, _, expected=expected):
                if part == 'c':
                    raise expected
                return part

            failed = self.assertFails(expected, work)
            self.assertEqual(vars(expected), vars(failed))

        def refuse(part, _):
            raise LocalError('one', 'two')

        self.assertFails(jobs.JobFailed('LocalError: one and two'), refuse)

    def test_a_job_that_dies(self):
        """Nothing is answered, and the other jobs end."""
        for die, said in (
            (lambda: os.kill(os.getpid(), signal.SIGKILL), 'signal SIGKILL'),
            (lambda: os._exit(5), 'exit status 5'),
        ):

            def work(part, _, die=die):
                if part == 'b':
                    die()
                time.sleep(60)

            began = time.monotonic()
            self.assertFails(
                jobs.JobFailed(
                    f'A job died ({said}), and there is no answer without it.'
                ),
                work,
            )
            self.assertLess(time.monotonic() - began, 30)

    def test_it_is_given_up(self):
        """As by Ctrl-C, which the jobs do not hear."""

        def work(part, advance):
            os.kill(os.getpid(), signal.SIGINT)
            advance()
            if part != 'a':
                time.sleep(60)

        found = jobs.run(self.cloud, 'abc', work, 3)
        self.assertEqual(0, next(found)[0])
        self.assertEqual(3, len(multiprocessing.active_children()))
        found.close()
        self.assertEqual([], multiprocessing.active_children())

    def test_memory(self):
        kept = []

        def work(part, advance):
            if part == 'a':
                kept.append(bytearray(most * 2**20))
            time.sleep(0.3)
            advance()

        with mock.patch.object(jobs, '_MORE_MIB', 16):
            said = jobs.say(3)
            # As much as this process held at any time, and more.
            most = jobs._find_most_memory()
            failed = self.assertRaises(
                jobs.JobFailed, self.run_jobs, work, 'abc'
            )
        each = int(said.split()[-2].replace(',', ''))
        self.assertIn(f'the {each:,} MiB', str(failed))
        self.assertIn(f'at most {3 * each:,} MiB', said)

    def test_requests_to_placement(self):
        """All jobs together send no more at once than two."""
        now = multiprocessing.Value('i', 0)
        most = multiprocessing.Value('i', 0)

        def get(*_):
            with now:
                now.value += 1
                most.value = max(most.value, now.value)
            time.sleep(0.05)
            with now:
                now.value -= 1
            return 'answer'

        def work(part, _):
            client = report.SchedulerReportClient
            return [client.get(None, '/') for _ in range(4)]

        with mock.patch.object(report.SchedulerReportClient, 'get', get):
            found = self.run_jobs(work, 'abcdef', 6)
        self.assertEqual([['answer'] * 4] * 6, [*found.values()])
        self.assertEqual(jobs.REQUESTS, most.value)

    def test_seconds_go_on(self):
        """What may take a share of the work's time has what was before."""
        before = process.count_seconds()
        found = self.run_jobs(lambda *_: process.count_seconds())
        self.assertGreater(min(found.values()), before)


class ConnectionsTestCase(testtools.TestCase):
    """Of databases that have a server."""

    def setUp(self):
        super().setUp()
        with mock.patch.object(jobs.sa.event, 'listen'):
            self.kept = jobs._Connections(2)

    def check(self, *names):
        """Let connections come back; return those that are closed then."""
        return [
            name
            for name in names
            if self._come_back(self.records[name]).invalidate.called
        ]

    def _come_back(self, record):
        record.reset_mock()
        self.kept._check(object(), record)
        return record

    def test_a_few_stay_open(self):
        self.records = collections.defaultdict(mock.Mock)
        self.assertEqual(['c', 'd'], self.check('a', 'b', 'c', 'a', 'd', 'b'))
        self.kept._forget(None, self.records['a'])
        self.assertEqual(['a'], self.check('c', 'a', 'b'))
        self.kept.close()
        for name in 'bc':
            self.records[name].invalidate.assert_called_once_with()
