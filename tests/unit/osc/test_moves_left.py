# SPDX-License-Identifier: Apache-2.0

"""Who is left on hosts that are to be empty, once the moves were made."""

import types

import ddt
import testtools

from nova_ext_sched.osc import moves_left
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc.moves_making import HELD
from nova_ext_sched.osc.moves_plan import Result
from tests import clock
from tests.unit.osc.test_moves_step import make_move
from tests.unit.osc.test_moves_step import TIME

NOW = '2100-01-01T00:00:00'


@ddt.ddt
class LeftTestCase(testtools.TestCase):
    """The host a is to be empty; each look may show other servers."""

    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(clock.Clock())

    def find(self, *looks, moves=(), stranded=(), is_dry=False):
        """Return the servers that are left, and what is said of them.

        :param looks: the servers of each look, the last again and again:
            their ID, and their task or status
        """
        looks = [*looks]

        def read_servers_on(host):
            self.assertEqual('a', host)
            shown = looks.pop(0) if len(looks) > 1 else looks[0]
            return [
                types.SimpleNamespace(
                    id=uuid,
                    name=f'name of {uuid}',
                    compute_host='a',
                    task_state=state if state == 'deleting' else None,
                    status='ACTIVE' if state == 'deleting' else state,
                    updated_at=NOW,
                )
                for uuid, state in shown
            ]

        self.plan = moves_plan.Plan(
            TIME, {}, ['a'], moves, stranded, command='drain a'
        )
        cloud = types.SimpleNamespace(read_servers_on=read_servers_on)
        self.found = moves_left.find(self.plan, cloud, is_dry)
        return [one.server for one in self.found]

    @ddt.data(
        (Result.MOVED, True),
        (Result.THERE, True),
        (Result.FAILED, False),
        (Result.NOT_TRIED, False),
        (Result.DELETING, False),
    )
    @ddt.unpack
    def test_whom_a_move_names(self, result, is_left):
        """It names its server unless it was made."""
        move = make_move()
        move.result = result
        found = self.find([(move.server, 'ACTIVE')], moves=[move])
        self.assertEqual([move.server] * is_left, found)

    def test_whom_the_plan_names(self):
        stranded = [types.SimpleNamespace(server='known')]
        shown = [('known', 'ACTIVE'), ('new', 'ACTIVE')]
        self.assertEqual(['new'], self.find(shown, stranded=stranded))
        [said] = moves_left.say(self.plan, self.found)
        self.assertEqual(
            '1 server not in the plan is on a host that is to be empty: name '
            'of new on a. Make a new plan: drain a.',
            said,
        )

    def test_a_deletion_that_ends(self):
        """It has a minute for that; nothing is waited for without need."""
        shown = [('gone', 'deleting')]
        self.assertEqual([], self.find(shown, shown, []))
        self.assertIn(self.clock.now, range(1, HELD))
        for options in ({'is_dry': True}, {}):
            before = self.clock.now
            self.assertEqual(
                ['new'], self.find([('new', 'ACTIVE')], **options)
            )
            self.assertEqual(before, self.clock.now)

    def test_a_deletion_that_does_not_end(self):
        for is_dry, seconds in ((True, 0), (False, HELD)):
            before = self.clock.now
            shown = [('stays', 'deleting')]
            self.assertEqual(['stays'], self.find(shown, is_dry=is_dry))
            passed = self.clock.now - before
            self.assertIn(passed, range(seconds, seconds + 9))
            [said] = moves_left.say(self.plan, self.found)
            self.assertTrue(said.startswith('name of stays: its task is '))

    def test_one_that_is_deleted_softly(self):
        """nova keeps it: it is told at once how its host gets free."""
        self.assertEqual(['kept'], self.find([('kept', 'SOFT_DELETED')]))
        self.assertEqual(0, self.clock.now)
        self.assertIn('openstack server delete --force', self.found[0].why)
