# SPDX-License-Identifier: Apache-2.0

import contextlib
import importlib.metadata
import io
import unittest.mock
import warnings

import ddt
import testtools

from nova_ext_sched.cmd.status import main


class WithoutNovaTestCase(testtools.TestCase):
    def test_says_where_to_run(self):
        errors = io.StringIO()
        with (
            warnings.catch_warnings(),
            unittest.mock.patch('importlib.util.find_spec', lambda name: None),
            contextlib.redirect_stderr(errors),
        ):
            self.assertEqual(255, main.main())
        self.assertIn(
            'expected to run where nova-scheduler runs, got a Python without '
            'nova',
            errors.getvalue(),
        )


class VersionTestCase(testtools.TestCase):
    def test_it_is_ours_not_novas(self):
        output = io.StringIO()
        with (
            unittest.mock.patch('sys.argv', ['program', '--version']),
            contextlib.redirect_stdout(output),
        ):
            self.assertEqual(0, main.main())
        self.assertEqual(
            'nova-ext-sched-status '
            f'{importlib.metadata.version("nova-ext-sched")}\n',
            output.getvalue(),
        )


@ddt.ddt
class FilesFirstTestCase(testtools.TestCase):
    @ddt.data(
        ('upgrade check', 'upgrade check'),
        ('--config-file a upgrade check --json',
         '--config-file=a upgrade check --json'),
        ('upgrade --config-file=a check --config-dir b --config-file c',
         '--config-file=a --config-dir=b --config-file=c upgrade check'),
        ('--debug upgrade check --config a', None),
    )  # fmt: skip
    @ddt.unpack
    def test_order(self, given, expected):
        self.assertEqual(
            ['program', *(expected or given).split()],
            main.files_first(['program', *given.split()]),
        )
