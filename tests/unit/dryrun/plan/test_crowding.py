# SPDX-License-Identifier: Apache-2.0

import itertools
from unittest import mock

import ddt

from nova_ext_sched.dryrun.plan import destinations
from tests.unit.dryrun.plan import small
from tests.unit.dryrun.plan.small import Host
from tests.unit.dryrun.plan.small import Server


@ddt.ddt
class CrowdingTestCase(small.TestCase):
    """Twelve servers leave a; nova's weigher prefers b while it has memory."""

    def drain(self, room, kind='whole', number=12, others=1):
        rooms = {'a': Host(100), 'b': Host(room, ram=900_000)}
        rooms |= {name: Host(others) for name in 'cdef'}
        hints = {'different_host': ['nobody']} if kind == 'part' else None
        found = {f's{n}': Server('a', 1, hints=hints) for n in range(number)}
        if kind == 'unknown':
            self.small.host_filters += (small.Unknown(lambda *_: True),)
        made = self.small.drain((rooms, found), 'a')
        return [(*vars(one).values(),) for one in made.crowded]

    @ddt.data(*itertools.product(('whole', 'part', 'unknown'), (10, 11)))
    @ddt.unpack
    def test_by_the_weigher(self, kind, room):
        """b fills up in the end."""
        [crowded] = self.drain(room, kind)
        self.assertEqual(('b', room, 1, 'RAMWeigher'), crowded)

    @ddt.data(
        # Servers that b takes, of all servers, and that others take.
        (9, 12, 1),
        # Nobody else gets one.
        (12, 12, 1),
        # Not four times what others get.
        (11, 23, 3),
    )
    @ddt.unpack
    def test_not_crowded(self, room, number, others):
        self.assertEqual([], self.drain(room, 'whole', number, others))

    @mock.patch.object(
        destinations.Destinations, 'find_weigher', side_effect=ValueError
    )
    def test_a_weigher_that_fails(self, find):
        """The plan is made all the same; few were asked."""
        self.assertEqual([('b', 10, 1, '')], self.drain(10))
        self.assertEqual(2, find.call_count)

    @mock.patch.object(destinations.Destinations, 'find_weigher')
    def test_nobody_asks(self, find):
        """survive and maintain tell nothing of it."""
        rooms = {name: Host(100) for name in 'ab'}
        servers = {f's{n}': Server('a', 1) for n in range(12)}
        [failure] = self.small.survive((rooms, servers)).failed
        self.assertEqual(12, len(failure.moves))
        found = self.small.maintain((rooms, servers))
        self.assertEqual([0, 12], [len(one.moves) for one in found.rounds])
        find.assert_not_called()
        self.small.drain((rooms, servers), 'a')
        find.assert_called()
