# SPDX-License-Identifier: Apache-2.0

"""The demonstration prints what README and documentation show of it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from tests import documentation

COMMAND = 'nova-ext-sched simulate windows_licensing --compare'


def masked(text):
    """Return lines without digits: nova's weighers choose among equals."""
    return [re.sub(r'\d+', '#', line.strip()) for line in text.splitlines()]


def shown():
    """Return the blocks that show the demonstration's output."""
    return [
        block
        for block in documentation.blocks('console', 'text')
        if block.text.startswith(f'$ {COMMAND}\n')
        or (block.file == 'README.rst' and block.language == 'text')
    ]


class DemonstrationTestCase(unittest.TestCase):
    def test_prints_what_is_shown(self):
        program, *arguments = COMMAND.split()
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *arguments],
            cwd=self.enterContext(tempfile.TemporaryDirectory()),
            env=os.environ | {'COLUMNS': '79', 'PYTHONWARNINGS': 'ignore'},
            capture_output=True,
            text=True,
        )
        printed = done.stdout + done.stderr
        self.assertEqual(0, done.returncode, printed)
        self.assertEqual(
            ['README.rst', 'doc/source/tools/simulator.rst'],
            [block.file for block in shown()],
        )
        for block in shown():
            rest = masked(printed)
            for line in masked(block.text):
                if line in ('', '...', f'$ {COMMAND}'):
                    continue
                self.assertIn(line, rest, f'{block}\n{printed}')
                rest = rest[rest.index(line) + 1 :]
