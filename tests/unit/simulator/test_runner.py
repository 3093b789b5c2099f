#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
