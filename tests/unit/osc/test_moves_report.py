# SPDX-License-Identifier: Apache-2.0

import datetime
import io
import re

import ddt
import testtools

from nova_ext_sched import plan_format
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.osc import moves_agreement
from nova_ext_sched.osc import moves_left
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_report
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_plan import Result
from tests.unit.osc import test_moves_step

COMMAND = 'nova-ext-sched drain a'
LOST = plan_format.Stranded('uuid', 'db', 'a', 'unrescue it')
SUPPOSED = plan_format.Supposed('--aggregate-host', 'lab a')


def make_plan(moves, *results, **fields):
    """Return a plan with the results of its moves."""
    for move, result in zip(moves, results, strict=False):
        move.result = result
    fields = {'command': COMMAND} | fields
    return moves_plan.Plan(test_moves_step.TIME, {}, [], moves, **fields)


def make_moves(number):
    return [test_moves_step.make_move(turn=n) for n in range(1, number + 1)]


@ddt.ddt
class ReportTestCase(testtools.TestCase):
    def tell(self, plan, *remarks, left=(), width=80, **shown):
        """Return the text of a report, and keep the report."""
        self.made = moves_report.make(plan, left, *remarks)
        stream = io.StringIO()
        cli_report.write(stream, self.made.sections, width, **shown)
        return stream.getvalue()

    def test_what_failed_is_first(self):
        last = test_moves_step.make_move(None, 'cold', 3, why='device')
        moves = [*make_moves(2), last]
        plan = make_plan(moves, Result.MOVED, Result.FAILED)
        moves[0].actual, moves[0].reason = 'cold', 'it is stopped now'
        moves[1].reason, moves[1].remedy = 'No\nhost on b.', Remedy.FIX
        moves[1].name = '[bold]x[/] :smile:\n'
        self.assertEqual(
            """\
1 of 3 moves is done:
  1  failed
  1  not tried
  1  moved
Move 2 ('[bold]x[/] :smile:\\n'): No host on b.
Fix that, then run the command again to continue.
To continue without the failed move: --skip SERVER, or --keep-going; or make a
  new plan: nova-ext-sched drain a --not-to b.
To undo the plan instead, enable the hosts (apply --enable) and move back 1
  server, the last one first: openstack --os-compute-api-version 2.56 server
  migrate --host a server 1, then openstack server migrate confirm server 1.
1 host disabled: a.

Failed:
  2  '[bold]x[/] :smile:\\n'  a to b, live  server 2

Not tried:
  3  web  a to a host that nova chooses (b), cold (has a device)

Moved:
  1  web  a to b, cold (it is stopped now)  server 1
""",
            self.tell(plan, '1 host disabled: a.'),
        )
        self.assertEqual(
            (2, 'server 2', moves[1].name, 'a', 'b', 'live', 'failed')
            + ('No\nhost on b.',),
            self.made.rows[1],
        )

    @ddt.data(
        # Results, and how the last of those moved goes back.
        ([Result.MOVED, Result.MOVED, Result.FAILED], 'live',
         'move back 2 servers, the last one first: openstack '
         '--os-compute-api-version 2.56 server migrate --live-migration '
         '--host a server 2.'),
        ([Result.MOVED, Result.FAILED], 'evacuate', ''),
        ([Result.MOVED, Result.MOVED], 'live', ''),
        ([Result.THERE, Result.FAILED], 'live', ''),
    )  # fmt: skip
    @ddt.unpack
    def test_undo(self, results, method, expected):
        moves = make_moves(len(results))
        for move in moves:
            move.actual = method
        text = ' '.join(self.tell(make_plan(moves, *results)).split())
        self.assertIn(expected, text)
        self.assertEqual(bool(expected), 'undo' in text)

    def test_an_evacuation_is_planned_without_not_to(self):
        """survive does not take it."""
        moves = [test_moves_step.make_move(method='evacuate')]
        moves[0].remedy, moves[0].reason = Remedy.FIX, 'No room on b.'
        text = self.tell(make_plan(moves, Result.FAILED))
        said = 'the failed move: --skip SERVER, or --keep-going.\n'
        self.assertIn(said, text)
        self.assertNotIn('--not-to', text)

    @ddt.data(
        (True, 'Compute host b could not be found.'),
        (True, 'No room on b'),
        (False, 'its live-migration failed'),
        (False, 'No room on b.example.net'),
        (False, 'No room on cmp-b'),
    )
    @ddt.unpack
    def test_only_a_host_that_the_reason_names_is_left_out(self, named, why):
        moves = make_moves(1)
        moves[0].remedy, moves[0].reason = Remedy.FIX, why
        text = self.tell(make_plan(moves, Result.FAILED))
        self.assertEqual(named, '--not-to b' in text)

    def test_servers_in_error(self):
        moves = make_moves(3)
        for move in moves:
            move.is_in_error, move.remedy = True, Remedy.FIX
        text = self.tell(make_plan(moves, *[Result.FAILED] * 3))
        said = 'Nothing more was begun: 3 servers are in ERROR.'
        self.assertIn(said, text)
        moves[0].is_in_error = False
        text = self.tell(make_plan(moves, *[Result.FAILED] * 3))
        self.assertNotIn('Nothing more', text)

    def test_servers_that_were_left_out(self):
        kept = plan_format.Stranded(
            'uuid', 'amphora', 'a', '', plan_format.LEFT_OUT, 'you left it out'
        )
        told = self.tell(make_plan([], stranded=[kept, LOST]))
        self.assertIn('amphora stays on a: you left it out.', told)
        self.assertIn('1 server could not be moved when the plan', told)
        self.assertIn('Fix: unrescue it.', told)
        told = self.tell(make_plan([], stranded=[kept] * 7))
        self.assertIn('2 more that you left out: see without_place', told)
        self.assertNotIn('could not be moved', told)

    def test_each_fix_says_whose_it_is(self):
        other = plan_format.Stranded('other', 'web', 'a', 'resume it')
        plan = make_plan([], stranded=[LOST, LOST, other])
        text = ' '.join(self.tell(plan).split())
        self.assertIn('Fix for db, db: unrescue it. ', text)
        self.assertIn('Fix for web: resume it.', text)

    def test_what_is_on_hosts_that_are_to_be_empty(self):
        left = [
            moves_left.Left('new', 'app\n', 'a'),
            moves_left.Left('old', '', 'a', 'its task is deleting'),
        ]
        text = self.tell(make_plan([]), left=left, width=200)
        self.assertIn('old: its task is deleting.\n', text)
        self.assertIn(
            '1 server not in the plan is on a host that is to be empty: '
            "'app\\n on a'. Make a new plan: nova-ext-sched drain a.",
            text,
        )
        self.assertEqual(['new', 'old'], [row[1] for row in self.made.rows])

    @ddt.data(
        ([Remedy.RUN_AGAIN], 'Run the command again to continue.'),
        ([Remedy.RUN_AGAIN, Remedy.FIX],
         'Fix that, then run the command again to continue.'),
        ([Remedy.FIX, Remedy.NEW_PLAN],
         'Fix what is named, then make a new plan: nova-ext-sched drain a.'),
    )  # fmt: skip
    @ddt.unpack
    def test_each_remedy_says_one_thing(self, remedies, said):
        moves = make_moves(len(remedies))
        for move, remedy in zip(moves, remedies, strict=True):
            move.remedy = remedy
        text = self.tell(make_plan(moves, *[Result.FAILED] * len(remedies)))
        text = ' '.join(text.split())
        self.assertIn(said, text)
        others = re.findall('[rR]un the|then make a new plan', text)
        self.assertEqual(1, len(others))

    def test_what_is_left(self):
        moves = make_moves(3)
        moves[0].held = 'the allocation x'
        moves[1].reason = 'it depends on move 1'
        moves[2].reason = 'by --skip'
        plan = make_plan(
            *(moves, Result.MOVED, Result.NOT_TRIED, Result.LEFT_OUT),
            stranded=[LOST],
        )
        text = ' '.join(self.tell(plan).split())
        for said in (
            'Move 1 (web): the allocation x. ',
            'Move 3 (web) was left out: by --skip. ',
            '1 server could not be moved when the plan was made: db on '
            'a. Fix: unrescue it. ',
            'For the servers left out, make a new plan: nova-ext-sched drain '
            'a. ',
            'Not tried: 2 web a to b, live (it depends on move 1)',
        ):
            self.assertIn(said, text)
        moves[2].result = Result.MOVED
        self.assertIn('\nWhen the held room is free, run', self.tell(plan))

    def test_servers_being_deleted(self):
        """They come before what is done, and are waited for."""
        moves = make_moves(3)
        results = Result.MOVED, Result.DELETING, Result.NOT_TRIED
        text = self.tell(make_plan(moves, *results))
        counts = '  1  not tried\n  1  being deleted\n  1  moved\n'
        self.assertIn(counts, text)
        self.assertIn('\nWhen the deletion has ended, run', text)
        moves[0].held, moves[2].reason = 'x', 'it depends on move 1'
        text = self.tell(make_plan(moves, *results))
        said = 'When the held room is free and the deletion has ended, run'
        self.assertIn(said, text)

    def test_colours(self):
        """What failed is red, and nothing else has a colour."""
        moves = make_moves(4)
        results = Result.MOVED, Result.THERE, Result.PLANNED, Result.FAILED
        plan = make_plan(moves, *results)
        moves[-1].name = ''
        text = self.tell(plan, color='always', status=1)
        self.assertIn('\x1b[31m1  \x1b[0mfailed\n', text)
        for what in ('moved', 'already there', 'planned'):
            self.assertIn(f'  1  {what}\n', text)
        self.assertIn('Move 4 (server 4): .', text)

    @ddt.data(
        (0, ''),
        (1, ', but 1 still holds room on its old host'),
        (2, ', but 2 still hold room on their old hosts'),
    )
    @ddt.unpack
    def test_the_first_sentence_names_held_room(self, number, said):
        """The exit status is 3 then, though every move is done."""
        moves = make_moves(3)
        for move in moves[:number]:
            move.held = 'x'
        plan = make_plan(moves, *[Result.MOVED] * 3)
        self.tell(plan)
        start = f'3 of 3 moves are done{said}: moved 3.'
        self.assertEqual(start, self.made.sentence[: len(start)])
        self.assertEqual(3 if number else 0, self.made.status)

    def test_no_move(self):
        self.assertEqual('0 of 0 moves are done.\n', self.tell(make_plan([])))

    @ddt.data(
        (0, []),
        (0, [Result.MOVED, Result.THERE, Result.GONE, Result.ELSEWHERE]),
        (3, [Result.MOVED, Result.NOT_TRIED]),
        (3, [Result.LEFT_OUT]),
        (3, [Result.PLANNED]),
        (3, [Result.DELETING]),
        (1, [Result.FAILED, Result.NOT_TRIED]),
        (3, [Result.MOVED], [LOST]),
        # Its room is not given back.
        (3, [Result.MOVED], [], 'x'),
    )
    @ddt.unpack
    def test_exit_status(self, status, results, stranded=(), held=''):
        moves = make_moves(len(results))
        for move in moves:
            move.held = held
        plan = make_plan(moves, *results, stranded=stranded)
        self.tell(plan)
        self.assertEqual(status, self.made.status)

    def test_exit_status_by_what_is_left(self):
        one = moves_left.Left('new', 'app', 'a')
        for status, left in ((0, []), (3, [one]), (1, None)):
            self.tell(make_plan([]), left=left)
            self.assertEqual(status, self.made.status)


