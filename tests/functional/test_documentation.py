# SPDX-License-Identifier: Apache-2.0

"""Documented commands that need no cloud, run; they print what is shown."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ddt

from tests import documentation


def simulations():
    """Return the console blocks that run a scenario and show its result."""
    return [
        block
        for block in documentation.blocks('console')
        if block.text.startswith('$ nova-ext-sched simulate ')
    ]


def masked(text):
    """Return lines without digits: nova's weighers choose among equals."""
    return [re.sub(r'\d+', '#', line.rstrip()) for line in text.splitlines()]


@ddt.ddt
class DocumentationTestCase(unittest.TestCase):
    def run_command(self, words):
        """Run a command of the package; return what it prints.

        Its standard error comes last, as on the page.
        """
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / words[0], *words[1:]],
            cwd=self.enterContext(tempfile.TemporaryDirectory()),
            env=os.environ | {'COLUMNS': '79', 'PYTHONWARNINGS': 'ignore'},
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr

    def test_a_simulation_is_documented(self):
        self.assertNotEqual([], simulations())

    @ddt.data(*simulations())
    def test_simulation_prints_what_is_shown(self, block):
        (line,) = documentation.command_lines(block)
        (words,) = documentation.commands(line)
        printed = self.run_command(words)
        rest = masked(printed)
        for shown in masked(block.text)[1:]:
            if shown == '...':
                continue
            self.assertIn(shown, rest, f'{block}\n{printed}')
            rest = rest[rest.index(shown) + 1 :]
