# SPDX-License-Identifier: Apache-2.0

import logging
from unittest import mock

import ddt
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import request_state
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import group_members
from nova_ext_sched.request_filters import failure_domain
from tests.unit.request_filters import base

DIFFERENT = {'different_failure_domain': ['true']}
HOST_FILTER = 'FailureDomainFilter'


@ddt.ddt
class FailureDomainsTestCase(base.RequestFilterTestCase):
    """The selects are replaced; other tests run them."""

    # Hosts, each with the domains of one of its aggregates, which is named
    # after the value.
    RACKS = (
        *(('a1', 'a'), ('a2', 'a'), ('b1', 'b'), ('bc', 'b, c')),
        *(('ab', 'a'), ('ab', 'b')),
    )

    level = logging.DEBUG

    def setUp(self):
        super().setUp()
        self.enable(HOST_FILTER)
        self.hosts = {}
        self.asked = []
        self.replace('queries.aggregates.get_values', self.get_values)
        self.replace('queries.group_members.get_members', self.get_members)

    def get_members(self, ctxt, group, members):
        self.asked.append(set(members))
        places = {
            uuid: frozenset([host])
            for uuid, host in self.hosts.items()
            if uuid in members
        }
        return group_members.Members(places, {})

    def get_values(self, ctxt, key, hosts):
        self.asked.append(hosts)
        return [
            aggregates.HostValue(
                *(f'u-{value}', f'rack {value}', value),
                host if host in hosts else None,
            )
            for host, value in self.RACKS
        ]

    def spec(self, hints=DIFFERENT, policy='anti-affinity', **fields):
        group = base.group(uuids.me, *self.hosts, policy=policy)
        return base.request_spec(
            scheduler_hints=hints,
            instance_uuid=uuids.me,
            **{'instance_group': group, **fields},
        )

    def filter(self, spec):
        applied = failure_domain.failure_domains(self.ctxt, spec)
        _, forbidden = base.destination_of(spec) or (None, None)
        return applied, set(forbidden or ())

    @ddt.data(
        ([], set()),
        (['a1'], {'u-a'}),
        (['b1'], {'u-b', 'u-b, c'}),
        (['bc'], {'u-b', 'u-b, c'}),
        (['ab'], {'u-a', 'u-b', 'u-b, c'}),
        (['loose', 'a1'], {'u-a'}),
    )
    @ddt.unpack
    def test_full_domains_are_forbidden(self, on, expected):
        self.hosts = {f'm{i}': host for i, host in enumerate(on)}
        self.assertEqual((True, expected), self.filter(self.spec()))

    def test_limit_of_the_option(self):
        self.set(max_server_per_failure_domain=2, failure_domain_key='rack')
        self.hosts = {'m1': 'a1', 'm2': 'a2', 'm3': 'b1'}
        self.assertEqual((True, {'u-a'}), self.filter(self.spec({})))
        spec = self.spec({}, 'soft-anti-affinity')
        self.assertEqual((False, set()), self.filter(spec))

    @ddt.data(
        {'instance_group': None},
        {'hints': {}},
        {'hints': None},
        {'hints': {'different_failure_domain': ['no']}},
        {'instance_group': None, 'hints': {'different_failure_domain': ['x']}},
    )
    def test_nothing_is_asked(self, fields):
        self.assertEqual((False, set()), self.filter(self.spec(**fields)))
        self.assertEqual([], self.asked)

    def test_the_server_itself_does_not_count(self):
        self.hosts = {uuids.me: 'a1'}
        self.assertEqual((True, set()), self.filter(self.spec()))
        # Alone: no select of aggregates.
        self.assertEqual([set()], self.asked)

    def test_a_hint_in_another_form(self):
        spec = self.spec(hints={'max_server_per_failure_domain': ['0\n']})
        error = self.assertFails(self.filter, spec)
        self.assertIn('scheduler hint max_server_per_failure', error)
        self.assertNotIn('\n', error)
        self.assertEqual([], self.asked)

    @ddt.data(
        ('group_members.get_members', {}),
        ('aggregates.get_values', {'m': 'a1'}),
    )
    @ddt.unpack
    def test_fails_closed(self, name, hosts):
        self.hosts = hosts
        ask = mock.Mock(side_effect=ConnectionError('away'))
        self.replace(f'queries.{name}', ask)
        self.assertFails(self.filter, self.spec())
        self.assertIn('away', self.output.output)

    def test_a_group_whose_members_are_not_known(self):
        group = objects.InstanceGroup(uuid=uuids.group, policy='affinity')
        self.assertFails(self.filter, self.spec(instance_group=group))

    def test_a_spec_that_is_filtered_again_is_counted_again(self):
        self.hosts = {'m1': 'a1'}
        spec = self.spec()
        self.filter(spec)
        first = request_state.of(spec).group.spread
        self.assertEqual({'a': 1}, first.held)
        self.filter(spec)
        self.assertIsNot(first, request_state.of(spec).group.spread)
        spec.scheduler_hints = {}
        self.filter(spec)
        self.assertIsNone(request_state.of(spec).group.spread)

    def test_more_under_way_than_placement_is_asked_about(self):
        most = group_members.MOST_UNCLAIMED
        for count in (most, most + 1):
            self.hosts = dict.fromkeys(map(str, range(count)))
            self.assertEqual('', self.output.output.partition('More than')[1])
            self.filter(self.spec())
        self.assertIn('More than 50 servers of one', self.output.output)

    def test_a_spec_that_is_filtered_again_is_assigned_again(self):
        spec = self.spec()
        state = request_state.of(spec)
        state.image_keys = {'k'}
        state.group.refused, state.group.assignment = {'h': 1}, 'assignment'
        left_out = request_state.LeftOut({'h': 'a'})
        state.left_out = {'isolation': left_out}
        self.filter(spec)
        state = request_state.of(spec)
        self.assertEqual({}, state.group.refused)
        self.assertIsNone(state.group.assignment)
        # They are no matter of the group.
        self.assertEqual({'k'}, state.image_keys)
        self.assertEqual({'isolation': left_out}, state.left_out)

    def test_the_bound(self):
        self.set(max_forbidden_aggregates=1)
        hosts = {'u-a': ['a1', 'a2'], 'u-b': ['b1', 'b2', 'b3']}
        self.replace('queries.aggregates.get_hosts', lambda _: hosts)
        self.hosts = {'m1': 'a1', 'm2': 'b1'}
        spec = self.spec()
        self.assertEqual((True, {'u-b'}), self.filter(spec))
        self.assertIn(
            'FailureDomainFilter checks the hosts', self.output.output
        )
        found = request_state.of(spec).left_out['failure-domain'].forbidden
        self.assertEqual({'a1': 'rack a', 'a2': 'rack a'}, found)

    def test_log(self):
        self.hosts = {'m1': 'a1', 'm2': 'b1', 'm3': 'loose'}
        self.filter(self.spec())
        self.filter(self.spec())
        self.assertIn(
            'failure_domains: the limit of server group '
            f'{uuids.group} is 1 in each failure domain. Its servers by '
            'domain: a: 1, b: 1',
            self.output.output,
        )
        self.assertEqual(1, self.output.output.count('and do not count'))
        self.assertNotIn('Add FailureDomainFilter', self.output.output)

    def test_warns_where_nobody_judges(self):
        self.enable()
        self.filter(self.spec())
        self.filter(self.spec())
        self.assertEqual(
            1, self.output.output.count('Add FailureDomainFilter')
        )

    @ddt.data(
        # option, policy, members, warned
        (1, 'anti-affinity', ['a1', 'a2'], True),
        (1, 'anti-affinity', ['a1', 'b1'], False),
        (2, 'anti-affinity', ['a1', 'a2'], False),
        # A hint is for its own server: others may stand closer.
        (0, 'anti-affinity', ['a1', 'a2'], False),
        (1, 'affinity', ['a1', 'a2'], False),
    )
    @ddt.unpack
    def test_warns_of_a_race_that_was_lost(self, option, policy, on, warned):
        self.set(max_server_per_failure_domain=option)
        self.hosts = {f'm{number}': host for number, host in enumerate(on)}
        for _ in range(2):
            self.filter(self.spec(policy=policy))
        found = self.output.output.count(
            f'Failure domains hold more servers of server group '
            f'{uuids.group} than max_server_per_failure_domain ({option}) '
            f'allows: a: 2.'
        )
        self.assertEqual(int(warned), found)
