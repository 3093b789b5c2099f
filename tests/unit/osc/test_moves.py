# SPDX-License-Identifier: Apache-2.0

"""What is asked before a plan is carried out, and what options change."""

import contextlib
import io
import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.osc import moves
from nova_ext_sched.osc import moves_agreement
from nova_ext_sched.osc import moves_plan
from tests import clock
from tests.unit.osc import test_moves_report
from tests.unit.osc import test_moves_run


@ddt.ddt
class AskTestCase(testtools.TestCase):
    @ddt.data(
        # Agreed, a terminal, the answer: whether it asks, and goes on.
        (True, True, None, False, True),
        (False, False, None, False, True),
        (False, True, 'y', True, True),
        (False, True, ' YES ', True, True),
        (False, True, 'n', True, False),
        (False, True, '', True, False),
        (False, True, EOFError, True, False),
    )
    @ddt.unpack
    def test_table(self, agreed, is_terminal, answer, asks, goes_on):
        read = mock.Mock(side_effect=[answer])
        say = mock.Mock()
        with mock.patch('sys.stdin') as stdin:
            stdin.isatty.return_value = is_terminal
            args = ['The plan.'], agreed, say, read
            if goes_on:
                moves_agreement.ask(*args)
            else:
                exc = self.assertRaises(
                    moves_agreement.NotAgreed, moves_agreement.ask, *args
                )
                self.assertEqual('nothing was done', str(exc))
        self.assertEqual(asks, read.called)
        said = [call.args[0] for call in say.call_args_list]
        self.assertEqual('The plan.', said[0])
        self.assertEqual(asks, 'Carry it out? [y/N]' in said)


@ddt.ddt
class SkippedTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        three = test_moves_report.make_moves(3)
        self.plan = test_moves_report.make_plan(three)
        self.plan.moves[0].name = 'db'

    @ddt.data(
        (['server 1'], ['db']),
        (['server 3'], ['server 3']),
        (['server 1', 'server 2'], ['db', 'server 2']),
        ([], []),
    )
    @ddt.unpack
    def test_named(self, expected, names):
        self.assertEqual(expected, moves._find_skipped(self.plan, names))

    @ddt.data(
        ('webb', 'There is no server webb in the plan. Did you mean web'),
        ('web', '2 servers are named web: server 2, server 3. Give the ID'),
    )
    @ddt.unpack
    def test_not_one(self, name, said):
        args = moves._find_skipped, self.plan, [name]
        exc = self.assertRaises(exception.InvalidValue, *args)
        self.assertIn(said, str(exc))


@ddt.ddt
class OptionsTestCase(testtools.TestCase):
    """Each option of apply changes what becomes of two moves."""

    def apply(self, cloud, *argv):
        """Return the results of the moves."""
        self.useFixture(clock.Clock())
        plan = test_moves_report.make_plan(test_moves_report.make_moves(2))
        plan.services['a'] = 'uuid'
        cloud.read_services = lambda: {'a': types.SimpleNamespace(id='uuid')}
        app = mock.Mock()
        config = app.client_manager.sdk_connection.config
        config.get_auth_args.return_value = {}
        config.get_region_name.return_value = config.name = 'lab'
        command = moves.ApplyPlan(app, None)
        command.color = 'never'
        parsed = command.get_parser('').parse_args(['-', '--yes', *argv])
        with (
            mock.patch.object(moves_plan, 'read', return_value=plan),
            mock.patch.object(moves.moves_cloud, 'Cloud', return_value=cloud),
            mock.patch('sys.stdin', io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            command.make_report(parsed)
        return [str(one.result) for one in plan.moves]

    @ddt.data(
        (['failed', 'not tried'], ()),
        (['failed', 'moved'], ('--keep-going',)),
        (['left out', 'moved'], ('--skip', 'server 1')),
        (['planned', 'planned'], ('--dry-run',)),
    )
    @ddt.unpack
    def test_nova_refuses_the_first(self, expected, argv):
        cloud = test_moves_run.Cloud(server_1=test_moves_run.REFUSED)
        self.assertEqual(expected, self.apply(cloud, *argv))

    @ddt.data((1, ()), (2, ('--at-once', '2')))
    @ddt.unpack
    def test_how_many_are_under_way(self, expected, argv):
        cloud = test_moves_run.Cloud(server_1=3, server_2=3)
        self.assertEqual(['moved', 'moved'], self.apply(cloud, *argv))
        self.assertEqual(expected, cloud.most)
