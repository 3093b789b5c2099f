# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched simulate`` as a shell sees it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PREFIX = 'nova-ext-sched simulate: '


class ProcessTest(unittest.TestCase):
    """As a shell sees it."""

    def start(self, *arguments, **kwargs):
        return subprocess.Popen(
            [
                sys.executable,
                '-m',
                'nova_ext_sched.cli.main',
                'simulate',
                *arguments,
            ],
            stderr=subprocess.PIPE,
            text=True,
            **kwargs,
        )

    def assertEnds(self, status, process, line):
        _, err = process.communicate(timeout=120)
        self.assertEqual((status, line), (process.returncode, err))

    def test_closed_pipe(self):
        reading, writing = os.pipe()
        os.close(reading)
        process = self.start('--list', stdout=writing)
        os.close(writing)
        self.assertEnds(
            1, process, f'{PREFIX}the output was closed before its end\n'
        )

    def test_faults_without_a_warning_of_what_nova_imports(self):
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            file.write('hosts: [a]\n')
            file.flush()
            self.assertEnds(
                2,
                self.start(file.name),
                f'{file.name}: (top): expected the key flavors and steps, got '
                'hosts\n',
            )

    def test_early_interrupt(self):
        # Python's own start knows no Ctrl-C; from there main() is in charge.
        process = subprocess.Popen(
            [
                sys.executable,
                '-c',
                'import sys; from nova_ext_sched.cli import main\n'
                'print("started", flush=True); sys.exit(main.main())',
                'simulate',
                'fifty_hosts',
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Tests that run in the background of a shell ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.assertEqual('started\n', process.stdout.readline())
        # Wherever it is by then: imports, checks, a cloud that starts, or the
        # end that the one before began. Some libraries swallow the first one
        # while they are imported.
        for _ in range(120):
            time.sleep(1)
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        # Where it hits a class that is made by exec(), as dataclasses are,
        # Python itself ends by the signal: 130, too, for a shell.
        self.assertIn(process.returncode, (130, -signal.SIGINT), err)
        self.assertEqual('interrupted\n', err)
