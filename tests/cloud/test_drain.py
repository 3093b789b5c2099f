# SPDX-License-Identifier: Apache-2.0

"""drain: two hosts, one of each cell, become empty but for what is named."""

import collections
import itertools
import json

from tests.cloud import moves

#: How a command ends that timeout has killed, and timeout with it.
KILLED = (-9, 137)

#: In the first cell compute2 and compute3 are left, in the second compute4
#: and compute6. The second ones are closed to plain servers.
DRAINED = ('compute1', 'compute5')
ROWS = (
    moves.Row('compute1', 2, 'windows'),
    moves.Row('compute1', 1, 'windows', volume=True),
    moves.Row('compute1', 2, 'ssd', status='SHUTOFF'),
    moves.Row('compute1', 2, user='other', volume=True),
    moves.Row('compute1', 2, zone='north'),
    moves.Row('compute5', 3, 'lease'),
    moves.Row('compute5', 1, 'lease', volume=True, status='SHUTOFF'),
    moves.Row('compute5', 2, volume=True),
    # One host of its cell has room for it.
    moves.Row('compute5', 1, 'big', 'other'),
    moves.Row('compute2', 1, 'big', 'other'),
    # What has no place, or is for the operator to end.
    moves.Row('compute1', 1, 'big-tape', stays='aggregate-instance-type'),
    moves.Row('compute5', 1, status='ERROR', stays='state'),
    moves.Row(
        'compute1', 1, status='VERIFY_RESIZE', to='compute2', stays='state'
    ),
    moves.Row(
        'compute4', 1, status='VERIFY_RESIZE', to='compute5', stays='state'
    ),
    # A group that stands less apart in the end; one whose rule is just met.
    moves.Row('compute1', 1, group='web'),
    moves.Row('compute2', 1, group='web'),
    moves.Row('compute1', 1, group='alone', stays='anti-affinity'),
    moves.Row('compute2', 1, group='alone'),
    # Racks 1 and 2 exchange members, of which each has room for one more.
    moves.Row('compute1', 1, user='other', group='racks'),
    moves.Row('compute5', 2, user='other', group='racks'),
)


class DrainTestCase(moves.MovesTestCase):
    command = ' '.join(['drain', *DRAINED])
    rows = ROWS
    rules = {'web': (2, 2), 'racks': (9, 9), 'alone': (1, 1)}
    closing = {
        'windows': ('compute1', 'compute3'),
        'lease': ('compute5', 'compute6'),
        'fast': ('compute1', 'compute2'),
        'tape': ('compute1',),
    }
    zones = {'north': ('compute1', 'compute2')}

    def misplace(self, most=None):
        super().misplace(most)
        self.world.enable({*self.world.hosts} - {*DRAINED})

    def movable(self, row):
        return row.number if row.host in DRAINED and not row.stays else 0

    def check_end(self, plan, status, said, made):
        """Check what a plan left that was carried out.

        :returns: why each server that stays has no place, by its row
        """
        left = 3 if plan['without_place'] else 0
        self.assertEqual(left, status, (said, made))
        stays = {
            (one['server'], one['host']): one['cause']
            for one in plan['without_place']
        }
        self.assertEqual({*stays}, self.held(DRAINED))
        again = self.plan()
        self.assertEqual(
            ([], plan['without_place']),
            (again['moves'], again['without_place']),
        )
        self.check_whole(made)
        self.check_by_oracle({server for server, _host in stays})
        return {
            self.row_of[server]: why for (server, _host), why in stays.items()
        }

    def test_to_the_end(self):
        self.misplace()
        self.assertLessEqual(20, len(self.held(DRAINED)))
        plan = self.plan()
        self.check_moves(plan)
        self.assertEqual(
            [('group', 1, 2)],
            [
                (one['name'], one['hosts'], one['hosts_before'])
                for one in plan['groups']
            ],
        )
        self.assertEqual(
            {row: row.stays for row in self.rows if row.stays},
            self.check_end(plan, *self.carry_out()),
        )

    def test_beside_others(self):
        """Others boot and delete; one took a place after the plan was made."""
        self.misplace(most=1)
        with self.world.stream(most=40) as asked:
            self.plan()
            (others,) = self.world.boot('big', 'linux', 'other')
            status, said, before = self.carry_out()
            self.assertEqual('compute4', others.hypervisor_hostname)
            self.check_refused(status, said, before)
            self.check_refused(*self.carry_out())
            plan = self.plan()
            # From the last move on, so that one is deleted while it moves.
            leaving = [move['server'] for move in plan['moves']]
            with self.deleting(leaving[::-2]) as deleted:
                status, said, made = self.carry_out()
        self.world.settled()
        results = {one['Server']: one['Result'] for one in made}
        self.assertEqual({'moved', 'gone'}, {*results.values()})
        gone = {server for server in results if results[server] == 'gone'}
        self.assertLessEqual(gone, {*deleted})
        full = {
            row: 'MEMORY_MB'
            for row in self.rows
            if row.host in DRAINED and row.flavor == 'big'
        }
        stays = {row: row.stays for row in self.rows if row.stays}
        self.assertEqual(
            stays | full, self.check_end(plan, status, said, before + made)
        )
        self.check_others(asked)

    def check_refused(self, status, said, made):
        """Check that a run stopped at the move that nova refused."""
        self.assertEqual(1, status, said)
        results = [one['Result'] for one in made]
        failed = results.index('failed')
        self.assertLessEqual({*results[:failed]}, {'moved', 'already there'})
        self.assertEqual({'not tried'}, {*results[failed + 1 :]})
        one, said = made[failed], ' '.join(said.split())
        self.assertEqual('big', self.row_of[one['Server']].flavor)
        self.assertIn('No valid host was found', one['Reason'])
        self.assertIn(
            f'Move {one["Turn"]} ({one["Name"]}): No valid host was found',
            said,
        )
        self.assertIn('then make a new plan: nova-ext-sched drain', said)

    def test_killed_again_and_again(self):
        """By SIGKILL, a second later each time; nothing moves twice."""
        self.misplace(most=1)
        plan = self.plan()
        planned, before = plan['moves'], self.count_migrations()
        for seconds in itertools.count(2):
            done = self.cloud.execute(
                f'timeout --signal KILL {seconds} '
                'openstack move plan apply plan.json --at-once 3 -f json',
                user='admin',
                status=None,
                seconds=moves.APPLY_SECONDS,
            )
            if done.returncode not in KILLED:
                break
        left = 3 if plan['without_place'] else 0
        self.assertEqual(left, done.returncode, done.stderr)
        self.assertLess(2, seconds)
        self.assertEqual(
            {one['server']: one['to'] for one in planned},
            {
                one['Server']: self.state(one['Server'])[-1]
                for one in json.loads(done.stdout)
            },
        )
        self.assertEqual(
            collections.Counter(one['server'] for one in planned),
            self.count_migrations() - before,
        )

    def count_migrations(self):
        """Return how many migrations each server had."""
        return collections.Counter(
            one['instance_uuid'] for one in self.list_migrations()
        )
