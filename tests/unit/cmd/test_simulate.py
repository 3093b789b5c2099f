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

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import unittest

from nova_ext_sched.cmd import simulate

ROOT = pathlib.Path(__file__).parents[3]


class SimulateTest(unittest.TestCase):
    def test_nothing_is_missing_here(self):
        self.assertEqual([], simulate.missing())

    def test_modules_are_those_of_the_extra(self):
        extra = {
            re.match('[A-Za-z0-9_-]+', requirement)[0]
            for requirement in importlib.metadata.requires('nova-ext-sched')
            if re.search(r'extra *== *.simulator', requirement)
        }
        self.assertEqual(extra, set(simulate.MODULES))

    def test_without_the_extra(self):
        # -S: Python without any installed package.
        done = subprocess.run(
            [
                sys.executable,
                '-I',
                '-S',
                '-c',
                f'import sys; sys.path.insert(0, {str(ROOT)!r})\n'
                'from nova_ext_sched.cmd import simulate\n'
                'sys.exit(simulate.main())',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertEqual('', done.stdout)
        (line,) = done.stderr.splitlines()
        self.assertIn('nova, openstack-placement', line)
        self.assertTrue(
            line.endswith('pip install "nova-ext-sched[simulator]"'), line
        )
