# SPDX-License-Identifier: Apache-2.0

import collections

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import slots


def overbooked(free, choices):
    """Return the hosts that cannot take all that may choose them.

    By Hall's theorem for one host: servers that have no other choice.
    """
    only = collections.Counter(
        next(iter(hosts)) for hosts in choices.values() if len(hosts) == 1
    )
    return {host: n for host, n in only.items() if n > free[host]}


@ddt.ddt
class ShareTestCase(testtools.TestCase):
    def test_alone(self):
        free = {'host1': 1, 'host2': 3}
        self.assertEqual(set(free), slots.share(free, [], 'a'))
        self.assertEqual(set(free), slots.share(free, ['a'], 'a'))

    def test_no_slot(self):
        self.assertEqual(set(), slots.share({}, ['a', 'b'], 'a'))

    @ddt.data((8, 1, 8), (8, 3, 8), (24, 1, 8), (3, 2, 6))
    @ddt.unpack
    def test_enough_slots(self, hosts, count, servers):
        free = {f'host{number}': count for number in range(hosts)}
        waiting = [f'server{number}' for number in range(servers)]
        choices = {one: slots.share(free, waiting, one) for one in waiting}
        # Whatever each of them takes, there is room.
        may_take = collections.Counter(
            host for chosen in choices.values() for host in chosen
        )
        for host, takers in may_take.items():
            self.assertLessEqual(takers, free[host], host)

    def test_more_servers_than_slots(self):
        free = {'host1': 1, 'host2': 1}
        waiting = ['a', 'b', 'c']
        choices = [slots.share(free, waiting, one) for one in waiting]
        self.assertEqual([1, 1, 2], sorted(map(len, choices)))

    def test_a_server_that_is_not_among_the_waiting(self):
        free = {'host1': 1, 'host2': 1}
        mine = slots.share(free, ['b'], 'a')
        theirs = slots.share(free, ['a', 'b'], 'b')
        self.assertEqual(set(free), mine | theirs)
        self.assertEqual(set(), mine & theirs)

    def test_one_server_less_changes_little(self):
        free = {f'host{number}': 1 for number in range(40)}
        waiting = [f'server{number}' for number in range(8)]
        before = {one: slots.share(free, waiting, one) for one in waiting}
        after = {
            one: slots.share(free, waiting[1:], one) for one in waiting[1:]
        }
        kept = sum(len(before[one] & after[one]) for one in after)
        self.assertGreater(kept, 0.8 * sum(len(before[one]) for one in after))

    def test_many_hosts(self):
        free = {f'host{number}': 3 for number in range(5000)}
        waiting = [f'server{number}' for number in range(8)]
        choices = [slots.share(free, waiting, one) for one in waiting]
        self.assertEqual(set(free), set().union(*choices))
        self.assertEqual(len(free), sum(map(len, choices)))

    @hypothesis.given(
        st.dictionaries(st.text(max_size=3), st.integers(1, 4), max_size=8),
        st.sets(st.text(max_size=3), min_size=1, max_size=8),
    )
    def test_each_gets_some_and_nobody_takes_what_is_left_to_others(
        self, free, waiting
    ):
        choices = {one: slots.share(free, waiting, one) for one in waiting}
        for chosen in choices.values():
            self.assertLessEqual(chosen, set(free))
            self.assertEqual(bool(free), bool(chosen))
        if sum(free.values()) >= len(waiting):
            self.assertEqual({}, overbooked(free, choices))
