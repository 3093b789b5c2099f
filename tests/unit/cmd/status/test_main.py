# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import unittest.mock

import ddt
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


@ddt.ddt
class FilesFirstTestCase(testtools.TestCase):
    @ddt.data(
        ('upgrade check', 'upgrade check'),
        (
            '--config-file a upgrade check --json',
            '--config-file=a upgrade check --json',
        ),
        (
            'upgrade --config-file=a check --config-dir b --config-file c',
            '--config-file=a --config-dir=b --config-file=c upgrade check',
        ),
        ('--debug upgrade check --config a', None),
    )
    @ddt.unpack
    def test_order(self, given, expected):
        self.assertEqual(
            ['program', *(expected or given).split()],
            main.files_first(['program', *given.split()]),
        )
