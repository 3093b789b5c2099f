# SPDX-License-Identifier: Apache-2.0

"""The simulator prints what README and documentation show of it."""

import contextlib
import io
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from nova_ext_sched.cmd import main
from tests import samples

FAULTY = """
hosts: [general1, general2]
aggregates:
  windows: {hosts: licensed1}
flavors:
  small: {}
steps:
  - {boot: web, flavor: small}
  - {rebuild: web, image: linux}
  - {boot: desktop, flavour: small}
"""


class DemonstrationTestCase(unittest.TestCase):
    maxDiff = None

    @samples.compares('tools/simulator/compare.txt')
    def test_the_demonstration(self):
        command = 'nova-ext-sched simulate windows_licensing --compare'
        program, *arguments = command.split()
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *arguments],
            cwd=self.enterContext(tempfile.TemporaryDirectory()),
            env=os.environ | {'COLUMNS': '79', 'PYTHONWARNINGS': 'ignore'},
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        samples.check(
            self,
            'tools/simulator/compare.txt',
            f'$ {command}\n{done.stdout}{done.stderr}',
        )


class FaultsTestCase(unittest.TestCase):
    maxDiff = None

    @samples.compares('tools/simulator/faults.txt')
    def test_faults(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(folder))
        pathlib.Path('licences.yaml').write_text(FAULTY)
        command = 'nova-ext-sched simulate licences.yaml'
        # The command sets up logging for a process of its own.
        root = logging.getLogger()
        self.addCleanup(root.setLevel, root.level)
        self.addCleanup(setattr, root, 'handlers', root.handlers[:])
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            status = main.main(command.split()[1:])
        samples.check(
            self,
            'tools/simulator/faults.txt',
            f'$ {command}\n{stderr.getvalue()}$ echo $?\n{status}\n',
            # Each fault is a line.
            width=240,
        )
