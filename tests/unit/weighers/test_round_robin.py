# SPDX-License-Identifier: Apache-2.0

import collections
import gc
import itertools
import uuid

import ddt
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import weights
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import request_state
from nova_ext_sched.filters import anti_affinity
from nova_ext_sched.policy import failure_domain as policy
from nova_ext_sched.queries import group_members
from nova_ext_sched.weighers import round_robin
from tests.unit.filters import base
from tests.unit.request_filters import base as test_base

MEMBERS = [str(uuid.UUID(int=number)) for number in range(40)]
TWO = {'max_server_per_host': '2'}
UNREADABLE = {'max_server_per_host': 'x'}
MULTIPLIER = 'server_group_round_robin_weight_multiplier'


def get_places(ctxt, group, asked, on_fault=None):
    return dict.fromkeys(asked, frozenset([None]))


class RoundRobinTestCase(test_base.RequestFilterTestCase):
    """All members before the server are not claimed; none follow."""

    def setUp(self):
        super().setUp()
        self.weigher = round_robin.ServerGroupRoundRobinWeigher()
        path = 'queries.group_members.get_'
        self.replace(f'{path}places', get_places)
        self.replace(
            f'{path}members',
            lambda *args, **_: group_members.Members(get_places(*args), {}),
        )

    def spec(self, number=0, policy='anti-affinity', hints=None, **group):
        empty = {'hosts': [], '_rules': {}}
        values = {'members': MEMBERS[: number + 1], **empty, **group}
        return objects.RequestSpec(
            instance_uuid=MEMBERS[number],
            scheduler_hints=hints or {},
            instance_group=objects.InstanceGroup(
                uuid=uuids.group, policy=policy, **values
            ),
        )

    def order(self, spec, states, others=()):
        """Return the hosts as nova's handler sorts them, the best first."""
        weighed = weights.HostWeightHandler().get_weighed_objects(
            [*others, self.weigher], list(states), spec
        )
        return [one.obj.host for one in weighed]

    def weights(self, spec, states):
        return self.weigher.weigh_objects(
            [weights.WeighedHost(state, 0.0) for state in states], spec
        )


class OtherWeigher(weights.BaseHostWeigher):
    """Prefers the hosts in the order of their names."""

    def _weigh_object(self, host_state, weight_properties):
        return -int(host_state.host[1:])


