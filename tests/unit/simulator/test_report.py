# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import report
from nova_ext_sched.simulator import scenario


def outcome(host=None, failure=None, detail='', reasons=()):
    return expectation.Outcome(
        (expectation.Placement('x', host, failure, detail),), reasons
    )


def declare(*steps):
    return scenario.parse(
        {
            'hosts': ['a', 'b'],
            'flavors': {},
            'steps': [{'boot': 'x', 'flavor': 'f', **step} for step in steps],
        }
    )


ON_A = outcome('a', reasons=('b is full',))
ON_B = outcome('b', reasons=('a is full',))


class ReportTest(unittest.TestCase):
    def test_held(self):
        told = report.Report(declare({'expect': 'a'}), [ON_A])
        self.assertTrue(told.held)
        self.assertEqual(report.COLUMNS, told.columns)
        self.assertEqual([report.OK], told.results)
        self.assertEqual('1 of 1 steps as expected', told.summary)
        ((step, action, expected, actual, result, reason),) = told.rows
        self.assertEqual(
            (1, 'boot x (flavor f)', 'a', 'a', 'ok', ''),
            (step, action, expected, str(actual), result, str(reason)),
        )
        self.assertEqual({'x': 'a'}, actual.machine_readable())
        self.assertEqual([], reason.machine_readable())

    def test_differs(self):
        told = report.Report(
            declare({'expect': 'a'}, {'expect': 'b'}), [ON_B, ON_B]
        )
        self.assertFalse(told.held)
        self.assertEqual([report.DIFFERS, report.OK], told.results)
        self.assertEqual('1 of 2 steps as expected', told.summary)
        # Why it is not where it should be.
        self.assertEqual(['a is full'], told.rows[0][-1].machine_readable())
        self.assertEqual([], told.rows[1][-1].machine_readable())

    def test_verbose(self):
        told = report.Report(declare({'expect': 'a'}), [ON_A], verbose=True)
        self.assertEqual('b is full', str(told.rows[0][-1]))

    def test_reasons_of_failures(self):
        told = report.Report(
            declare(
                {'expect': 'no valid host'}, {'expect': 'refused by nova'}
            ),
            [
                outcome(
                    failure=expectation.NO_VALID_HOST,
                    detail='No valid host was found.',
                    reasons=('full', 'isolated'),
                ),
                outcome(failure=expectation.REFUSED, detail='409: no'),
            ],
        )
        self.assertTrue(told.held)
        full, refused = (row[-1] for row in told.rows)
        self.assertEqual('full\nisolated', str(full))
        self.assertEqual('409: no', str(refused))
        self.assertEqual(
            {'x': 'no_valid_host'}, told.rows[0][3].machine_readable()
        )

    def test_compared(self):
        told = report.Report(
            declare(
                {'expect': 'a', 'expect_plain': 'b'},
                {'expect': 'a'},
                {'expect': 'a'},
                {'expect': 'a', 'expect_plain': 'b'},
            ),
            [ON_A] * 4,
            [ON_B, ON_B, ON_A, ON_A],
        )
        self.assertEqual(report.COMPARED_COLUMNS, told.columns)
        self.assertEqual(
            [report.DIFFERS, report.DIFFERS, report.OK, report.UNFORESEEN],
            told.plain_results,
        )
        self.assertEqual('b', str(told.rows[0][5]))
        self.assertEqual(
            'plain nova: foreseen b, got a', str(told.rows[3][-1])
        )
        # All is well with our package, and the scenario errs about nova.
        self.assertFalse(told.held)
        self.assertEqual(
            '4 of 4 steps as expected; on plain nova 1 of 4, and 1 not as '
            'the scenario foresees',
            told.summary,
        )

    def test_what_plain_nova_does_is_no_expectation_of_ours(self):
        told = report.Report(declare({'expect': 'a'}), [ON_A], [ON_B])
        self.assertTrue(told.held)

    def test_steps_without_hosts(self):
        declared = scenario.parse(
            {
                'hosts': ['a'],
                'flavors': {},
                'steps': [
                    {'delete': 'x'},
                    {'delete': 'y', 'expect': 'refused by nova'},
                ],
            }
        )
        self.assertEqual(
            ['done', 'refused by nova'],
            [report.expected(step) for step in declared.steps],
        )
