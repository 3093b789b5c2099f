# SPDX-License-Identifier: Apache-2.0

import io

import testtools

from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.osc import moves_report
from nova_ext_sched.osc.moves_plan import Result
from tests.unit.osc import test_moves_step


class ReportTestCase(testtools.TestCase):
    def tell(self, moves, *remarks):
        made = moves_report.make(moves, 1, *remarks)
        stream = io.StringIO()
        cli_report.write(stream, made.sections, 80)
        self.rows = made.rows
        return stream.getvalue()

    def test_what_failed_is_first(self):
        moves = [
            test_moves_step.make_move(to, turn=turn)
            for turn, to in enumerate(('b', 'b', None), 1)
        ]
        moves[0].result = Result.MOVED
        moves[1].result, moves[1].reason = Result.FAILED, 'No\nhost.'
        moves[1].name = '[bold]x[/] :smile:\n'
        self.assertEqual(
            """\
1 of 3 moves is done:
  1  failed
  1  not tried
  1  moved
Turn 2, '[bold]x[/] :smile:\\n': No host.
Run the command again to go on from there.
1 host disabled: a.

Failed:
  2  '[bold]x[/] :smile:\\n'  a to b, live  server 2

Not tried:
  3  web  a to where nova chooses (b), live

Moved:
  1  web  a to b, live  server 1
""",
            self.tell(moves, '1 host disabled: a.'),
        )
        self.assertEqual(
            (2, 'server 2', moves[1].name, 'a', 'b', 'live', 'failed')
            + ('No\nhost.',),
            self.rows[1],
        )

    def test_colours(self):
        """What failed is red, and nothing else has a colour."""
        results = Result.MOVED, Result.THERE, Result.PLANNED, Result.FAILED
        moves = [test_moves_step.make_move(turn=n) for n in range(1, 5)]
        for move, result in zip(moves, results, strict=True):
            move.result = result
        moves[-1].name = ''
        stream = io.StringIO()
        cli_report.write(
            stream, moves_report.make(moves, 1).sections, 80, 'always', 1
        )
        text = stream.getvalue()
        self.assertIn('\x1b[31m1  \x1b[0mfailed\n', text)
        for what in ('moved', 'there before'):
            self.assertIn(f'  1  {what}\n', text)
        self.assertIn('  1  planned\n', text)
        self.assertIn('Turn 4, server 4: .', text)

    def test_no_move(self):
        self.assertEqual('0 of 0 moves are done.\n', self.tell([]))
