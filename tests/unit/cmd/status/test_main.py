# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import unittest.mock

import testtools

from nova_ext_sched.cmd.status import main


class WithoutNovaTestCase(testtools.TestCase):
    def test_says_where_to_run(self):
        errors = io.StringIO()
        with (
            unittest.mock.patch('importlib.util.find_spec', lambda name: None),
            contextlib.redirect_stderr(errors),
        ):
            self.assertEqual(255, main.main())
        self.assertIn(
            'expected to run where nova-scheduler runs, got a Python without '
            'nova',
            errors.getvalue(),
        )


class OptionsTestCase(testtools.TestCase):
    def test_they_may_stand_after_the_command(self):
        expected = ['x', '--config-file', 'a', '--config-dir=b']
        expected += ['upgrade', 'check', '--json']
        for argv in (
            expected,
            ['x', 'upgrade', 'check', '--config-file', 'a']
            + ['--config-dir=b', '--json'],
            ['x', '--config-file', 'a', 'upgrade', '--config-dir=b']
            + ['check', '--json'],
        ):
            self.assertEqual(expected, main._move_options(argv))
