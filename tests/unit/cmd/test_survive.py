# SPDX-License-Identifier: Apache-2.0

import types

import testtools

from nova_ext_sched.cmd import survive
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cli import commands


class SurviveTestCase(testtools.TestCase):
    def test_a_project_that_asks_for_nothing(self):
        status, _, err = commands.run(survive.Survive, '--project', 'p')
        self.assertEqual(2, status)
        self.assertIn('Name a --flavor: its servers belong to --project.', err)

    def test_a_number_of_nothing(self):
        status, _, err = commands.run(survive.Survive, '--count', '3')
        self.assertEqual(2, status)
        self.assertIn('Name a --flavor: --count is', err)

    def test_columns(self):
        called = survive.Survive(None, None)
        for argv, last in (((), 'Cause'), (('--flavor', 'small'), 'Spare')):
            parsed = called.get_parser('survive').parse_args(argv)
            self.assertEqual(last, called.get_columns(parsed)[-1])

    def test_hold_takes_no_choice(self):
        for reason, *argv in (
            ('is for all hosts', '--host', 'a'),
            ('is for all hosts', '--aggregate', 'a'),
            ('enables no spare hosts', '--spare', 'a'),
            ('counts no further servers', '--count', '2', '--flavor', 'f'),
        ):
            status, _, err = commands.run(survive.Survive, '--hold', *argv)
            self.assertEqual(2, status)
            said = f'--hold {reason}: leave {argv[0]} out.'
            self.assertIn(said, ' '.join(err.split()))

    def test_figures_of_hold(self):
        """The metric is about hosts that are full: others lack fewer."""
        called = survive.Survive(None, None)
        for hold, expected in (('full', [2]), ('now', [])):
            called._hold = types.SimpleNamespace(hold=hold, mark=['a', 'b'])
            found = [one.values[()] for one in called.measure()]
            self.assertEqual(expected, found)

    def test_metric_is_for_failure_domains_too(self):
        called = survive.Survive(None, None)
        called._outcome, called._lose = plans.Outcome([], [], [], [], []), 'x'
        [help_] = [
            one.meaning
            for one in called.measure()
            if one.name == 'stranded_servers'
        ]
        self.assertIn('their host (with --lose domain: their failure', help_)
