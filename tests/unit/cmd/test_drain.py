# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
from unittest import mock

import testtools

from nova_ext_sched.cmd import drain as drain_command


class DrainTestCase(testtools.TestCase):
    def test_nothing_is_named(self):
        called = drain_command.Drain(mock.Mock(), None, cmd_name='drain')
        parsed = called.get_parser('drain').parse_args([])
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(2, called.run(parsed))
        self.assertIn('HOST, --aggregate or --domain.', err.getvalue())
