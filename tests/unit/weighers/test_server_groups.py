# SPDX-License-Identifier: Apache-2.0

import functools
import itertools
import types
from unittest import mock

import cachetools
import ddt
import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import request_state
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import round_robin
from nova_ext_sched.queries import group_members
from nova_ext_sched.weighers import room as weighers_room
from nova_ext_sched.weighers import server_groups
from tests.unit.filters import base

MEMBERS = [f'member {number}' for number in range(9)]
A, B, C = MEMBERS[:3]
ME = 'me'
KEY = 'failure_domain'
#: What one kind of shortage depends on.
SHORT = {
    'vcpus': ('vcpus_total', 'cpu_allocation_ratio'),
    'memory': ('total_usable_ram_mb', 'free_ram_mb', 'ram_allocation_ratio'),
    'disk': ('total_usable_disk_gb', 'disk_allocation_ratio'),
}
AMOUNTS = st.integers(0, 20)
RATIOS = st.sampled_from([None, 0.5, 1.0, 1.5])


def flavor(**amounts):
    amounts = {
        'vcpus': 1,
        'memory_mb': 1024,
        'root_gb': 0,
        'ephemeral_gb': 0,
        'swap': 0,
        **amounts,
    }
    return objects.Flavor(**amounts)


def request(group=uuids.group, is_bfv=False, ignore_hosts=None, **amounts):
    return objects.RequestSpec(
        flavor=flavor(**amounts),
        is_bfv=is_bfv,
        ignore_hosts=ignore_hosts,
        instance_uuid=ME,
        instance_group=objects.InstanceGroup(
            uuid=group, members=[*MEMBERS, ME], hosts=[]
        ),
    )


def state(name, *aggregates, held=(), sent=(), **amounts):
    """Return a host with 8 vCPUs, 8 GiB of memory and 80 GiB of disk.

    :param held: members that nova-compute reported
    :param sent: members that this scheduler picked the host for
    """
    made = base.host_state(name, *aggregates)
    amounts = {
        'vcpus_total': 8,
        'vcpus_used': 0,
        'cpu_allocation_ratio': 1.0,
        'total_usable_ram_mb': 8192,
        'free_ram_mb': 8192,
        'ram_allocation_ratio': 1.0,
        'total_usable_disk_gb': 80,
        'disk_mb_used': 0,
        'disk_allocation_ratio': 1.0,
        **amounts,
    }
    for key, amount in amounts.items():
        setattr(made, key, amount)
    made.instances = {
        uuid: objects.Instance(uuid=uuid, host=name)
        for uuid in [*held, 'another']
    } | {uuid: objects.Instance(uuid=uuid) for uuid in sent}
    return made


class ServerGroupsTestCase(testtools.TestCase):
    """What nova's databases and placement say is given."""

    def setUp(self):
        super().setUp()
        self.groups = server_groups.ServerGroups()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.places, self.allocated, self.asked = {}, {}, []
        self.fault = None
        for name, replacement in (
            ('_known', group_members._Known()),
            ('get_places', self.get_places),
            ('get_members', self.get_members),
        ):
            self.useFixture(
                fixtures.MockPatchObject(group_members, name, replacement)
            )

    def get_places(self, ctxt, group, asked, on_fault):
        if self.fault:
            on_fault(self.fault)
        self.asked.append(('places', list(asked)))
        return {
            uuid: frozenset(on)
            for uuid, on in self.places.items()
            if uuid in asked
        }

    def get_members(self, ctxt, group, asked, on_fault):
        places = self.get_places(ctxt, group, asked, on_fault)
        self.asked[-1] = ('members', list(asked))
        return group_members.Members(
            places,
            {uuid: frozenset(on) for uuid, on in self.allocated.items()},
        )

    def find(self, *states, rule=3, **spec):
        """Return the hosts, and the members' places."""
        assignment = self.groups.find(request(**spec), states, rule)
        return assignment._hosts, assignment.places

    def room(self, *states, **kwargs):
        hosts, _ = self.find(*states, **kwargs)
        return {name: host.room for name, host in hosts.items()}


