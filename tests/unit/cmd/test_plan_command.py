# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import testtools

from nova_ext_sched.cli import report
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cmd import plan_cases

HINT = 'To carry it out, write the plan to a file: add --output FILE.'
APPLY = 'Where the OpenStackClient runs:\n  openstack move plan apply'


@ddt.ddt
class NextStepTestCase(testtools.TestCase):
    def say(self, kind, argv, rows):
        command = kind(mock.Mock(), None, cmd_name='command')
        parsed = command.get_parser('command').parse_args(argv.split())
        command._outcome = plans.Outcome(
            [plan_cases.make_failure(row) for row in rows], [], [], [], []
        )
        rows = [[turn.strip()] for turn in rows]
        return command.say_next(parsed, report.Report('', [], rows))

    @ddt.data(
        (mend.Mend, '', 'a', HINT),
        (mend.Mend, '', '', ''),
        (mend.Mend, '', ' ', ''),
        (mend.Mend, '-f json', 'a', ''),
        (mend.Mend, '--output p', '', 'Written to p.'),
        (mend.Mend, '--output p', 'a', f'Written to p. {APPLY} p'),
        (
            *(drain.Drain, 'h --output $(p)', 'a'),
            f"Written to $(p). {APPLY} '$(p)' --disable",
        ),
        (
            *(make_room.MakeRoom, '--flavor f --output p -f csv', 'a'),
            f'Written to p. {APPLY} p --disable',
        ),
        (maintain.Maintain, '--round 2', 'a', HINT),
        (
            *(maintain.Maintain, '', 'a'),
            'To carry out the first round, write it to a file: add --round 1 '
            '--output FILE.',
        ),
        (
            *(maintain.Maintain, '--output p', 'a'),
            'Written to p. To carry out the first round, add --round 1.',
        ),
        (
            *(maintain.Maintain, '--output p --round 2', 'a'),
            f'Written to p. {APPLY} p --disable',
        ),
        (survive.Survive, '', 'a', ''),
        (survive.Survive, '--output p', '', 'Written to p.'),
        (survive.Survive, '--output p', 'a', f'Written to p. {APPLY} p'),
        (
            *(survive.Survive, '--output p', 'ab'),
            'Written to p. To carry out the evacuation after one failure, '
            'add --host HOST.',
        ),
    )
    @ddt.unpack
    def test_where_it_was_written_and_how_to_go_on(
        self, kind, argv, rows, said
    ):
        self.assertEqual(said, self.say(kind, argv, rows))
