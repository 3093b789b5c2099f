# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_ext_sched.cmd import simulate_report as report
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import scenario
from tests.unit.cmd import reading


def outcome(host=None, failure=None, detail='', reason='', **more):
    return expectation.Outcome(
        (expectation.Placement('x', host, failure, detail),),
        [reason] if reason else [],
        **more,
    )


def judge(declared, *runs, warnings=(), **options):
    return report.make(
        declared,
        *(expectation.Run(outcomes, warnings) for outcomes in runs),
        **options,
    )


def column(made, name):
    """Return the cells of a column, as people read them."""
    compared = len(made.rows[0]) == len(report.COMPARED_COLUMNS)
    names = report.COMPARED_COLUMNS if compared else report.COLUMNS
    return [str(row[names.index(name)]) for row in made.rows]


def declare(*steps):
    return scenario.parse(
        {
            'hosts': ['a', 'b'],
            'flavors': {},
            'steps': [{'boot': 'x', 'flavor': 'f', **step} for step in steps],
        }
    )


ON_A = outcome('a', reason='b is full')
ON_B = outcome('b', reason='a is full')


class ReportTest(unittest.TestCase):
    def test_differs(self):
        unused = ['a not used: it is full']
        moved = outcome('b', reason='a is full', unused=unused)
        made = judge(
            declare({'expect': 'a'}, {'expect': 'b'}, {'expect': 'a'}),
            [ON_B, moved, moved],
        )
        self.assertEqual(3, made.status)
        self.assertEqual(
            [report.DIFFERS, report.OK, report.DIFFERS], column(made, 'Result')
        )
        self.assertEqual('1 of 3 steps as expected.', made.sentence)
        # Why it is not where it should be.
        self.assertEqual(['a is full', '', *unused], column(made, 'Reasons'))

    def test_warnings(self):
        warned = outcome('a', warnings=['a key of x', 'a key of y'])
        made = judge(
            declare({'expect': 'a'}, {}), [warned, ON_A], warnings=['start']
        )
        self.assertEqual(
            ['a key of x', 'a key of y'], made.rows[0][-1].machine_readable()
        )
        self.assertEqual(
            [
                '2 of 2 steps as expected.',
                '',
                'warning  start',
                '',
                ' 1  boot x (flavor f)',
                '    expected                    a',
                '    nova-ext-sched  ok          a',
                '    warning  a key of x',
                '             a key of y',
                '',
                ' 2  boot x (flavor f)',
                '    expected                    any host',
                '    nova-ext-sched  ok          a',
            ],
            reading.read_lines(made),
        )

    def test_verbose(self):
        made = judge(declare({'expect': 'a'}), [ON_A], [ON_B], verbose=True)
        self.assertEqual(['b is full'], column(made, 'Reasons'))
        # What plain nova does is no expectation of ours.
        self.assertEqual(0, made.status)
        self.assertEqual({'x': 'a'}, made.rows[0][3].machine_readable())

    def test_reasons_of_failures(self):
        made = judge(
            declare(
                {'expect': 'no valid host'}, {'expect': 'refused by nova'}
            ),
            [
                outcome(
                    failure=expectation.NO_VALID_HOST,
                    detail='No valid host was found.',
                    reason='isolated',
                ),
                outcome(failure=expectation.REFUSED, reason='409: no'),
            ],
        )
        self.assertEqual(0, made.status)
        self.assertEqual(['isolated', '409: no'], column(made, 'Reasons'))
        self.assertEqual(
            {'x': 'no_valid_host'}, made.rows[0][3].machine_readable()
        )

    def test_compared(self):
        made = judge(
            declare(
                {'expect': 'a', 'expect_plain': 'b'},
                {'expect': 'a'},
                {'expect': 'a'},
                {'expect': 'a', 'expect_plain': 'b'},
            ),
            [ON_A] * 4,
            [ON_B, ON_B, ON_A, ON_A],
        )
        self.assertEqual(['b', 'b', 'a', 'a'], column(made, 'Plain Nova'))
        self.assertEqual(
            [report.WRONG, report.WRONG, report.OK, report.UNEXPECTED],
            column(made, 'Plain Result'),
        )
        # All is well with our package, and the scenario errs about nova.
        self.assertEqual(3, made.status)
        self.assertEqual(
            '4 of 4 steps as expected; on plain nova 1 of 4, and 1 not as '
            'the scenario predicts.',
            made.sentence,
        )

    def test_why_plain_nova_finds_no_host(self):
        failed = expectation.NO_VALID_HOST
        plain = outcome(failure=failed, reason='the query is too long')
        for ours, reason in (
            (ON_A, 'on plain nova the query is too long'),
            (outcome(failure=failed, reason='it is full'), 'it is full'),
        ):
            made = judge(declare({}), [ours], [plain])
            self.assertEqual([reason], column(made, 'Reasons'))

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
        made = judge(declared, [outcome(), outcome()])
        self.assertEqual(['done', 'refused by nova'], column(made, 'Expected'))


class TextTest(unittest.TestCase):
    def text(self, **step):
        none = outcome(failure=expectation.NO_VALID_HOST)
        declared = declare(
            {'expect': 'a', **step}, {'expect': 'no valid host'}
        )
        return reading.read(judge(declared, [ON_A, none], [ON_B, ON_B]))

    def test_legend_of_what_is_used(self):
        text = self.text()
        self.assertIn('\nWRONG: plain nova does not do what', text)
        self.assertNotIn('\nDIFFERS: ', text)
        self.assertNotIn('UNEXPECTED', text)
        text = self.text(expect_plain='a', expect='b')
        for result in report.LEGEND:
            self.assertIn(f'\n{result}: ', text)
        self.assertIn('    predicted                   a\n', text)
