# SPDX-License-Identifier: Apache-2.0

import collections
import math
import types
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import round_robin

GROUPS = st.uuids().map(str)
UNCLAIMED = (None,)


def members(count):
    return [f'm{number:03}' for number in range(count)]


def in_one_domain(rooms):
    """Return hosts by name, given how many members each takes."""
    domain = round_robin.ONE_DOMAIN
    return {name: round_robin.Host(domain, n) for name, n in rooms.items()}


def even(names, room=1):
    return in_one_domain(dict.fromkeys(names, room))


def in_racks(rooms, racks=None):
    """Return hosts by name; the letter of it is the rack, unless given."""
    return {
        name: round_robin.Host(frozenset((racks or {}).get(name, name[0])), n)
        for name, n in rooms.items()
    }


def order(hosts, number=0, places=None, group='g', limit=math.inf, count=40):
    """Return the hosts as a member prefers them; earlier ones are not claimed.

    :param places: by number of a member
    """
    names = members(count)
    known = {
        **dict.fromkeys(names[:number], UNCLAIMED),
        **{names[k]: on for k, on in (places or {}).items()},
    }
    assignment = round_robin.Assignment(group, hosts, known, limit)
    return assignment.order_hosts(names, names[number])


def fill(hosts, count, **kwargs):
    """Return the hosts that the first members prefer."""
    return [order(hosts, number, **kwargs)[0] for number in range(count)]


@st.composite
def clouds(draw):
    """Draw hosts with room, in one rack each, and a limit for racks."""
    hosts = {
        f'{rack}{number}': draw(st.integers(1, 3))
        for rack in 'abc'[: draw(st.integers(1, 3))]
        for number in range(draw(st.integers(1, 4)))
    }
    if draw(st.booleans()):
        return in_racks(hosts), draw(st.integers(1, 6))
    return in_one_domain(hosts), math.inf


def rooms(hosts, limit):
    """Return how many members each rack takes."""
    found = collections.Counter()
    for host in hosts.values():
        for rack in host.domains:
            found[rack] += host.room
    return {rack: min(limit, room) for rack, room in found.items()}


