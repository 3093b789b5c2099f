# SPDX-License-Identifier: Apache-2.0

"""ServerGroupRoundRobinWeigher in a real scheduler.

Another weigher prefers host a1 for every server, and every filter would accept
it again and again: where the servers of a group go elsewhere, the turns
decided.
"""

import collections
from unittest import mock

from nova import context as nova_context
from nova import objects

from nova_ext_sched.policy import round_robin
from tests.functional import base

HOSTS = ('a1', 'a2', 'a3', 'b1', 'b2')
MANY = 9
#: Of a host, as nova's fake driver has them.
VCPUS = 10


class RoundRobinTestCase(base.CloudTestCase):
    host_filters = ('FailureDomainFilter',)
    weights = {host: 900 - place for place, host in enumerate(HOSTS)}
    weigher_classes = (
        'nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher',
        'nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher',
        'nova_ext_sched.weighers.all_weighers',
    )

    def setUp(self):
        super().setUp()
        self.small = self.flavor()
        for rack in 'ab':
            self.aggregate(
                f'rack {rack}',
                [host for host in self.computes if host.startswith(rack)],
                failure_domain=rack,
            )

    def create_group(self, limit=MANY, policy='anti-affinity'):
        # Other policies have no rule.
        rule = limit if policy == 'anti-affinity' else None
        return super().create_group(rule, policy)

    def boot_in(self, group, hints=None, **kwargs):
        return self.boot(
            flavor=self.small,
            hints={**(hints or {}), 'group': group},
            **kwargs,
        )

    def boot_many(self, group, count, **hints):
        """Boot servers of a group one by one; return their hosts."""
        return [self.host_of(self.boot_in(group, hints)) for _ in range(count)]

    def boot_at_once(self, group, count):
        """Boot servers in one request; return their hosts by creation."""
        number = {'min_count': count, 'max_count': count}
        self.post({'group': group}, self.small, **number)
        return self.member_hosts(group)

    def create_unclaimed(self, group):
        """Create a member that no conductor asks the scheduler for."""
        with mock.patch(
            'nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances'
        ):
            self.post({'group': group}, self.small)

    def member_hosts(self, group):
        """Return the hosts of a group's servers in their order."""
        return [
            self.host_of(self._wait_for_state_change({'id': uuid}, 'ACTIVE'))
            for uuid in self.members(group)
        ]

    def members(self, group):
        # The API gives them in any order.
        return objects.InstanceGroup.get_by_uuid(
            nova_context.get_admin_context(), group
        ).members

    def circle(self, group, hosts=HOSTS):
        """Return the hosts in the order of the group."""
        return self.assignment(group, dict.fromkeys(hosts, 1)).order_hosts(
            [], 'x'
        )

    def assignment(self, group, room):
        hosts = {
            name: round_robin.Host(round_robin.ONE_DOMAIN, number)
            for name, number in room.items()
        }
        return round_robin.Assignment(group, hosts, {})


class HostsTest(RoundRobinTestCase):
    def test_boots_and_moves(self):
        self.others_are_not_concerned()
        self.in_turn()
        self.a_full_host_has_no_slot()
        self.a_soft_group_that_schedulers_do_not_see_whole()
        self.members_that_are_not_claimed()
        self.moves()

    def in_turn(self):
        group = self.create_group()
        circle = self.circle(group)
        first = self.boot_in(group)
        self.assertEqual(circle + circle[:1], self.boot_at_once(group, 5))
        self.assertEqual(circle[1:2], self.boot_many(group, 1))
        # A deleted member frees its slot; nova keeps it in the list.
        self._delete_server(first)
        self.assertEqual([circle[0], circle[2]], self.boot_many(group, 2))
        self.assertIn(first['id'], self.members(group))

    def others_are_not_concerned(self):
        group = self.create_group(policy='soft-affinity')
        self.assertEqual(['a1'] * 2, self.boot_many(group, 2))
        self.assertBootsOn('a1', flavor=self.small)

    def a_full_host_has_no_slot(self):
        group = self.create_group(1)
        circle = self.circle(group)
        self.boot_in(group, az=f'nova:{circle[2]}')
        self.assertEqual(
            [circle[0], circle[1], circle[3]], self.boot_many(group, 3)
        )

    def a_soft_group_that_schedulers_do_not_see_whole(self):
        """One member is gone, one not placed yet; on after a round."""
        group = self.create_group(policy='soft-anti-affinity')
        circle = self.circle(group)
        gone = self.boot_in(group)
        self._delete_server(gone)
        self.create_unclaimed(group)
        self.assertEqual([*circle[1:], circle[0]], self.boot_many(group, 5))

    def moves(self):
        group = self.create_group()
        circle = self.circle(group)
        first, _, last = (self.boot_in(group) for _ in range(3))
        # A resize may stay.
        self.flags(allow_resize_to_same_host=True)
        self._resize_server(last, self.flavor())
        self.assertEqual(circle[2], self.host_of(last))
        self._migrate_server(first)
        self.assertEqual(circle[3], self.host_of(first))

    def members_that_are_not_claimed(self):
        """Their build requests are told from members that were deleted."""
        group = self.create_group()
        circle = self.circle(group)
        gone = self.boot_in(group)
        self._delete_server(gone)
        self.create_unclaimed(group)
        self.assertEqual(circle[1:3], self.boot_many(group, 2))


class DomainsTest(RoundRobinTestCase):
    options = {'max_server_per_failure_domain': 2}

    def test_in_turn(self):
        self.a_soft_group_with_a_limit()
        hosts = self.boot_at_once(self.create_group(), 4)
        self.assertEqual(
            {'a': 2, 'b': 2}, collections.Counter(h[0] for h in hosts)
        )
        self.assertEqual(4, len(set(hosts)))
        self.the_next_request_warns_of_too_many()

    def a_soft_group_with_a_limit(self):
        group = self.create_group(policy='soft-anti-affinity')
        hosts = self.boot_many(group, 4, max_server_per_failure_domain='3')
        self.assertEqual(
            {'a': 2, 'b': 2}, collections.Counter(h[0] for h in hosts)
        )
        self.assertEqual(4, len(set(hosts)))
        # Without the hint the hosts alone count: the fifth one is free.
        (last,) = self.boot_many(group, 1)
        self.assertNotIn(last, hosts)

    def the_next_request_warns_of_too_many(self):
        self.flags(max_server_per_failure_domain=9, group='nova_ext_sched')
        group = self.create_group()
        self.boot_many(group, 3)
        self.flags(max_server_per_failure_domain=1, group='nova_ext_sched')
        self.boot_in(group, expected_state='ERROR')
        self.assertIn(
            f'hold more servers of server group {group} than '
            f'max_server_per_failure_domain (1) allows: ',
            self.log,
        )
