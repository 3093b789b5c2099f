# SPDX-License-Identifier: Apache-2.0

import dataclasses
import io
import unittest

from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.simulate import expectation
from nova_ext_sched.cmd.simulate import report
from nova_ext_sched.cmd.simulate import scenario


def outcome(host=None, failure=None, detail='', reason='', **more):
    return expectation.Outcome(
        (expectation.Placement('x', host, failure, detail),),
        [reason] if reason else [],
        **more,
    )


def judge(declared, *runs, warnings=(), **options):
    return report.Report(
        declared,
        *(expectation.Run(outcomes, warnings) for outcomes in runs),
        **options,
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


class IndependentTest(unittest.TestCase):
    def judge(self, *outcomes, verbose=False):
        declared = dataclasses.replace(
            declare(*({'expect': 'a'} for _ in outcomes)), independent=True
        )
        return judge(declared, outcomes, verbose=verbose)

    def test_all_as_before(self):
        judged = self.judge(ON_A)
        self.assertEqual('1 of 1 lands as before', judged.summary)
        self.assertEqual('1 of 1 lands as before\n', text(judged))
        self.assertIn(' 1  boot x', text(self.judge(ON_A, verbose=True)))

    def test_each_end_with_its_causes(self):
        none = expectation.NO_VALID_HOST
        judged = self.judge(
            ON_A,
            outcome('b', cause='weight'),
            outcome('b', cause='isolation'),
            outcome('b', cause='weight'),
            outcome(failure=none, cause='VCPU'),
            outcome(failure=expectation.REFUSED, detail='403'),
        )
        self.assertEqual(
            '1 of 6 lands as before; 3 elsewhere: weight 2, isolation 1; '
            '1 finds no host: VCPU; 1 is refused by nova',
            judged.summary,
        )
        shown = text(judged)
        self.assertTrue(shown.startswith('1 of 6 lands as before; '), shown)
        # Only those that differ.
        self.assertNotIn(' 1  boot x', shown)
        self.assertIn(' 2  boot x', shown)


class ReportTest(unittest.TestCase):
    def test_held(self):
        judged = judge(declare({'expect': 'a'}), [ON_A])
        self.assertTrue(judged.held)
        self.assertEqual([report.OK], judged.results)
        self.assertEqual('1 of 1 step as expected', judged.summary)
        ((step, action, expected, actual, result, reason, warnings),) = [
            line.row for line in judged.lines
        ]
        self.assertEqual(
            (1, 'boot x (flavor f)', 'a', 'a', 'ok', '', ''),
            (
                step,
                action,
                expected,
                str(actual),
                result,
                reason.human_readable(),
                warnings.human_readable(),
            ),
        )
        self.assertEqual({'x': 'a'}, actual.machine_readable())

    def test_differs_because_the_expected_host_was_not_used(self):
        moved = expectation.Outcome(
            ON_B.placements, ['a is full'], ['a not used: it is full']
        )
        judged = judge(
            declare({'expect': 'a'}, {'expect': 'b'}), [moved, moved]
        )
        self.assertEqual(
            ['a not used: it is full', ''],
            [str.join('; ', line.reasons) for line in judged.lines],
        )

    def test_differs(self):
        judged = judge(declare({'expect': 'a'}, {'expect': 'b'}), [ON_B, ON_B])
        self.assertFalse(judged.held)
        self.assertEqual([report.DIFFERS, report.OK], judged.results)
        self.assertEqual('1 of 2 steps as expected', judged.summary)
        # Why it is not where it should be.
        self.assertEqual(
            ['a is full', ''],
            [str.join('; ', line.reasons) for line in judged.lines],
        )

    def test_warnings(self):
        warned = outcome('a', warnings=['a key of x', 'a key of y'])
        judged = judge(
            declare({'expect': 'a'}, {}), [warned, ON_A], warnings=['start']
        )
        self.assertEqual(
            ['a key of x', 'a key of y'],
            judged.lines[0].row[-1].machine_readable(),
        )
        self.assertEqual(
            [
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
            text(judged).splitlines(),
        )

    def test_verbose(self):
        judged = judge(declare({'expect': 'a'}), [ON_A], verbose=True)
        self.assertEqual('b is full', '; '.join(judged.lines[0].reasons))

    def test_reasons_of_failures(self):
        judged = judge(
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
            ['isolated', '409: no'],
            [str.join('; ', line.reasons) for line in judged.lines],
        )
        self.assertEqual(
            {'x': 'no_valid_host'}, judged.lines[0].row[3].machine_readable()
        )

    def test_compared(self):
        judged = judge(
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
            judged = judge(declare({}), [ours], [plain])
            self.assertEqual(reason, '; '.join(judged.lines[0].reasons))

    def test_what_plain_nova_does_is_no_expectation_of_ours(self):
        judged = judge(declare({'expect': 'a'}), [ON_A], [ON_B])
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


def text(judged, width=80):
    out = layout.Layout(io.StringIO(), width)
    judged.write(out)
    return out.stream.getvalue()


def pack(text):
    return ' '.join(text.split())


class TextTest(unittest.TestCase):
    def text(self, width=80, **step):
        judged = judge(
            declare({'expect': 'a', **step}, {'expect': 'no valid host'}),
            [
                ON_A,
                outcome(
                    failure=expectation.NO_VALID_HOST,
                    reason='aggregate windows is isolated and ' * 4 + 'full',
                ),
            ],
            [ON_B, ON_B],
        )
        return text(judged, width)

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
        # One that is longer than a line is.
        shown = self.text(group=wide)
        self.assertIn(wide, ''.join(shown.split()))
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)

    def test_narrow_terminal(self):
        self.assertIn('plain nova', self.text(width=10))
