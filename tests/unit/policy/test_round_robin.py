# SPDX-License-Identifier: Apache-2.0

import collections

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import round_robin

NAMES = st.text(min_size=1, max_size=6)
GROUPS = st.uuids().map(str)


def turns(room, count):
    """Return the index of the domain of each of the first turns."""
    return [round_robin.find_turn(k, room)[0] for k in range(count)]


def even(hosts, room=1):
    """Return hosts that take equally many members."""
    return dict.fromkeys(hosts, room)


@st.composite
def racks(draw):
    """Draw domains with their hosts, each host in one domain."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    return {
        f'rack {rack}': [f'host {rack} {number}' for number in range(size)]
        for rack, size in enumerate(sizes)
    }


@ddt.ddt
class FindTurnTestCase(testtools.TestCase):
    @ddt.data(
        ([2, 4, 3], [0, 1, 2, 0, 1, 2, 1, 2, 1]),
        ([1, 1, 1], [0, 1, 2]),
        ([3], [0, 0, 0]),
        ([0, 2], [1, 1]),
        # As many as the largest database has.
        ([10**18, 10**18], [0, 1, 0, 1]),
    )
    @ddt.unpack
    def test_table(self, room, expected):
        self.assertEqual(expected, turns(room, len(expected)))

    def test_the_turns_begin_anew(self):
        self.assertEqual([0, 1, 1] * 3, turns([1, 2], 9))

    def test_a_domain_counts_its_own_turns(self):
        self.assertEqual(
            [0, 0, 1, 1, 2, 3],
            [round_robin.find_turn(k, [2, 4])[1] for k in range(6)],
        )

    @ddt.data([], [0], [0, 0])
    def test_no_room(self, room):
        self.assertEqual((0, 0), round_robin.find_turn(7, room))

    @hypothesis.given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    def test_all_room_is_used_and_no_more(self, room):
        taken = collections.Counter(turns(room, sum(room)))
        self.assertEqual(room, [taken[index] for index in range(len(room))])

    @hypothesis.given(
        st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0)
    )
    def test_domains_differ_by_at_most_one(self, room, count):
        count %= sum(room) + 1
        taken = collections.Counter(turns(room, count))
        most = max(taken.values(), default=0)
        for index, size in enumerate(room):
            # Those with room left.
            if taken[index] < size:
                self.assertLessEqual(most - taken[index], 1)


class OrderHostsTestCase(testtools.TestCase):
    @hypothesis.given(
        GROUPS,
        st.dictionaries(NAMES, st.integers(1, 4), min_size=1),
    )
    def test_each_host_is_preferred_as_often_as_it_has_room(self, group, room):
        best = collections.Counter(
            round_robin.order_hosts(group, number, room)[0]
            for number in range(sum(room.values()))
        )
        self.assertEqual(room, best)

    @hypothesis.given(
        GROUPS, st.lists(NAMES, unique=True, min_size=1), st.integers(0, 9999)
    )
    def test_members_in_turn_prefer_different_hosts(self, group, hosts, start):
        room = even(hosts, 10000)
        best = {
            round_robin.order_hosts(group, start + k, room)[0]
            for k in range(len(hosts))
        }
        self.assertEqual(set(hosts), best)

    @hypothesis.given(
        GROUPS,
        st.integers(0, 9999),
        st.permutations([f'h{i}' for i in range(6)]),
    )
    def test_the_same_whatever_the_order_of_the_candidates(
        self, group, number, hosts
    ):
        self.assertEqual(
            round_robin.order_hosts(group, number, even(sorted(hosts), 3)),
            round_robin.order_hosts(group, number, even(hosts, 3)),
        )

    def test_every_host_follows_in_a_circle(self):
        room = even('abcd', 2)
        circle = round_robin.order_hosts('g', 0, room)
        self.assertEqual(sorted('abcd'), sorted(circle))
        for k in range(9):
            start = k % 4
            self.assertEqual(
                circle[start:] + circle[:start],
                round_robin.order_hosts('g', k, room),
            )

    def test_hosts_of_different_size(self):
        # The circle of this group is d a c b.
        room = {'a': 3, 'b': 1, 'c': 2, 'd': 1}
        self.assertEqual(
            ['dacb', 'acbd', 'cbda', 'bdac', 'acbd', 'cbda', 'acbd', 'dacb'],
            [
                ''.join(round_robin.order_hosts('g', number, room))
                for number in range(8)
            ],
        )

    def test_groups_begin_on_different_hosts(self):
        hosts = even(f'compute-{number:03}' for number in range(10))
        first = collections.Counter(
            round_robin.order_hosts(f'group {number}', 0, hosts)[0]
            for number in range(1000)
        )
        self.assertEqual(set(hosts), set(first))
        self.assertLess(max(first.values()), 200)

    def test_the_order_is_that_of_every_process_and_release(self):
        self.assertEqual(
            ['d', 'a', 'c', 'b'],
            round_robin.order_hosts('g', 0, even('abcd')),
        )

    def test_no_host(self):
        self.assertEqual([], round_robin.order_hosts('g', 3, {}))


@ddt.ddt
class OrderHostsByDomainTestCase(testtools.TestCase):
    def order(self, number, domains, room=None, group='g', rule=1):
        if room is None:
            room = {name: len(hosts) for name, hosts in domains.items()}
        domains = {name: even(hosts, rule) for name, hosts in domains.items()}
        return round_robin.order_hosts_by_domain(group, number, domains, room)

    @hypothesis.given(GROUPS, racks())
    def test_members_in_turn_prefer_different_hosts(self, group, domains):
        count = sum(map(len, domains.values()))
        best = {self.order(k, domains, group=group)[0] for k in range(count)}
        self.assertEqual(count, len(best))

    @hypothesis.given(GROUPS, racks(), st.integers(1, 4), st.integers(1, 4))
    def test_no_domain_and_no_host_is_above_its_limit(
        self, group, domains, limit, rule
    ):
        room = {
            name: min(limit, rule * len(hosts))
            for name, hosts in domains.items()
        }
        hosts = collections.Counter(
            self.order(k, domains, room, group, rule)[0]
            for k in range(sum(room.values()))
        )
        self.assertLessEqual(max(hosts.values()), rule)
        for name, held in domains.items():
            self.assertEqual(room[name], sum(hosts[host] for host in held))

    @hypothesis.given(GROUPS, racks(), st.integers(0, 30), st.data())
    def test_full_domains_keep_their_turns(self, group, domains, number, data):
        """Stage 1 leaves their hosts out; the others' order stays."""
        full = data.draw(st.sets(st.sampled_from(sorted(domains))))
        room = {name: len(hosts) for name, hosts in domains.items()}
        left = {
            name: [] if name in full else hosts
            for name, hosts in domains.items()
        }
        gone = {host for name in full for host in domains[name]}
        before = self.order(number, domains, room, group)
        self.assertEqual(
            [host for host in before if host not in gone],
            self.order(number, left, room, group),
        )

    @hypothesis.given(GROUPS, racks(), st.integers(0, 30))
    def test_the_hosts_of_a_domain_stand_together(
        self, group, domains, number
    ):
        of = {host: name for name, hosts in domains.items() for host in hosts}
        order = self.order(number, domains, group=group)
        self.assertEqual(sorted(of), sorted(order))
        names = [of[host] for host in order]
        self.assertEqual(
            len(domains),
            1 + sum(a != b for a, b in zip(names, names[1:], strict=False)),
        )

    def test_a_host_in_several_domains_stands_once(self):
        domains = {'a': ['a1', 'ab'], 'b': ['ab', 'b1']}
        for number in range(8):
            order = self.order(number, domains)
            self.assertEqual(['a1', 'ab', 'b1'], sorted(order))

    def test_hosts_of_different_size(self):
        domains = {'a': {'a1': 2, 'a2': 1}, 'b': {'b1': 1, 'b2': 1}}
        best = [
            round_robin.order_hosts_by_domain(
                'g', number, domains, {'a': 3, 'b': 2}
            )[0]
            for number in range(5)
        ]
        self.assertEqual(['a2', 'b2', 'a1', 'b1', 'a1'], best)

    @ddt.data({}, {'a': []})
    def test_no_host(self, domains):
        self.assertEqual([], self.order(2, domains))
