# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd import capacity
from nova_ext_sched.dryrun import progress
from tests.unit.cmd import test_capacity_report


@ddt.ddt
class CountTestCase(testtools.TestCase):
    @ddt.data(
        # Whether it is a terminal, and what else is typed.
        (True, '', False),
        (False, '', True),
        (False, 'small', False),
        (False, '-f json', False),
    )
    @ddt.unpack
    def test_flavors_are_said_as_they_are_counted(self, is_tty, argv, is_said):
        """Not at a terminal, which has a progress bar."""
        command = capacity.Capacity(mock.Mock(), None, cmd_name='capacity')
        parsed = command.get_parser('capacity').parse_args(argv.split())
        tally = test_capacity_report.tally(test_capacity_report.SMALL)
        err = mock.Mock(wraps=io.StringIO())
        err.isatty = lambda: is_tty
        with (
            mock.patch.object(
                capacity, 'count', return_value=[(tally, [], True)]
            ),
            contextlib.redirect_stderr(err),
        ):
            command._count(parsed, progress.silent)
        self.assertEqual(
            is_said, '5 more servers of flavor small' in err.getvalue()
        )
