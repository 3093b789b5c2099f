# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd import mend as mend_command
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import totals
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cli import commands
from tests.unit.cmd import plan_cases

NOTHING = plan_cases.make_plan()
MOVES = plan_cases.make_plan([plan_cases.make_move(1)])
STUCK = plan_cases.make_plan(
    [plan_cases.make_move(1)], [plan_cases.make_stuck(2, cause='VCPU')]
)
FAULT = plan_cases.make_plan([], [plan_cases.make_stuck(2, cause=plans.FAULT)])


@ddt.ddt
class MendTestCase(testtools.TestCase):
    def run_command(self, plan, faults=(), not_judged=0):
        counts = totals.Totals(['isolation'])
        counts.servers, counts.not_judged = 9, not_judged
        judged = types.SimpleNamespace(totals=counts, faults=faults)
        with (
            mock.patch.object(mend_command.Mend, 'configure') as configure,
            mock.patch.object(snapshot, 'Snapshot') as read,
            mock.patch.object(auditor, 'make', return_value=judged) as make,
            mock.patch.object(mend, 'make', return_value=plan) as planned,
        ):
            status, self.out, _ = commands.run(mend_command.Mend)
        configure.assert_called_once()
        read.assert_called_once_with(None, True)
        make.assert_called_once_with(read.return_value, [], [], [], None)
        planned.assert_called_once_with(judged, mock.ANY, set(), 1)
        return status

    @ddt.data(
        (0, NOTHING, {}),
        (0, MOVES, {}),
        (3, STUCK, {}),
        (1, FAULT, {}),
        (1, STUCK, {'not_judged': 1}),
        (1, MOVES, {'not_judged': 1}),
        (1, STUCK, {'faults': ['Cell a is down.']}),
        (1, NOTHING, {'faults': ['Cell a is down.']}),
    )
    @ddt.unpack
    def test_exit_status(self, status, plan, found):
        self.assertEqual(status, self.run_command(plan, **found))

    def test_people_read_what_audit_found_too(self):
        self.run_command(NOTHING, faults=['Cell a is down.'])
        self.assertEqual(
            [
                'None of the servers that could be judged has to move.',
                '0 of 9 servers violate a policy (policies checked: '
                'isolation).',
                'Cell a is down.',
            ],
            self.out.splitlines(),
        )
