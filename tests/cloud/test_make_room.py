# SPDX-License-Identifier: Apache-2.0

"""make-room: no host takes a big server; after the moves hosts do.

A user's servers come each second, and the oldest of them go, while the moves
are made and until the big ones are there.
"""

from tests.cloud import moves


class RoomTestCase(moves.MovesTestCase):
    def assertRoom(self, flavor, number, kinds):
        """Make room, and create the servers where the plan says.

        :param kinds: of the moves
        """
        self.misplace()
        with self.world.stream(most=10) as asked:
            # All that is told is that there is no host.
            for server in self.world.boot(flavor):
                self.assertEqual('ERROR', server.status)
                self.world.delete(server.id)
            plan = self.plan(
                f'make-room --flavor {flavor} --count {number}', status=0
            )
            self.assertEqual(
                (0, number), (plan['fit_now'], len(plan['room_on']))
            )
            self.assertEqual(
                kinds, sorted(one['method'] for one in plan['moves'])
            )
            status, said, made = self.carry_out(options='--disable')
            self.assertEqual(0, status, said)
            self.assertEqual({'moved'}, {one['Result'] for one in made})
            self.check_closed(plan)
            status, said, again = self.carry_out(options='--enable')
            self.assertEqual(0, status, said)
            self.assertNotIn('moved', {one['Result'] for one in again})
            for host in plan['room_on']:
                (server,) = self.world.boot(flavor, user='admin', host=host)
                self.assertEqual(
                    ('ACTIVE', host),
                    (server.status, server.hypervisor_hostname),
                    server.fault,
                )
        self.world.settled()
        self.check_whole(made)
        self.check_by_oracle(set())
        for server in filter(asked.get, asked):
            self.assertEqual('ACTIVE', self.world.show(server).status)

    def check_closed(self, plan):
        """Check that nobody takes the room, but where moves go."""
        gets = {one['expected'] for one in plan['moves']}
        self.assertEqual({*plan['room_on']} - gets, self.disabled())


class PlainTestCase(RoomTestCase):
    """Each host has one that is in the way; in each cell, one goes."""

    rows = tuple(moves.Row(f'compute{n}', 1, 'middle') for n in range(1, 7))
    rules = {}
    closing = {}

    def test_one_in_each_cell(self):
        self.assertRoom('big', 2, ['live', 'live'])


class ClosedTestCase(RoomTestCase):
    """What is in the way may go to one other host, if to any."""

    rows = (
        moves.Row('compute1', 1, 'middle-windows', status='SHUTOFF'),
        moves.Row('compute1', 2, 'windows', volume=True),
        moves.Row('compute2', 1, 'middle', volume=True),
        moves.Row('compute3', 1, 'middle-windows', status='SHUTOFF'),
        moves.Row('compute4', 1, 'middle', group='web'),
        moves.Row('compute5', 1, 'middle', 'other'),
        moves.Row('compute6', 1, 'lease'),
    )
    rules = {'web': (1, 1)}
    closing = {
        'windows': ('compute1', 'compute3'),
        'fast': ('compute1', 'compute3'),
        'lease': ('compute6',),
    }

    def test_a_stopped_one(self):
        self.assertRoom('big-windows', 1, ['cold'])
