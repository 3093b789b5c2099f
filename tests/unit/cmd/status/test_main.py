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
