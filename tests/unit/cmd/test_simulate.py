# SPDX-License-Identifier: Apache-2.0

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
