# SPDX-License-Identifier: Apache-2.0

"""Tests that forks share: none is lost, none runs twice."""

import io
import os
import pathlib
import subprocess
import sys

import fixtures
import subunit
import testtools

ROOT = pathlib.Path(__file__).parents[2]

PACKAGE = """
from tests import forks

def load_tests(loader, tests, pattern):
    return forks.gather(loader, __path__[0], pattern)
"""

MODULE = """
import os
import sys
import time
import unittest

class Once(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = os.getpid()

    def test_first(self):
        self.assertEqual(os.getpid(), self.process)

    test_second = test_third = test_first

class Failing(unittest.TestCase):
    def fail_at_length(self):
        # More than a pipe takes at once, while the other fork writes too.
        self.fail('no' * 10**5)

    test_0 = test_1 = test_2 = test_3 = test_4 = fail_at_length

class FailingToo(Failing):
    pass

class Together(unittest.TestCase):
    together = 'both'

    def test_together(self):
        # Meanwhile the other fork would take the other class.
        time.sleep(0.3)
        print(os.getpid(), file=sys.stderr)

class Others(Together):
    pass

class Forked(unittest.TestCase):
    def test_forked(self):
        self.assertNotEqual(os.getppid(), int(os.environ['PARENT']))
"""

DYING = """
class Dying(unittest.TestCase):
    def test_dies(self):
        os._exit(3)
"""


class Results(testtools.StreamResult):
    """The final statuses of tests, in order."""

    def __init__(self):
        super().__init__()
        self.statuses = []

    def status(self, test_id=None, test_status=None, **_):
        if test_status not in (None, 'exists', 'inprogress'):
            self.statuses.append((test_id, test_status))


class ForksTest(testtools.TestCase):
    def run_module(self, text):
        """Let two forks run a module; return status, results and errors."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        package = folder / 'shared_tests'
        package.mkdir()
        (package / '__init__.py').write_text(PACKAGE)
        (package / 'test_module.py').write_text(text)
        done = subprocess.run(
            [
                sys.executable,
                *('-W', 'ignore', '-m', 'stestr.subunit_runner.run'),
                *('discover', '-t', folder, package),
            ],
            env=os.environ
            | {
                'NOVA_EXT_SCHED_TEST_WORKERS': '2',
                'PARENT': str(os.getpid()),
                'PYTHONPATH': str(ROOT),
            },
            capture_output=True,
        )
        results = Results()
        subunit.ByteStreamToStreamResult(io.BytesIO(done.stdout)).run(results)
        return done.returncode, results.statuses, done.stderr.decode()

    def test_each_test_runs_once(self):
        _, results, errors = self.run_module(MODULE)
        self.assertEqual(
            [
                *((f'Failing.test_{n}', 'fail') for n in range(5)),
                *((f'FailingToo.test_{n}', 'fail') for n in range(5)),
                ('Forked.test_forked', 'success'),
                ('Once.test_first', 'success'),
                ('Once.test_second', 'success'),
                ('Once.test_third', 'success'),
                ('Others.test_together', 'success'),
                ('Together.test_together', 'success'),
            ],
            sorted(
                (name.removeprefix('shared_tests.test_module.'), status)
                for name, status in results
            ),
            errors,
        )
        # The fork that ran one class ran the other one too.
        self.assertEqual(1, len({*errors.split()}), errors)

    def test_a_fork_that_dies_is_told(self):
        status, results, errors = self.run_module(MODULE + DYING)
        self.assertNotEqual(0, status)
        self.assertIn('not all forks ran their tests', errors)
        # The other fork runs what is left.
        self.assertEqual(16, len(results), results)
