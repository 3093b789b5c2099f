# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from nova_ext_sched import exception
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import runner

DOC = document.Document('s', {}, {})


STEP = {
    'event': 'step',
    'index': 0,
    'reasons': ['r'],
    'placements': [
        {'server': 'x', 'host': 'a', 'failure': None, 'detail': ''}
    ],
}


class RunTest(unittest.TestCase):
    def worker_does(self, *lines):
        """Run a program of these lines in place of the worker."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / 'python'
        beginning = [
            f'#!{sys.executable}',
            'import json, os, sys',
            'json.load(sys.stdin)',
            'told = os.fdopen(int(sys.argv[-1]), "w")',
        ]
        file.write_text('\n'.join([*beginning, *lines, '']))
        file.chmod(0o755)
        self.enterContext(
            mock.patch.object(runner.sys, 'executable', str(file))
        )

    def run_failing(self):
        with self.assertRaises(exception.SimulationFailed) as raised:
            runner.run(DOC)
        return raised.exception

    def test_finished(self):
        events = [
            {'event': 'host'},
            {'event': 'server'},
            STEP,
            {'event': 'finished'},
        ]
        self.worker_does(
            f'for event in {events!r}: print(json.dumps(event), file=told)'
        )
        ticks = []
        outcomes = runner.run(DOC, (False, True), tick=ticks.append)

        self.assertEqual({False, True}, outcomes.keys())
        for (outcome,) in outcomes.values():
            self.assertEqual({'a': 1}, outcome.hosts)
            self.assertEqual(('r',), outcome.reasons)
        self.assertEqual(4, ticks[-1])

    def test_worker_dies(self):
        self.worker_does(
            'print("one", file=sys.stderr)',
            'sys.exit("two")',
        )
        self.assertEqual(
            'the cloud of nova-ext-sched: expected the steps to run, got: '
            'status 1, last words: two',
            str(self.run_failing()),
        )

    def test_worker_dies_before_it_reads(self):
        self.enterContext(
            mock.patch.object(runner.sys, 'executable', '/bin/false')
        )
        # More than a pipe holds.
        doc = document.Document('s', {'description': 'x' * (1 << 20)}, {})
        with self.assertRaisesRegex(
            exception.SimulationFailed, 'status 1, last words: nothing'
        ):
            runner.run(doc)

    def test_worker_fails(self):
        self.worker_does(
            'print(json.dumps({"event": "failed", "cause": "No: it"}), '
            'file=told, flush=True)',
            'sys.stdin.close()',
        )
        self.assertEqual('No: it', self.run_failing().cause)

    def test_worker_is_not_left_behind(self):
        self.worker_does(
            'print(json.dumps({"event": "host", "number": os.getpid()}), '
            'file=told, flush=True)',
            'import time; time.sleep(600)',
        )

        processes = []
        real = runner.subprocess.Popen

        def popen(*args, **kwargs):
            processes.append(real(*args, **kwargs))
            return processes[-1]

        def tick(done):
            if done:
                raise KeyboardInterrupt

        with mock.patch.object(runner.subprocess, 'Popen', popen):
            self.assertRaises(KeyboardInterrupt, runner.run, DOC, tick=tick)
        self.assertIsNotNone(processes[0].returncode)

    def test_environment(self):
        with mock.patch.dict(
            os.environ, {'OS_CLOUD': 'x', 'OS_DEBUG': '1', 'LANG': 'C'}
        ):
            environment = runner._environment('/scratch')
        self.assertEqual('/scratch', environment['TMPDIR'])
        self.assertEqual('C', environment['LANG'])
        self.assertFalse(
            [name for name in environment if name.startswith('OS_')]
        )