@ddt.ddt
class HostsTestCase(RoundRobinTestCase):
    """Anti-affinity alone: the hosts in turn."""

    def setUp(self):
        super().setUp()
        self.anti_affinity = anti_affinity.ServerGroupAntiAffinityFilter()
        self.states = [base.host_state(f'h{number}') for number in range(6)]
        self.circle = self.order(self.spec(0), self.states)

    def hold(self, host, member):
        for state in self.states:
            if state.host == host:
                state.instances[member] = objects.Instance(uuid=member)

    def test_each_member_begins_one_further(self):
        self.assertEqual(base.names(self.states), sorted(self.circle))
        for number in range(18):
            spec = self.spec(number, _rules={'max_server_per_host': '3'})
            best, *_ = self.order(spec, self.states)
            self.assertEqual(self.circle[number % 6], best)

    def test_a_soft_group_prefers_the_hosts_that_hold_fewest(self):
        for number, host in enumerate([*self.circle, self.circle[0]]):
            self.hold(host, MEMBERS[number])
        for number, place in ((7, 1), (8, 2)):
            spec = self.spec(number, 'soft-anti-affinity')
            passed = self.anti_affinity.filter_all(self.states, spec)
            self.assertEqual(6, len(passed))
            self.assertEqual(self.circle[place], self.order(spec, passed)[0])

    @ddt.data('affinity', 'soft-affinity', None)
    def test_other_policies_are_not_concerned(self, policy):
        spec = self.spec(3, policy)
        self.assertEqual([0.0] * 6, self.weights(spec, self.states))
        self.assertIsNone(request_state.of(spec).group.assignment)

    def test_without_a_group(self):
        """Or without members."""
        spec = self.spec()
        for group in (None, objects.InstanceGroup(uuid=uuids.group)):
            spec.instance_group = group
            self.assertEqual([0.0] * 6, self.weights(spec, self.states))
        spec = objects.RequestSpec(instance_uuid=uuids.me)
        self.assertEqual([0.0] * 6, self.weights(spec, self.states))

    def test_a_group_without_a_policy(self):
        spec = self.spec(2)
        group = objects.InstanceGroup(uuid=uuids.group, members=MEMBERS[:3])
        spec.instance_group = group
        self.assertEqual(self.circle[2], self.order(spec, self.states)[0])

    def test_a_request_for_several_servers(self):
        """nova shortens the list from one server to the next."""
        # Members 0 and 3 are of other requests.
        spec = self.spec(4)
        spec.instance_group.hosts = ['elsewhere']
        left, picks = self.states, []
        for number in (1, 2, 4):
            spec.instance_uuid = MEMBERS[number]
            left = self.anti_affinity.filter_all(left, spec)
            (best, *_) = self.order(spec, left)
            picks.append(best)
            self.hold(best, MEMBERS[number])
            spec.instance_group.hosts.append(best)
        self.assertEqual([self.circle[place] for place in (1, 2, 4)], picks)
        # As nova asks for alternates, after the last pick.
        left = self.anti_affinity.filter_all(left, spec)
        self.assertEqual(self.circle[5], self.order(spec, left)[0])
        # The full hosts are kept once each.
        spec.instance_uuid = MEMBERS[3]
        for _ in range(2):
            self.anti_affinity.filter_all(self.states, spec)
        self.assertEqual(3, len(request_state.of(spec).group.refused))

    def test_nodes_of_one_host_share_its_turn(self):
        """ironic: anti-affinity counts by the service's host."""
        nodes = [
            host_manager.HostState(host, node, uuids.cell)
            for host, node in itertools.product(['s1', 's2'], 'abc')
        ]
        first, second = (
            self.order(self.spec(number), nodes) for number in (0, 1)
        )
        self.assertEqual(first[:3], second[3:])
        self.assertNotEqual(first[0], second[0])

    def test_hosts_that_filters_refused_have_their_slots(self):
        """A scheduler that has no news of them would take another host."""
        spec = self.spec(1)
        first, second = self.circle[:2]
        # A member holds it: no member under way is sent there.
        self.hold(first, MEMBERS[0])
        left = self.anti_affinity.filter_all(self.states, spec)
        self.assertNotIn(first, base.names(left))
        self.assertEqual(second, self.order(spec, left)[0])

    def test_each_node_that_was_refused_is_kept(self):
        """What fits on a host is the sum of its nodes."""
        nodes = [
            base.host_state(host, node=node)
            for host, node in (('s1', 'a'), ('s1', 'b'), ('s2', 'a'))
        ]
        for node in nodes:
            node.instances[MEMBERS[0]] = objects.Instance(uuid=MEMBERS[0])
        spec = self.spec(1)
        self.assertEqual([], self.anti_affinity.filter_all(nodes, spec))
        refused = request_state.of(spec).group.refused
        self.assertEqual(nodes, [*refused.values()])

    def test_it_decides_before_the_other_weighers(self):
        others = [OtherWeigher() for _ in range(8)]
        for number in range(6):
            alone = self.order(self.spec(number), self.states)
            found = self.order(self.spec(number), self.states, others)
            self.assertEqual(alone, found)

    def test_turned_off(self):
        self.set(server_group_round_robin_weight_multiplier=0)
        found = self.order(self.spec(3), self.states, [OtherWeigher()])
        self.assertEqual(base.names(self.states), found)

    def test_multiplier_of_an_aggregate(self):
        last = self.order(self.spec(0), self.states)[-1]
        turned_round = base.aggregate('x', **{MULTIPLIER: '-2'})
        for state in self.states:
            if state.host == last:
                state.aggregates = [turned_round]
                self.assertEqual(-2.0, self.weigher.weight_multiplier(state))
            else:
                self.assertEqual(1e5, self.weigher.weight_multiplier(state))

    def test_malformed_multiplier_of_an_aggregate(self):
        for value in ('y', 'nan', 'inf', '-inf', '1e400'):
            state, item = self.states[0], {MULTIPLIER: value}
            state.aggregates = [base.aggregate(value, **item)]
            self.assertEqual(1e5, self.weigher.weight_multiplier(state))
            # nova warns of what is no number.
            said = f'aggregate of {state.host} ({value}): expected a finite '
            said += f'number, got {float(value.replace("y", "nan"))}; the '
            said += 'option counts: 100000.0'
            self.assertEqual(value != 'y', said in self.output.output)

    def test_nothing_is_kept_when_the_request_is_over(self):
        spec = self.spec()
        self.order(spec, self.states)
        self.assertIn(spec, request_state.states)
        before = len(request_state.states)
        del spec
        gc.collect()
        self.assertLess(len(request_state.states), before)


