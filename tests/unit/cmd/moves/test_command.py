# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd.moves import command
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import totals
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cmd.moves import test_report

NOTHING = test_report.make_plan()
MOVES = test_report.make_plan([test_report.make_move(1)])
STUCK = test_report.make_plan(
    [test_report.make_move(1)], [test_report.make_stuck(2, cause='VCPU')]
)
FAULT = test_report.make_plan(
    [], [test_report.make_stuck(2, cause=plans.FAULT)]
)


@ddt.ddt
class MendTestCase(testtools.TestCase):
    def run_command(self, plan, faults=(), not_judged=0):
        self.out = io.StringIO()
        counts = totals.Totals(['isolation'])
        counts.servers, counts.not_judged = 9, not_judged
        called = command.Mend(
            mock.Mock(stdout=self.out), None, cmd_name='mend'
        )
        parsed = called.get_parser('mend').parse_args([])
        judged = types.SimpleNamespace(totals=counts, faults=faults)
        with (
            mock.patch.object(called, 'configure') as configure,
            mock.patch.object(snapshot, 'Snapshot') as read,
            mock.patch.object(auditor, 'make', return_value=judged) as make,
            mock.patch.object(mend, 'make', return_value=plan) as planned,
        ):
            status = called.run(parsed)
        configure.assert_called_once_with(parsed)
        read.assert_called_once_with(None, True)
        make.assert_called_once_with(read.return_value, [], [], [], None)
        planned.assert_called_once_with(judged, mock.ANY, set())
        return status

    @ddt.data(
        (0, NOTHING, {}),
        (0, MOVES, {}),
        (3, STUCK, {}),
        (1, FAULT, {}),
        (1, STUCK, {'not_judged': 1}),
        (1, MOVES, {'not_judged': 1}),
        (1, STUCK, {'faults': ['Cell a is down.']}),
        (1, NOTHING, {'faults': ['Cell a is down.']}),
    )
    @ddt.unpack
    def test_exit_status(self, status, plan, found):
        self.assertEqual(status, self.run_command(plan, **found))

    def test_people_read_what_audit_found_too(self):
        self.run_command(NOTHING, faults=['Cell a is down.'])
        self.assertEqual(
            [
                'No server has to move.',
                '0 of 9 servers violate a policy (judged by isolation).',
                'Cell a is down.',
            ],
            self.out.getvalue().splitlines(),
        )


class DrainTestCase(testtools.TestCase):
    def test_nothing_is_named(self):
        called = command.Drain(mock.Mock(), None, cmd_name='drain')
        parsed = called.get_parser('drain').parse_args([])
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(2, called.run(parsed))
        self.assertIn('HOST, --aggregate or --domain.', err.getvalue())


class SurviveTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.called = command.Survive(mock.Mock(), None, cmd_name='survive')

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


@ddt.ddt
class MaintainTestCase(testtools.TestCase):
    def parse(self, *argv):
        called = command.Maintain(mock.Mock(), None, cmd_name='maintain')
        return called, called.get_parser('maintain').parse_args(argv)

    @ddt.data((1,), (7, '--round-size', '7'), (None, '--round-size', 'max'))
    @ddt.unpack
    def test_round_size(self, expected, *argv):
        _, parsed = self.parse(*argv)
        self.assertEqual(expected, parsed.round_size)

    @ddt.data('0', '-1', 'all', '1.5', '')
    def test_what_no_round_size_is(self, text):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertRaises(SystemExit, self.parse, '--round-size', text)
        self.assertIn(
            f'expected a number of hosts, at least 1, or max, got: {text}',
            err.getvalue(),
        )

    def test_columns(self):
        called, parsed = self.parse()
        self.assertEqual('Round', called.get_columns(parsed)[0])
        called, parsed = self.parse('--round', '2')
        self.assertEqual('Turn', called.get_columns(parsed)[0])
