# SPDX-License-Identifier: Apache-2.0

"""The simulator prints what README and documentation show of it."""

import contextlib
import io
import logging
import pathlib
import tempfile
import unittest

from nova_ext_sched.cli import main
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

    @samples.compares('cli/simulate/compare.txt')
    def test_the_demonstration(self):
        command = 'nova-ext-sched simulate windows_licensing --compare'
        folder = self.enterContext(tempfile.TemporaryDirectory())
        samples.check(
            self,
            'cli/simulate/compare.txt',
            samples.run(
                self, command, folder, '--color', 'always', columns='79'
            ),
        )


class FaultsTestCase(unittest.TestCase):
    maxDiff = None

    @samples.compares('cli/simulate/faults.txt')
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
            'cli/simulate/faults.txt',
            f'$ {command}\n{stderr.getvalue()}$ echo $?\n{status}\n',
            # Each fault is a line.
            width=240,
        )