class AgreementTestCase(testtools.TestCase):
    """Schedulers that know different things assign alike."""

    @hypothesis.given(GROUPS, clouds(), st.data())
    def test_every_scheduler_assigns_the_same_slots(self, group, cloud, data):
        """A group lost members; whatever is known of a burst, none collide."""
        hosts, limit = cloud
        names = members(60)
        old, placed = {}, {}
        held, racks = collections.Counter(), collections.Counter()

        def assign(server):
            """Return the best host, where some of the others are known."""
            known = data.draw(st.sets(st.sampled_from(burst)))
            waiting = {
                member: on if member in known else UNCLAIMED
                for member, on in placed.items()
                if member != server
            }
            assignment = round_robin.Assignment(
                group, hosts, old | waiting, limit
            )
            return assignment.order_hosts(names, server)[0]

        for name in data.draw(st.lists(st.sampled_from(sorted(hosts)))):
            (rack,) = hosts[name].domains
            if held[name] < hosts[name].room and racks[rack] < limit:
                old[names[2 * len(old)]] = (name,)
                held[name] += 1
                racks[rack] += 1
        # Members between the old ones were deleted.
        burst = names[2 * len(old) :]
        room = rooms(hosts, limit)
        for server in burst[: sum(room.values()) - len(old)]:
            best = assign(server)
            placed[server] = (best,)
            (rack,) = hosts[best].domains
            held[best] += 1
            racks[rack] += 1
        for name, host in hosts.items():
            self.assertLessEqual(held[name], host.room)
        self.assertEqual(room, racks)

        # One that is asked again, whatever became of the others since.
        server = data.draw(st.sampled_from([*placed, None]))
        if server is not None:
            self.assertEqual(placed[server][0], assign(server))

    @hypothesis.given(GROUPS, st.permutations([f'h{i}' for i in range(6)]))
    def test_the_same_whatever_the_order_of_the_candidates(self, group, hosts):
        found = order(even(hosts, 3), 7, group=group)
        self.assertEqual(order(even(sorted(hosts), 3), 7, group=group), found)

    @hypothesis.given(clouds(), st.data())
    def test_a_request_for_several_servers(self, cloud, data):
        """What is kept from one server to the next makes no difference."""
        hosts, limit = cloud
        names = members(9)
        stands = st.sampled_from([*sorted(hosts), None])
        places = {
            name: tuple(data.draw(st.sets(stands, max_size=2)))
            for name in data.draw(st.sets(st.sampled_from(names)))
        }
        assignment = round_robin.Assignment('g', hosts, places, limit)
        for server in data.draw(st.lists(st.sampled_from(names))):
            order = assignment.order_hosts(names, server)
            fresh = round_robin.Assignment('g', hosts, places, limit)
            self.assertEqual(fresh.order_hosts(names, server), order)
            picked = data.draw(st.sampled_from([order[0], order[-1], None]))
            if picked is not None:
                assignment.pick(server, picked)
                places[server] = (picked,)

    @hypothesis.given(GROUPS, clouds(), st.data())
    def test_the_first_slot_is_where_fewest_are(self, group, cloud, data):
        """Of the domains that take one, and then of their hosts."""
        hosts, limit = cloud
        rack_of = {name: min(host.domains) for name, host in hosts.items()}
        in_order = round_robin._order(group, frozenset(hosts))
        racks = round_robin._order(group, frozenset(rack_of.values()))
        room = rooms(hosts, limit)
        held, claimed = collections.Counter(), collections.Counter()

        def rank(name):
            rack = rack_of[name]
            place = racks.index(rack), claimed[name], in_order.index(name)
            return held[rack], *place

        def find_first():
            takes = (
                name
                for name, host in hosts.items()
                if claimed[name] < host.room
                and held[rack_of[name]] < room[rack_of[name]]
            )
            return min(takes, key=rank, default=None)

        stands = data.draw(st.lists(st.sampled_from(sorted(hosts))))
        left = max(0, sum(room.values()) - len(stands))
        waits = [None] * data.draw(st.integers(0, left))
        for host in [*stands, *waits]:
            host = host or find_first()
            if host is not None:
                claimed[host] += 1
                held[rack_of[host]] += 1
        names = members(len(stands) + len(waits))
        each = zip(names, stands + waits, strict=True)
        places = {name: (host,) for name, host in each}
        best = find_first()
        assignment = round_robin.Assignment(group, hosts, places, limit)
        found = assignment.order_hosts(names, 'server')
        if best is None:
            self.assertEqual({*hosts}, {*found})
        else:
            self.assertEqual(best, found[0])

    def test_the_order_is_that_of_every_process_and_release(self):
        self.assertEqual(['d', 'a', 'c', 'b'], order(even('abcd')))

    def test_groups_begin_on_different_hosts(self):
        hosts = even(f'compute-{number:03}' for number in range(10))
        first = collections.Counter(
            order(hosts, group=f'group {number}')[0] for number in range(1000)
        )
        self.assertEqual(set(hosts), set(first))
        self.assertLess(max(first.values()), 200)


