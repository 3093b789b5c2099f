# SPDX-License-Identifier: Apache-2.0

"""The tests of runner_cases, in a process that nothing has patched.

nova's own tests patch the process that they run in with eventlet, and pipes
between processes then wait on eventlet's hub. The simulator's command runs in
a process without nova.
"""

import subprocess
import sys
import unittest


class RunTest(unittest.TestCase):
    def test_cases(self):
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'unittest',
                'tests.unit.simulator.runner_cases',
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r'Ran [1-9]\d* tests')