@ddt.ddt
class RoomTestCase(ServerGroupsTestCase):
    """How many members a host takes."""

    @ddt.data(
        # What the host has, what a server asks for, its room.
        ({}, {}, 8),
        ({'vcpus_used': 5}, {'vcpus': 2}, 1),
        ({'vcpus_used': 5, 'cpu_allocation_ratio': 1.5}, {}, 7),
        ({'free_ram_mb': 4095}, {}, 3),
        # Used above the total, as an allocation ratio allows.
        ({'free_ram_mb': -1024, 'ram_allocation_ratio': 1.5}, {}, 3),
        ({}, {'memory_mb': 2048}, 4),
        ({'disk_mb_used': 1}, {'root_gb': 20}, 3),
        ({'disk_allocation_ratio': 1.5}, {'root_gb': 20}, 6),
        ({}, {'root_gb': 10, 'ephemeral_gb': 10}, 4),
        ({}, {'root_gb': 20, 'swap': 1}, 3),
        ({}, {'root_gb': 20, 'is_bfv': True}, 8),
        # Placement says that one fits, whatever nova's record says.
        ({'vcpus_used': 9}, {}, 1),
        # Members stay where there is no room for more.
        ({'vcpus_used': 8, 'held': MEMBERS[:2]}, {}, 3),
        # The rule.
        ({'vcpus_total': 99, 'free_ram_mb': 99999}, {}, 9),
        ({'vcpus_used': 1, 'held': MEMBERS[:5]}, {}, 9),
        # Nobody reported it, or nobody asks for it.
        ({'vcpus_total': 0, 'vcpus_used': 9}, {}, 8),
        ({'total_usable_ram_mb': 0, 'free_ram_mb': 0}, {}, 8),
        ({'total_usable_disk_gb': 0}, {'root_gb': 99}, 8),
        ({'cpu_allocation_ratio': None}, {}, 8),
        ({'ram_allocation_ratio': None}, {}, 8),
        ({'disk_allocation_ratio': None}, {'root_gb': 20}, 4),
        ({}, {'vcpus': 0, 'memory_mb': 0}, 9),
    )
    @ddt.unpack
    def test_table(self, amounts, asked, room):
        self.assertEqual(
            {'a': room}, self.room(state('a', **amounts), rule=9, **asked)
        )

    def test_a_request_without_a_flavor_asks_for_nothing(self):
        asked = weighers_room.read_asked(objects.RequestSpec())
        self.assertEqual((0, 0, 0), asked)

    @ddt.data(*SHORT)
    @hypothesis.given(st.data())
    def test_whatever_is_short(self, kind, data):
        """Hosts with room are told from the others in a pass of their own."""
        amounts = dict.fromkeys(itertools.chain(*SHORT.values()), 1 << 20)
        for name in SHORT[kind]:
            choices = RATIOS if name.endswith('ratio') else AMOUNTS
            amounts[name] = data.draw(choices, name)
        asked = dict(vcpus=2, memory_mb=2, root_gb=2)
        amounts |= dict(vcpus_used=data.draw(AMOUNTS), disk_mb_used=2048)
        rule = data.draw(st.integers(1, 5), 'rule')
        host = state('a', **amounts)
        fits = server_groups._count_fitting(
            host, weighers_room.read_asked(request(**asked))
        )
        found = self.room(host, rule=rule, **asked)
        self.assertEqual({'a': min(rule, max(1, fits))}, found)

    @ddt.data(10**6, 10**400)
    def test_more_than_the_group_needs_is_not_counted(self, rule):
        """Nine members and the server: no host gives out its eleventh slot."""
        large = dict.fromkeys(('total_usable_ram_mb', 'free_ram_mb'), 1 << 20)
        states = [
            state(str(fits), vcpus_total=fits, **large)
            for fits in (1, 10, 11, 12, 13)
        ]
        with mock.patch.object(
            server_groups, '_count_fitting', wraps=server_groups._count_fitting
        ) as count:
            self.assertEqual(
                {'1': 1, '10': 10, '11': 11, '12': rule, '13': rule},
                self.room(*states, rule=rule),
            )
        self.assertEqual(3, count.call_count)

    @ddt.data(
        # By nova's database: on the host, not claimed, elsewhere, deleted;
        # then with the place taken off the free room.
        (5, [None], 3),
        (6, ['a'], 3),
        (6, [None], 2),
        (6, ['b'], 2),
        (6, None, 2),
        (7, [None], 1),
    )
    @ddt.unpack
    def test_a_pick_counts_once(self, used, on, room):
        """nova puts it on the host at once, nova-compute claims later."""
        if on is not None:
            self.places[A] = on
        found = self.room(state('a', sent=[A], vcpus_used=used))['a']
        self.assertEqual(room, found)

    def test_corrected_up_and_down(self):
        for used, room in ((7, 1), (6, 2), (0, 3), (5, 3), (7, 1)):
            self.assertEqual(
                {'a': room}, self.room(state('a', vcpus_used=used))
            )

    def test_nodes_of_one_host(self):
        nodes = [state('s', vcpus_used=7) for _ in range(2)]
        self.assertEqual({'s': 2}, self.room(*nodes))