class PlanTestCase(testtools.TestCase):
    def test_what_is_shown_before(self):
        moves = make_moves(5)
        for move, why in zip(
            moves[2:], ('stopped', 'device', 'refused'), strict=True
        ):
            move.method, move.why_cold, move.host = 'cold', why, 'c'
        moves[3].name, moves[4].name = 'db-1', 'db-2'
        moves[0].from_image = moves[1].from_image = True
        self.assertEqual(
            [
                '5 moves (2 live, 1 cold of servers that are stopped, 2 cold '
                'of running servers) from a, c.',
                '2 running servers are shut down: db-1, db-2.',
                '2 servers have their root disk on a host that failed: unless '
                'disks are shared, they come back from their image.',
                'Planned 2026-11-27T01:00:00Z, for lab.',
            ],
            moves_agreement.say_plan(make_plan(moves), 'lab'),
        )

    def test_what_may_not_be_so(self):
        made = datetime.datetime.fromisoformat(test_moves_step.TIME)
        for hours, supposed, said in (
            (23, [], []),
            (25, [], ['The plan is 1 day old.']),
            (
                *(23, [SUPPOSED] * 2),
                [
                    'The plan assumes --aggregate-host lab a; '
                    '--aggregate-host lab a: apply that first, or nova can '
                    'refuse its moves.'
                ],
            ),
        ):
            now = made + datetime.timedelta(hours=hours)
            plan = make_plan([], supposed=supposed)
            self.assertEqual(said, moves_agreement.warn(plan, now))
