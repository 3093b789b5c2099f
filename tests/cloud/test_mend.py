# SPDX-License-Identifier: Apache-2.0

"""mend: servers that stand wrong move, each when it has a place."""

import contextlib
import json

from tests.cloud import moves
from tests.cloud import world

ISOLATION, RESERVATION = ('isolation',), ('reservation',)
TYPE = ('aggregate-instance-type',)
ROWS = (
    # Isolation over two filled hosts; a licensed server stays.
    moves.Row('compute1', 2, violates=ISOLATION),
    moves.Row('compute1', 2, user='other', violates=ISOLATION, volume=True),
    moves.Row(
        'compute1', 2, user='other', violates=ISOLATION, status='SHUTOFF'
    ),
    moves.Row('compute1', 1, 'windows'),
    moves.Row('compute4', 2, violates=ISOLATION),
    moves.Row('compute4', 2, user='other', violates=ISOLATION, volume=True),
    moves.Row('compute4', 2, violates=ISOLATION, status='SHUTOFF'),
    # A lease over a filled host; its servers stand on another one.
    moves.Row('compute6', 2, user='other', violates=RESERVATION),
    moves.Row(
        'compute6', 1, violates=RESERVATION, volume=True, status='SHUTOFF'
    ),
    moves.Row('compute5', 3, 'lease', violates=RESERVATION),
    # The first takes the only place where the second goes when it has left.
    moves.Row('compute5', 1, 'big-windows', violates=TYPE),
    moves.Row('compute6', 1, 'big', 'other', violates=RESERVATION),
    # The only host of its tape is full, and stays so.
    moves.Row('compute2', 1, 'big-tape', violates=TYPE, moves=0),
    moves.Row('compute3', 1, 'big', 'other'),
    # A group above its rule, which is a full rack too; a full rack; a group
    # for which there are too few hosts.
    moves.Row(
        'compute2',
        4,
        violates=('anti-affinity', 'failure-domain'),
        moves=2,
        group='web',
    ),
    moves.Row(
        'compute3',
        4,
        user='other',
        violates=('failure-domain',),
        moves=2,
        group='racks',
    ),
    moves.Row(
        'compute2', 2, violates=('anti-affinity',), moves=0, group='alone'
    ),
    moves.Row(
        'compute3', 2, violates=('anti-affinity',), moves=0, group='alone'
    ),
)


class MendTestCase(moves.MovesTestCase):
    command = 'mend'
    rows = ROWS
    rules = {'web': (4, 2), 'racks': (9, 9), 'alone': (2, 1)}
    closing = {
        'windows': ('compute1', 'compute4'),
        'lease': ('compute6',),
        'fast': ('compute4',),
        'tape': ('compute3',),
    }

    def movable(self, row):
        if row.moves is None:
            return row.number if row.violates else 0
        return row.moves

    def audited(self):
        """Return each server that audit finds, with the policy."""
        done = self.cloud.nova.command(
            'audit', '-f', 'json', user='admin', status=3
        )
        document = json.loads(done.stdout)
        self.assertEqual([], document['faults'])
        return {(one['server'], one['policy']) for one in document['findings']}

    # Stories.

    def test_to_the_end(self):
        self.misplace()
        found = self.audited()
        self.assertEqual(
            {
                (server, policy)
                for server, row in self.row_of.items()
                for policy in row.violates
            },
            found,
        )
        self.assertLessEqual(30, len(dict(found)))
        plan = self.plan()
        self.check_moves(plan)
        self.check_end(plan, *self.carry_out())

    def check_end(self, plan, status, said, made):
        """Check what a plan left that was carried out."""
        left = 3 if plan['without_place'] else 0
        self.assertEqual(left, status, (said, made))
        # What it named is all that is not mended.
        stuck = {
            (one['server'], policy)
            for one in plan['without_place']
            for policy in one['policies']
        }
        self.assertEqual(stuck, self.audited())
        self.check_whole(made)
        self.check_by_oracle({*dict(stuck)})

    def test_with_a_boot_of_others_every_second(self):
        """One of them takes a place that the plan needs."""
        self.misplace(most=1)
        with self.world.stream() as asked, self.waiting_for('big') as taken:
            plan, stops, *end = self.go_on()
        self.world.settled()
        (others,) = taken
        (host,) = self.hosts(others)
        self.assertEqual('compute5', host)
        self.assertLess(0, stops)
        self.check_end(plan, *end)
        self.check_others(asked)

    @contextlib.contextmanager
    def waiting_for(self, flavor):
        """Ask for a server until there is a place, or the block ends."""
        taken = []

        def ask(stop):
            while not taken and not stop.wait(1):
                (server,) = self.world.boot(flavor, 'linux', 'other')
                if server.status == 'ACTIVE':
                    taken.append(server.id)
                else:
                    self.world.delete(server.id)

        with world.beside(ask):
            yield taken
