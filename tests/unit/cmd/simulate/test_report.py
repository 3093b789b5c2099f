# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_ext_sched.cmd.simulate import expectation
from nova_ext_sched.cmd.simulate import report
from nova_ext_sched.cmd.simulate import scenario


def outcome(host=None, failure=None, detail='', reason=''):
    return expectation.Outcome(
        (expectation.Placement('x', host, failure, detail),), reason
    )


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
    def test_held(self):
        judged = report.Report(declare({'expect': 'a'}), [ON_A])
        self.assertTrue(judged.held)
        self.assertEqual([report.OK], judged.results)
        self.assertEqual('1 of 1 step as expected', judged.summary)
        ((step, action, expected, actual, result, reason),) = [
            line.row for line in judged.lines
        ]
        self.assertEqual(
            (1, 'boot x (flavor f)', 'a', 'a', 'ok', ''),
            (step, action, expected, str(actual), result, str(reason)),
        )
        self.assertEqual({'x': 'a'}, actual.machine_readable())

    def test_differs_because_the_expected_host_was_not_used(self):
        moved = expectation.Outcome(
            ON_B.placements, 'a is full', 'a not used: it is full'
        )
        judged = report.Report(
            declare({'expect': 'a'}, {'expect': 'b'}), [moved, moved]
        )
        self.assertEqual(
            ['a not used: it is full', ''],
            [line.reason for line in judged.lines],
        )

    def test_differs(self):
        judged = report.Report(
            declare({'expect': 'a'}, {'expect': 'b'}), [ON_B, ON_B]
        )
        self.assertFalse(judged.held)
        self.assertEqual([report.DIFFERS, report.OK], judged.results)
        self.assertEqual('1 of 2 steps as expected', judged.summary)
        # Why it is not where it should be.
        self.assertEqual(
            ['a is full', ''], [line.reason for line in judged.lines]
        )

    def test_verbose(self):
        judged = report.Report(declare({'expect': 'a'}), [ON_A], verbose=True)
        self.assertEqual('b is full', judged.lines[0].reason)

    def test_reasons_of_failures(self):
        judged = report.Report(
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
        self.assertTrue(judged.held)
        self.assertEqual(
            ['isolated', '409: no'], [line.reason for line in judged.lines]
        )
        self.assertEqual(
            {'x': 'no_valid_host'}, judged.lines[0].row[3].machine_readable()
        )

    def test_compared(self):
        judged = report.Report(
            declare(
                {'expect': 'a', 'expect_plain': 'b'},
                {'expect': 'a'},
                {'expect': 'a'},
                {'expect': 'a', 'expect_plain': 'b'},
            ),
            [ON_A] * 4,
            [ON_B, ON_B, ON_A, ON_A],
        )
        self.assertEqual(
            len(report.COMPARED_COLUMNS), len(judged.lines[0].row)
        )
        self.assertEqual(
            [report.WRONG, report.WRONG, report.OK, report.UNFORESEEN],
            judged.plain_results,
        )
        self.assertEqual('b', str(judged.lines[0].row[5]))
        # All is well with our package, and the scenario errs about nova.
        self.assertFalse(judged.held)
        self.assertEqual(
            '4 of 4 steps as expected; on plain nova 1 of 4, and 1 not as '
            'the scenario foresees',
            judged.summary,
        )

    def test_why_plain_nova_finds_no_host(self):
        failed = expectation.NO_VALID_HOST
        plain = outcome(failure=failed, reason='the query is too long')
        for ours, reason in (
            (ON_A, 'on plain nova the query is too long'),
            (outcome(failure=failed, reason='it is full'), 'it is full'),
        ):
            judged = report.Report(declare({}), [ours], [plain])
            self.assertEqual(reason, judged.lines[0].reason)

    def test_what_plain_nova_does_is_no_expectation_of_ours(self):
        judged = report.Report(declare({'expect': 'a'}), [ON_A], [ON_B])
        self.assertTrue(judged.held)

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
            [
                report.Line(1, step, False, outcome()).expected
                for step in declared.steps
            ],
        )


def pack(text):
    return ' '.join(text.split())


class TextTest(unittest.TestCase):
    def text(self, width=80, **step):
        return report.Report(
            declare({'expect': 'a', **step}, {'expect': 'no valid host'}),
            [
                ON_A,
                outcome(
                    failure=expectation.NO_VALID_HOST,
                    reason='aggregate windows is isolated and ' * 4 + 'full',
                ),
            ],
            [ON_B, ON_B],
        ).text(width)

    def test_each_outcome_on_its_line(self):
        self.assertEqual(
            [
                ' 1  boot x (flavor f)',
                '    expected                    a',
                '    nova-ext-sched  ok          a',
                '    plain nova      WRONG       b',
                '',
            ],
            self.text().splitlines()[:5],
        )

    def test_legend_of_what_is_used(self):
        text = self.text()
        self.assertIn('\nWRONG: plain nova does not do what', text)
        self.assertNotIn('\nDIFFERS: ', text)
        self.assertNotIn('UNFORESEEN', text)
        text = self.text(expect_plain='a', expect='b')
        for result in report.LEGEND:
            self.assertIn(f'\n{result}: ', text)
        self.assertIn('    foreseen                    a\n', text)

    def test_no_word_is_split_and_no_line_is_long(self):
        text = self.text()
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn(
            'aggregate windows is isolated and ' * 4 + 'full', pack(text)
        )
        wide = 'nova-ext-sched-' * 8
        self.assertIn(wide, self.text(group=wide))

    def test_narrow_terminal(self):
        self.assertIn('plain nova', self.text(width=10))