class PlacesTestCase(ServerGroupsTestCase):
    def places_of(self, *states, **kwargs):
        return dict(self.find(*states, **kwargs)[1])

    def test_reported_members_are_not_asked_about(self):
        found = self.places_of(state('a', held=MEMBERS))
        self.assertEqual(dict.fromkeys(MEMBERS, {'a'}), found)
        self.assertEqual([('members', [])], self.asked)

    def test_known_to_be_gone(self):
        group_members._known.add(
            request().instance_group, dict.fromkeys(MEMBERS[2:])
        )
        self.places_of(state('a', held=[A]))
        self.assertEqual([('members', [B])], self.asked)

    def test_a_pick_on_a_host_with_room(self):
        self.assertEqual(
            {A: {'a'}}, self.places_of(state('a', sent=[A], vcpus_used=4))
        )
        self.assertEqual([('members', MEMBERS[1:])], self.asked)

    def test_a_pick_on_a_small_host(self):
        self.places = {A: [None], B: ['b'], C: ['b', None]}
        small = state('a', sent=[A, B, C, MEMBERS[3]], vcpus_used=5)
        self.assertEqual(
            # Not claimed, refused and built elsewhere, sent there to move.
            {A: {'a'}, B: {'b'}, C: {'a', 'b'}},
            self.places_of(small),
        )

    def test_on_two_hosts(self):
        found = self.places_of(state('a', held=[A]), state('b', held=[A]))[A]
        self.assertEqual({'a', 'b'}, found)

    def test_placement_is_asked_once(self):
        """By a scheduler that is new to the group."""
        self.places = {A: [None]}
        self.allocated = {A: ['full']}
        self.assertEqual({A: {'full'}}, self.places_of(state('a')))
        self.assertEqual({A: {None}}, self.places_of(state('a')))
        self.assertEqual(
            {A: {'full'}}, self.places_of(state('a'), group=uuids.other)
        )
        self.assertEqual(
            ['members', 'places', 'members'], [kind for kind, _ in self.asked]
        )

    def test_allocations_of_one_that_moves(self):
        self.places = {A: ['a', None], B: ['b', None]}
        self.allocated = {A: ['a'], B: ['b', 'c']}
        self.assertEqual(
            {A: {'a', None}, B: {'b', 'c'}}, self.places_of(state('x'))
        )

    def test_a_move_asks_about_all(self):
        self.places = {A: ['a', None]}
        found = self.places_of(state('a', held=[A, B]), ignore_hosts=['b'])
        self.assertEqual({A: {'a', None}, B: {'a'}}, found)
        self.assertEqual([('members', MEMBERS)], self.asked)

    def test_nova_does_not_answer(self):
        with mock.patch.object(
            group_members, 'get_members', side_effect=ZeroDivisionError('x')
        ):
            self.assertEqual({A: {'a'}}, self.places_of(state('a', held=[A])))
        self.assertIn('did not answer: ZeroDivisionError: x', self.log.output)

    def test_a_cell_that_does_not_answer(self):
        """What the other cells say is used."""
        self.places = {B: ['b']}
        for self.fault in (ZeroDivisionError('y'), None):
            self.assertEqual({B: {'b'}}, self.places_of(state('a')))
        self.assertIn('did not answer: ZeroDivisionError: y', self.log.output)

    def test_what_stage_1_found(self):
        spec = request()
        request_state.of(spec).group.members = group_members.Members(
            {A: frozenset(['a']), B: frozenset([None])}, {B: frozenset('b')}
        )
        assignment = self.groups.find(spec, [state('a', held=[C])], 3)
        self.assertEqual({A: {'a'}, B: {'b'}, C: {'a'}}, assignment.places)
        # Not placement, which stage 1 asked about each.
        self.assertEqual([('places', MEMBERS[3:])], self.asked)

    def test_sent_after_stage_1(self):
        """Of one that nobody claimed and placement was not asked about."""
        spec = request()
        request_state.of(spec).group.members = group_members.Members(
            {A: frozenset(['b']), B: frozenset([None])}, {}
        )
        small = state('a', held=[A], sent=[B], vcpus_used=6)
        assignment = self.groups.find(spec, [small], 3)
        # The databases say where the other one stands.
        self.assertEqual({A: {'b'}, B: {'a'}}, assignment.places)

    def test_claimed_after_stage_1(self):
        spec = request()
        request_state.of(spec).group.members = group_members.Members(
            {A: frozenset([None]), B: frozenset([None])},
            {A: frozenset(['x']), B: frozenset()},
        )
        self.places = {A: ['b'], B: ['b']}
        assignment = self.groups.find(spec, [state('a', held=MEMBERS[2:])], 3)
        self.assertEqual(
            {A: {'x'}, B: {'b'}, **dict.fromkeys(MEMBERS[2:], {'a'})},
            assignment.places,
        )
        self.assertEqual([('places', [B])], self.asked)

    def test_a_server_that_leaves_while_it_is_read(self):
        """nova's threads change the instances that host states share."""

        class Changing(dict):
            def __iter__(self):
                yield from list(super().__iter__())
                self.pop(B, None)

        leaves = state('a', held=[A, B])
        leaves.instances = Changing(leaves.instances)
        self.assertEqual({A: {'a'}}, self.places_of(leaves))
        self.assertIn(B, self.asked[0][1])


