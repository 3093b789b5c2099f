# SPDX-License-Identifier: Apache-2.0

"""The demonstration prints what README and documentation show of it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests import documentation

COMMAND = 'nova-ext-sched simulate windows_licensing --compare'


class DemonstrationTestCase(unittest.TestCase):
    maxDiff = None

    def test_prints_what_is_shown(self):
        program, *arguments = COMMAND.split()
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *arguments],
            cwd=self.enterContext(tempfile.TemporaryDirectory()),
            env=os.environ | {'COLUMNS': '79', 'PYTHONWARNINGS': 'ignore'},
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        shown = {
            block.file: block.text
            for block in documentation.blocks('console')
            if block.text.startswith(f'$ {COMMAND}\n')
        }
        printed = f'$ {COMMAND}\n{done.stdout}{done.stderr}'
        self.assertEqual(
            dict.fromkeys(
                ('README.rst', 'doc/source/tools/simulator.rst'), printed
            ),
            shown,
        )
