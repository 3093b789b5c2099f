# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import request_state
from nova_ext_sched.filters import failure_domain
from nova_ext_sched.policy import failure_domain as policy
from tests.unit.filters import base
from tests.unit.request_filters import base as test_base

KEY = 'failure_domain'


@ddt.ddt
class FailureDomainFilterTestCase(test_base.RequestFilterTestCase):
    level = logging.DEBUG

    def setUp(self):
        super().setUp()
        self.filter = failure_domain.FailureDomainFilter()
        a, b = (base.aggregate(name, failure_domain=name) for name in 'ab')
        comma = base.aggregate('comma', failure_domain='b, c')
        empty = base.aggregate('empty', failure_domain=' ,')
        unset = base.aggregate('unset')
        sets = {'a1': [a], 'a2': [a, unset], 'b1': [b], 'ab': [a, b]}
        sets |= {'comma': [comma], 'empty': [empty], 'unset': [unset]}
        sets['loose'] = []
        self.hosts = [
            base.host_state(one, *mine) for one, mine in sets.items()
        ]

    def spec(self, limit=1, counted=True, hints=None, **held):
        if hints is None:
            hints = {policy.LIMIT: [str(limit)]}
        group = objects.InstanceGroup(
            uuid=uuids.group, policy='anti-affinity', members=[]
        )
        # Where members stood before: stage 1 counted them.
        group.hosts = ['elsewhere', 'b1']
        spec = objects.RequestSpec(
            instance_uuid=uuids.me, scheduler_hints=hints, instance_group=group
        )
        if counted:
            spread = policy.Spread('g', limit, KEY, {}, {})
            spread.held.update(held)
            request_state.of(spec).group.spread = spread
        return spec

    def passing(self, spec, hosts=None):
        hosts = self.hosts if hosts is None else hosts
        return base.names(self.filter.filter_all(iter(hosts), spec))

    @ddt.data((['1'], False), (['x'], True))
    @ddt.unpack
    def test_who_asks_where_nothing_was_counted(self, limit, by_hint):
        """A hint that cannot be read is a member's; the rest is not."""
        spec = self.spec(counted=False, hints={policy.LIMIT: limit})
        ((_, judge),) = self.filter.decisions(spec)
        found = judge(self.hosts[0])
        self.assertEqual((False, by_hint), (found.passes, found.by_hint))

    @ddt.data(
        (1, {'a': 1}, ['b1', 'comma']),
        (2, {'a': 1}, ['a1', 'a2', 'b1', 'ab', 'comma']),
        (1, {'b': 1}, ['a1', 'a2']),
        (1, {'c': 1}, ['a1', 'a2', 'b1', 'ab']),
    )
    @ddt.unpack
    def test_judge(self, limit, held, expected):
        spec = self.spec(limit, **held)
        self.assertEqual(expected, self.passing(spec))
        alone = [s for s in self.hosts if self.filter.host_passes(s, spec)]
        self.assertEqual(expected, base.names(alone))

    def test_what_stage_1_left_out(self):
        spec = self.spec(2, a=1)
        left_out = request_state.LeftOut({'a1': 'a'})
        request_state.of(spec).left_out['failure-domain'] = left_out
        self.assertEqual(['a2', 'b1', 'ab', 'comma'], self.passing(spec))

    def test_nothing_is_asked(self):
        everyone = base.names(self.hosts)
        spec = self.spec(counted=False, hints={})
        self.assertEqual(everyone, self.passing(spec))
        spec = self.spec(counted=False)
        spec.instance_group = None
        self.assertEqual(everyone, self.passing(spec))

    def test_rebuild(self):
        """One that is none is refused, and the reason is no option."""
        hints = {**base.HINT, policy.LIMIT: ['1']}
        spec = self.spec(counted=False, hints=hints)
        self.assertEqual([], self.passing(spec))
        logged = self.output.output
        self.assertIn('because the server has the scheduler', logged)
        self.assertNotIn('[nova_ext_sched]', logged)
        spec.force_hosts, spec.force_nodes = ['a1'], ['a1']
        everyone = base.names(self.hosts)
        self.assertEqual(everyone, self.passing(spec))

    def test_where_nobody_counted_nobody_passes(self):
        for _ in range(2):
            self.assertEqual([], self.passing(self.spec(counted=False)))
        logged = self.output.output
        self.assertEqual(1, logged.count('[nova_ext_sched] request_filters'))

    def test_the_picks_of_a_request_count(self):
        spec = self.spec(2, b=1)
        self.assertIn('b1', self.passing(spec))
        spec.instance_group.hosts.append('a1')
        # Other filters left few of the first hosts.
        left = self.hosts[1:4]
        self.assertEqual(['a2', 'b1', 'ab'], self.passing(spec, left))
        spec.instance_group.hosts.append('ab')
        self.assertEqual([], self.passing(spec, left))
        # A caller that asked one by one: the first list still has every host.
        spec = self.spec(1)
        self.passing(spec)
        self.assertTrue(self.filter.host_passes(self.hosts[2], spec))
        spec.instance_group.hosts.append('a1')
        self.assertEqual(['b1', 'comma'], self.passing(spec))
        # Asked again for alternates: nothing counts twice.
        spec = self.spec(2)
        self.passing(spec)
        spec.instance_group.hosts.append('a1')
        for _ in range(3):
            self.assertIn('a2', self.passing(spec))

    def test_the_first_pick_of_a_group_without_a_host(self):
        for before in ([], None):
            spec = self.spec(1)
            spec.instance_group.hosts = before
            self.assertIn('a2', self.passing(spec))
            spec.instance_group.hosts = ['a1']
            self.assertEqual(['b1', 'comma'], self.passing(spec))

    def test_a_pick_with_several_nodes(self):
        """ironic: nova appends the host, and another host has that name."""
        a, b = (self.hosts[place].aggregates for place in (0, 2))
        nodes = [
            base.host_state('s1', *a, node='n1'),
            base.host_state('s1', *a, node='n2'),
            base.host_state('s2', *b, node='s1'),
        ]
        spec = self.spec(1)
        self.assertEqual(['s1', 's1', 's2'], self.passing(spec, nodes))
        spec.instance_group.hosts.append('s1')
        self.assertEqual(['s2'], self.passing(spec, nodes))
        # One server, whatever the number of nodes.
        spec = self.spec(2)
        self.passing(spec, nodes)
        spec.instance_group.hosts.append('s1')
        self.assertEqual(['s1', 's1', 's2'], self.passing(spec, nodes))