class HostsTestCase(ServerGroupsTestCase):
    def test_a_host_that_filled_up_keeps_its_slots(self):
        small, large = state('small', vcpus_used=6), state('large')
        self.room(small, large)
        self.assertEqual({'small': 2, 'large': 3}, self.room(large))
        self.assertEqual({'large': 3}, self.room(large, group=uuids.other))

    def test_hosts_of_members_are_full(self):
        self.places = {A: ['full'], B: ['full'], C: ['small']}
        self.room(state('small', vcpus_used=7))
        self.assertEqual(
            {'a': 3, 'full': 2, 'small': 2}, self.room(state('a'))
        )

    def test_more_stand_there_than_the_rule_allows(self):
        self.assertEqual({'a': 3}, self.room(state('a', held=MEMBERS[:4])))

    def test_more_stand_there_than_was_room(self):
        self.room(state('small', vcpus_used=7))
        self.places = {A: ['small'], B: ['small']}
        self.assertEqual({'small': 2}, self.room())

    def test_domains(self):
        rack = base.aggregate('rack', failure_domain='r')
        feed = base.aggregate('feed', failure_domain='f')
        states = [
            state('a', rack, vcpus_used=6),
            state('b', feed, rack),
            state('c'),
        ]
        spec = request()
        request_state.of(spec).group.spread = failure_domain.Spread(
            'g', 4, KEY, {}, {'full': frozenset('s'), 'other': frozenset('t')}
        )
        request_state.of(spec).group.members = group_members.Members(
            {A: frozenset(['full']), B: frozenset(['loose'])}, {}
        )
        host = round_robin.Host
        hosts = self.groups.find(spec, states, 3, 4, KEY)._hosts
        self.assertEqual(
            {
                'a': host(frozenset('r'), 2),
                'b': host(frozenset('fr'), 3),
                'c': host(frozenset(), 3),
                'full': host(frozenset('s'), 1),
                'loose': host(frozenset(), 1),
            },
            hosts,
        )

    def test_without_a_limit_all_are_one_domain(self):
        rack = base.aggregate('rack', failure_domain='r')
        hosts, _ = self.find(state('a', rack), state('b'))
        found = [host.domains for host in hosts.values()]
        self.assertEqual([round_robin.ONE_DOMAIN] * 2, found)


class MemoryTestCase(ServerGroupsTestCase):
    def test_each_host_for_ten_minutes(self):
        now = 0.0
        cache = functools.partial(cachetools.TTLCache, timer=lambda: now)
        with mock.patch.object(
            server_groups, 'cachetools', types.SimpleNamespace(TTLCache=cache)
        ):
            self.groups = server_groups.ServerGroups()
            a, b = state('a', vcpus_used=7), state('b', vcpus_used=7)
            self.room(a, b)
            now = 599.0
            self.assertEqual({'a': 1, 'b': 1}, self.room(a))
            now += 599
            self.assertEqual({'a': 1}, self.room())
            now += 2
            self.assertEqual({}, self.room())
            self.assertEqual('places', self.asked[-1][0])
            now += 601
            self.room()
            # A group that was forgotten is new.
            self.assertEqual('members', self.asked[-1][0])
        self.assertEqual(600, server_groups._SECONDS)

    def test_more_hosts_than_can_be_remembered(self):
        with mock.patch.object(server_groups, '_HOSTS', 5):
            self.groups = server_groups.ServerGroups()
        small = [state(name, vcpus_used=7) for name in 'abc']
        self.assertEqual({'a': 1, 'b': 1, 'c': 1}, self.room(*small))
        self.assertEqual({}, self.room())
        self.room(*small[:2])
        self.assertEqual({'a': 1, 'b': 1}, self.room())
        self.room(*small[2:], group=uuids.other)
        # The group that was asked about longest ago.
        self.assertEqual({}, self.room())

    def test_many_groups_without_small_hosts(self):
        with mock.patch.object(server_groups, '_HOSTS', 60):
            self.groups = server_groups.ServerGroups()
        for number in range(100):
            self.room(state('a'), group=str(number))
        self.assertEqual(20, len(self.groups._small))
