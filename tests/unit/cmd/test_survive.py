# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
from unittest import mock

import testtools

from nova_ext_sched.cmd import survive


class SurviveTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.called = survive.Survive(mock.Mock(), None, cmd_name='survive')

    def parse(self, *argv):
        return self.called.get_parser('survive').parse_args(argv)

    def test_a_project_that_asks_for_nothing(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(2, self.called.run(self.parse('--project', 'p')))
        self.assertIn('Name a --flavor: --project is', err.getvalue())

    def test_columns(self):
        for argv, last in (((), 'Cause'), (('--flavor', 'small'), 'Spare')):
            columns = self.called.get_columns(self.parse(*argv))
            self.assertEqual(last, columns[-1])