@ddt.ddt
class WalkTestCase(testtools.TestCase):
    """What each member claims; the order of the group is d a c b."""

    @ddt.data(
        # Members that are not claimed yet.
        (0, {}, 'dacb'),
        (1, {}, 'acbd'),
        (5, {}, 'acbd'),
        (6, {}, 'cbda'),
        # The first one stands where it was not assigned to.
        (1, {0: 'b'}, 'dacb'),
        (2, {0: 'b'}, 'acdb'),
        # Gone.
        (1, {0: ''}, 'dacb'),
        (2, {0: '', 1: 'd'}, 'acbd'),
        # On a host that is none of the circle's.
        (1, {0: 'x'}, 'dacb'),
        # Those that follow stand in their own slots.
        (1, {4: 'd', 5: 'a'}, 'acbd'),
        (0, {4: 'd'}, 'dacb'),
        # ... or where they leave none: assigned again.
        (0, {4: 'dd'}, 'acbd'),
        (0, {4: 'dd', 5: 'aa'}, 'cbda'),
        (1, {4: 'dd', 5: 'aa'}, 'bcda'),
        # Those that follow and are not claimed have slots too.
        (0, {1: None}, 'dcba'),
        (0, {1: None, 2: None, 3: None}, 'dacb'),
    )
    @ddt.unpack
    def test_table(self, number, places, expected):
        places = {
            member: UNCLAIMED if on is None else tuple(on)
            for member, on in places.items()
        }
        found = order(even('abcd', 2), number, places)
        self.assertEqual(expected, ''.join(found))

    def test_one_that_moves_claims_both(self):
        names = members(3)
        places = {names[0]: ('d', None), names[1]: ('c',)}
        for moves, expected in ((False, 'a'), (True, 'b')):
            # After one that is booted, and before others that move.
            given = 'g', even('abcd'), places
            assignment = round_robin.Assignment(*given, moves=moves)
            best = assignment.order_hosts(names, names[2])[0]
            self.assertEqual(expected, best)

    def test_a_move_goes_where_fewest_are(self):
        """Members 1 and 2 stand, 3 is booted, 4 moves too."""
        hosts = even('acb', 3)
        names = members(5)
        where = (('a',), ('c',), UNCLAIMED, ('c', None))
        places = dict(zip(names[1:], where, strict=True))
        assignment = round_robin.Assignment('g', hosts, places, moves=True)
        self.assertEqual('a', assignment.order_hosts(names, names[0])[0])
        self.assertEqual('a', assignment.order_hosts(names[1:], names[4])[0])
        # Not by its place in the list.
        assignment.pick(names[3], 'a')
        self.assertEqual('b', assignment.order_hosts(names, names[0])[0])

    def test_the_latest_is_displaced(self):
        """Members 0 and 4 were sent to d, and one that follows has it."""
        hosts = even('abcd', 2)
        self.assertEqual('d', order(hosts, 0, {4: UNCLAIMED, 9: ('d',)})[0])
        places = {k: UNCLAIMED for k in range(4)} | {9: ('d',)}
        self.assertEqual('a', order(hosts, 4, places)[0])

    def test_no_member_of_the_list_is_the_last(self):
        assignment = round_robin.Assignment(
            'g', even('abcd'), dict.fromkeys(members(2), UNCLAIMED)
        )
        self.assertEqual('c', assignment.order_hosts(members(2), 'other')[0])

    def test_a_pick_of_the_same_request(self):
        names = members(3)
        assignment = round_robin.Assignment('g', even('abcd'), {})
        self.assertEqual(list('dacb'), assignment.order_hosts(names, names[0]))
        assignment.pick(names[0], 'a')
        self.assertEqual(list('dcba'), assignment.order_hosts(names, names[1]))
        # As nova asks for alternates, after the last pick.
        assignment.pick(names[1], 'd')
        self.assertEqual(list('cbda'), assignment.order_hosts(names, names[1]))

    def test_each_assign_all_is_its_own(self):
        names = members(9)
        hosts = even('abcd', 2)
        waiting = dict.fromkeys(names[:7], UNCLAIMED)
        assignment = round_robin.Assignment('g', hosts, waiting, moves=True)
        self.assertEqual('b', assignment.order_hosts(names, names[7])[0])
        for name in names[1:7]:
            del assignment.places[name]
        self.assertEqual('a', assignment.order_hosts(names, names[7])[0])

    def test_hosts_of_different_size(self):
        hosts = in_one_domain({'a': 3, 'b': 1, 'c': 2, 'd': 1})
        self.assertEqual(list('dacbaca'), fill(hosts, 7))
        self.assertEqual(list('acdb'), order(hosts, 4))

    @ddt.data(
        # Where members stand, and whether the first was picked.
        ({0: ('d',)}, True),
        ({0: ('d', None)}, False),
        ({4: ('d', 'd')}, True),
    )
    @ddt.unpack
    def test_a_walk_that_does_not_go_on(self, stand, picked):
        names = members(6)
        places = dict.fromkeys(names[1:4], UNCLAIMED) | {
            names[number]: on for number, on in stand.items()
        }
        hosts = even('abcd', 2)
        assignment = round_robin.Assignment('g', hosts, places)
        best = assignment.order_hosts(names, names[0])[0]
        if picked:
            assignment.pick(names[0], best)
            places[names[0]] = (best,)
        fresh = round_robin.Assignment('g', hosts, places)
        for name in names[1:4]:
            expected = fresh.order_hosts(names, name)
            self.assertEqual(expected, assignment.order_hosts(names, name))

    def test_a_request_for_many_servers_is_one_assign_all(self):
        names = members(9)
        waiting = dict.fromkeys(names, UNCLAIMED)
        one = round_robin.Assignment('g', even('abcd', 3), waiting)
        walk = mock.Mock(wraps=one._assign_all)
        with mock.patch.object(one, '_assign_all', walk):
            for name in names[:5]:
                one.pick(name, one.order_hosts(names, name)[0])
            self.assertEqual(1, walk.call_count)
            # Placement had no room there any more.
            one.pick(names[5], one.order_hosts(names, names[5])[-1])
            one.order_hosts(names, names[6])
            self.assertEqual(2, walk.call_count)

    def test_a_host_that_takes_no_member(self):
        hosts = even('abcd')
        hosts['d'] = hosts['d']._replace(room=0)
        self.assertEqual(list('acbd'), order(hosts))


