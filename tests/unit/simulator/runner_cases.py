# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest
from unittest import mock

from nova_ext_sched import exception
from nova_ext_sched.simulator import runner
from nova_ext_sched.simulator import worker

OUTCOMES = {
    'run': {
        'outcomes': [
            {
                'placements': [
                    {'server': 'x', 'host': 'a', 'failure': None, 'detail': ''}
                ],
                'reasons': ['r'],
                'domains': {'rack': {'r1': 1}},
            }
        ],
        'warnings': ['w'],
    }
}


def request(plain=False, **data):
    return worker.Run(data, plain, None, 'INFO')


class RunTest(unittest.TestCase):
    def worker_does(self, *lines):
        """Run a program of these lines in place of the worker."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / 'python'
        beginning = [
            f'#!{sys.executable}',
            'import json, os, sys',
            'json.load(sys.stdin)',
        ]
        file.write_text('\n'.join([*beginning, *lines, '']))
        file.chmod(0o755)
        self.enterContext(
            mock.patch.object(runner.sys, 'executable', str(file))
        )

    def worker_says(self, result):
        text = json.dumps(result)
        self.worker_does(
            'print("+a")', 'print("+b")', f'print({text!r}, end="")'
        )

    def run_failing(self, *args):
        with self.assertRaises(exception.SimulationFailed) as raised:
            runner.run([request()], *args)
        return raised.exception

    def test_finished(self):
        self.worker_says(OUTCOMES)
        steps = []
        for run in runner.run(
            [request(), request(plain=True)], lambda *args: steps.append(args)
        ):
            self.assertEqual(['w'], run.warnings)
            (outcome,) = run.outcomes
            self.assertEqual({'a': 1}, outcome.hosts)
            self.assertEqual(['r'], outcome.reasons)
            self.assertEqual({'rack': {'r1': 1}}, outcome.domains)
        self.assertEqual([(1, 'a')] * 2 + [(1, 'b')] * 2, sorted(steps))

    def test_nova_does_not_take_a_part(self):
        self.worker_says({'faults': ["hosts[0]: expected a host, got 'b'"]})
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            runner.run([request()], file='s.yaml')
        self.assertEqual('s.yaml', raised.exception.path)
        self.assertEqual(
            ["hosts[0]: expected a host, got 'b'"], raised.exception.findings
        )

    def test_worker_dies(self):
        self.worker_does('print("one", file=sys.stderr)', 'sys.exit("two")')
        self.assertEqual(
            'the cloud of nova-ext-sched: expected the steps to run, got: '
            'status 1, last words: two',
            str(self.run_failing()),
        )

    def test_worker_dies_before_it_reads(self):
        self.enterContext(
            mock.patch.object(runner.sys, 'executable', '/bin/false')
        )
        with self.assertRaisesRegex(
            exception.SimulationFailed, 'status 1, last words: nothing'
        ):
            # More than a pipe holds.
            runner.run([request(description='x' * (1 << 20))])

    def test_worker_fails(self):
        self.worker_says({'failed': 'No: it\nis so'})
        self.assertEqual("'No: it\\nis so'", self.run_failing().cause)

    def test_no_worker_is_left_behind(self):
        self.worker_does(
            'print("+", flush=True)', 'import time; time.sleep(600)'
        )
        processes = []
        real = runner.subprocess.Popen

        def popen(*args, **kwargs):
            processes.append(real(*args, **kwargs))
            return processes[-1]

        def interrupt(*args):
            raise KeyboardInterrupt

        with mock.patch.object(runner.subprocess, 'Popen', popen):
            self.assertRaises(
                KeyboardInterrupt, runner.run, [request()], interrupt
            )
        self.assertEqual(-signal.SIGKILL, processes[0].returncode)

    def test_environment(self):
        self.worker_does(
            'names = "OS_CLOUD", "OS_DEBUG", "LANG", "PYTHONWARNINGS"',
            'got = [os.environ.get(name) for name in names]',
            'got.append(os.listdir(os.environ["TMPDIR"]))',
            'print(json.dumps({"failed": repr(got)}))',
        )
        with mock.patch.dict(
            os.environ, {'OS_CLOUD': 'x', 'OS_DEBUG': '1', 'LANG': 'C'}
        ):
            cause = self.run_failing().cause
        self.assertEqual("[None, None, 'C', 'ignore', []]", cause)