@ddt.ddt
class DomainsTestCase(RoundRobinTestCase):
    """A limit for failure domains: racks of 3, 2 and 1 hosts."""

    SIZES = {'a': 3, 'b': 2, 'c': 1}

    def setUp(self):
        super().setUp()
        self.states = []
        for rack, size in self.SIZES.items():
            aggregate = base.aggregate(rack, failure_domain=rack)
            self.states += [
                base.host_state(f'{rack}{number}', aggregate)
                for number in range(size)
            ]
        self.states.append(base.host_state('loose'))

    def hinted(self, number, limit=2, placed=None, **group):
        """Return a request; the first members stand on some hosts."""
        spec = self.spec(number, hints={policy.LIMIT: [str(limit)]}, **group)
        if placed is not None:
            places = get_places(None, None, MEMBERS[:number])
            for member, host in zip(MEMBERS, placed, strict=False):
                places[member] = frozenset([host])
            group = request_state.of(spec).group
            group.members = group_members.Members(places, {})
            domains = {s.host: frozenset(s.host[0]) for s in self.states}
            hosts = {str(n): [host] for n, host in enumerate(placed)}
            group.spread = policy.Spread(
                *('g', limit, 'failure_domain', hosts, domains)
            )
        return spec

    # How many of the first members prefer each domain.
    @ddt.data(
        # One host of c, and one server on each host.
        (5, {'limit': 2}, {'a': 2, 'b': 2, 'c': 1}),
        # The rule of the group; one that cannot be read is 1.
        (8, {'limit': 3, '_rules': TWO}, {'a': 3, 'b': 3, 'c': 2}),
        (6, {'limit': 9, '_rules': UNREADABLE}, {'a': 3, 'b': 2, 'c': 1}),
        # Other policies have only the limit.
        (6, {'policy': 'affinity'}, {'a': 2, 'b': 2, 'c': 2}),
        (6, {'policy': 'soft-anti-affinity'}, {'a': 2, 'b': 2, 'c': 2}),
    )
    @ddt.unpack
    def test_domains_in_turn_as_far_as_they_have_room(
        self, count, request, expected
    ):
        best = collections.Counter(
            self.order(self.hinted(number, **request), self.states)[0][0]
            for number in range(count)
        )
        self.assertEqual(expected, best)

    def test_option(self):
        self.set(max_server_per_failure_domain=1)
        best = {
            self.order(self.spec(number), self.states)[0][0]
            for number in range(3)
        }
        self.assertEqual({'a', 'b', 'c'}, best)

    def test_a_domain_that_stage_1_forbade(self):
        """Its hosts are not among the candidates."""
        left = [s for s in self.states if not s.host.startswith('a')]
        best = [
            self.order(self.hinted(number, placed=['a0', 'a1']), left)[0][0]
            for number in (2, 3, 4)
        ]
        self.assertEqual({'b': 2, 'c': 1}, collections.Counter(best))

    def test_a_host_without_a_domain_is_the_last(self):
        order = self.order(self.hinted(0), self.states)
        self.assertEqual('loose', order[-1])

    def test_malformed_hint(self):
        spec = self.hinted(0, limit='x')
        self.assertEqual([0.0] * 7, self.weights(spec, self.states))

    def test_key(self):
        self.set(failure_domain_key='availability_zone')
        zone = base.aggregate('zone', availability_zone='z')
        self.states[0].aggregates = [zone]
        self.assertEqual('a0', self.order(self.hinted(4), self.states)[0])


class AllWeighersTestCase(test_base.RequestFilterTestCase):
    def load(self, *lines):
        self.config(group='filter_scheduler', available_filters=lines)
        rooms = ('nova.scheduler.weights', 'nova_ext_sched.weighers')
        return weights.HostWeightHandler().get_matching_classes(
            [f'{room}.all_weighers' for room in rooms]
        )

    def test_nova_loads_it(self):
        classes = self.load('nova_ext_sched.filters.all_filters')
        self.assertIs(round_robin.ServerGroupRoundRobinWeigher, classes[-1])
        self.assertGreater(len(classes), 5)
        self.assertEqual('', self.output.output)

    def test_without_our_filters(self):
        self.load('nova.scheduler.filters.all_filters')
        self.assertIn('Add the line.', self.output.output)