@ddt.ddt
class DomainsTestCase(testtools.TestCase):
    """Racks a, b and c."""

    HOSTS = in_racks({'a1': 1, 'a2': 1, 'a3': 1, 'b1': 1, 'b2': 1, 'c1': 1})

    def test_a_full_domain_has_no_slot(self):
        """Members stand in it; two that follow stand there, too."""
        for places in (
            {0: ('a1',), 1: ('a2',)},
            {0: (), 20: ('a1',), 21: ('a2',)},
        ):
            best = order(self.HOSTS, 2, places, limit=2)
            self.assertEqual('aaa', ''.join(host[0] for host in best[-3:]))

    @ddt.data(3, 10**6, 10**400)
    def test_no_round_is_beyond_what_members_need(self, rule):
        """Members of a project choose the rule; all domains are full."""

        def count():
            yield from range(5)
            raise AssertionError('a round for each that the rule allows')

        hosts = in_racks(dict.fromkeys(self.HOSTS, rule))
        bounded = types.SimpleNamespace(count=count)
        with mock.patch.object(round_robin, 'itertools', bounded):
            best = order(hosts, 3, {0: ('a1',), 1: ('a1',)}, limit=1)
        self.assertEqual('a', best[-1][0])

    def test_after_the_last_slot_of_a_host_come_the_next_slots(self):
        """Another member may have been assigned the same slot."""
        assigned = fill(self.HOSTS, 6, limit=9)
        for number in range(6):
            best = order(self.HOSTS, number, limit=9)
            self.assertEqual(assigned[number:], best[: 6 - number])

    def test_after_another_slot_come_hosts_of_the_domain(self):
        """nova-compute refuses it for another reason than the rule."""
        hosts = in_racks(dict.fromkeys(self.HOSTS, 2))
        for number in range(3):
            racks = [host[0] for host in order(hosts, number, limit=9)]
            changes = sum(map(str.__ne__, racks, racks[1:]))
            self.assertEqual(2, changes)

    def test_full_domains_come_last(self):
        """Rack c has its only member, and the others have two slots left."""
        for number in range(9):
            racks = order(self.HOSTS, 3, group=f'g{number}', limit=9)
            self.assertEqual('c1', racks[-1])

    def test_a_displaced_member_frees_its_other_domain(self):
        rooms = dict.fromkeys(('a1', 'ab', 'b1', 'c1'), 1)
        hosts = in_racks(rooms, {'ab': 'ab'})
        group = next(
            group
            for group in map(str, range(99))
            if order(hosts, group=group, limit=1)[0] == 'ab'
        )
        places = {1: UNCLAIMED, 2: UNCLAIMED, 5: ('a1',)}
        self.assertEqual('b1', order(hosts, 0, places, group, 1)[0])

    def test_a_host_in_several_domains(self):
        rooms = dict.fromkeys(('a1', 'ab', 'b1'), 1)
        hosts = in_racks(rooms, {'ab': 'ab'})
        best = fill(hosts, 2, limit=1)
        if best[0] != 'ab':
            self.assertEqual({'a1', 'b1'}, set(best))
        for number in range(4):
            found = order(hosts, number, limit=1)
            self.assertEqual(['a1', 'ab', 'b1'], sorted(found))
        # It counts in both.
        for group in ('g', *(f'g{n}' for n in range(9))):
            found = order(hosts, 1, {0: ('a1',)}, group, 1)
            self.assertEqual('b1', found[0])

    def test_a_host_without_a_domain_is_none(self):
        hosts = {**self.HOSTS, 'loose': round_robin.Host(frozenset(), 1)}
        self.assertEqual(order(self.HOSTS, 2), order(hosts, 2))
