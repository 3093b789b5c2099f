# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
import testtools

from nova_ext_sched.osc import moves_progress
from nova_ext_sched.osc.moves_plan import Result
from tests.unit.osc import test_moves_step


class ProgressTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now, self.said, self.bar = 0.0, [], mock.Mock()
        clock = fixtures.MonkeyPatch('time.monotonic', lambda: self.now)
        self.useFixture(clock)
        self.moves = [test_moves_step.make_move(turn=n) for n in range(1, 5)]
        self.progress = moves_progress.Progress(
            self.moves, self.said.append, self.bar
        )

    def test_the_time_that_is_left(self):
        """By the moves that were made; the others take none."""
        first, second, third, _ = self.moves
        first.result = Result.THERE
        self.progress.end(first)
        self.now, second.result = 60, Result.MOVED
        self.progress.end(second)
        self.now, third.result = 600, Result.MOVED
        third.name = 'x\n'
        self.progress.end(third)
        self.assertEqual(
            [
                '1 of 4: web, already there.',
                '2 of 4: web, moved from a to b, about 2 minutes left.',
                "3 of 4: 'x\\n', moved from a to b, about 5 minutes left.",
            ],
            self.said,
        )
        expected = mock.call(1, label='Moving servers, about 5 minutes left')
        self.assertEqual(expected, self.bar.call_args)

    def test_what_waits(self):
        for self.now in range(0, 250, 2):
            self.progress.wait(self.moves[0], 'its migration is running')
        expected = [
            f'Move 1 (web): its migration is running, for {time}.'
            for time in ('60 seconds', '2 minutes', '4 minutes')
        ]
        self.assertEqual(expected, self.said)
        # Once something was said, another reason is said at once.
        self.progress.wait(self.moves[0], 'nova has lost it')
        self.assertIn('nova has lost it, for 4 minutes', self.said[-1])
