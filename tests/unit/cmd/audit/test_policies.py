# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.audit import command
from nova_ext_sched.cmd.audit import policies
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.policy import verdict

CONF = nova.conf.CONF
objects.register_all()

ISOLATED = 'IsolatedAggregatesFilter'


@ddt.ddt
class PoliciesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config

    def enabled(self, filters, names=(), **options):
        self.config(group='filter_scheduler', enabled_filters=list(filters))
        options = {'request_filters': [], **options}
        self.config(group='nova_ext_sched', **options)
        return [policy.name for policy in policies.enabled(names)]

    def test_names_that_the_command_takes(self):
        self.assertEqual(
            command.POLICIES, tuple(policy.name for policy in policies.ALL)
        )

    def test_nothing_is_on(self):
        self.assertEqual([], self.enabled([ISOLATED]))

    # By option, request filter, host filter.
    @ddt.data(
        (True, True, True, True),
        (True, True, False, True),
        (True, False, True, True),
        (True, False, False, False),
        (False, True, True, False),
    )
    @ddt.unpack
    def test_isolation(self, option, request_filter, host_filter, expected):
        found = self.enabled(
            [ISOLATED] if host_filter else [],
            enable_isolated_aggregate_filtering=option,
            request_filters=['isolate_aggregates'] if request_filter else [],
        )
        self.assertEqual(['isolation'] if expected else [], found)

    @ddt.data(
        (['a:'], [], True, True, True),
        ([], ['a:'], True, True, True),
        (['a:'], ['a:'], True, False, True),
        (['a:'], ['a:'], False, True, True),
        (['a:'], ['a:'], False, False, False),
        ([], [], True, True, False),
    )
    @ddt.unpack
    def test_reservation(
        self, required, forbidden, request_filter, host_filter, expected
    ):
        found = self.enabled(
            [ISOLATED] if host_filter else [],
            placement_req_required_member_prefix=required,
            placement_req_default_forbidden_member_prefix=forbidden,
            request_filters=['reserved_aggregates'] if request_filter else [],
        )
        self.assertEqual(['reservation'] if expected else [], found)

    def test_failure_domain(self):
        found = self.enabled([], request_filters=['failure_domains'])
        self.assertEqual(['failure-domain'], found)

    @ddt.data(
        (['BlazarFilter'], [], ['blazar']),
        (['BlazarFilter'], ['blazar_reservations'], ['blazar']),
        ([], ['blazar_reservations'], []),
    )
    @ddt.unpack
    def test_blazar(self, filters, request_filters, expected):
        self.assertEqual(
            expected, self.enabled(filters, request_filters=request_filters)
        )

    def test_by_host_filter(self):
        self.assertEqual(
            ['aggregate-instance-type', 'anti-affinity', 'failure-domain'],
            self.enabled(
                [
                    'FailureDomainFilter',
                    'ServerGroupAntiAffinityFilter',
                    'AggregateInstanceTypeFilter',
                ]
            ),
        )

    def test_narrowed(self):
        both = ['ServerGroupAntiAffinityFilter', 'AggregateInstanceTypeFilter']
        self.assertEqual(
            ['anti-affinity'],
            self.enabled(both, ['anti-affinity', 'isolation']),
        )


class FailureDomainTestCase(testtools.TestCase):
    """Where the members of a group stand, the judged server left out."""

    def setUp(self):
        super().setUp()
        conf.register_opts(CONF)
        self.useFixture(config_fixture.Config(CONF))
        self.hosts = {}

    def aggregates_of(self, host):
        return [types.SimpleNamespace(metadata={'failure_domain': host[0]})]

    def judge(self, host, limit=2, hints=None):
        hint = {'max_server_per_failure_domain': [str(limit)]}
        spec = objects.RequestSpec(scheduler_hints=hints or hint)
        spec.instance_group = objects.InstanceGroup(
            uuid=uuids.group,
            policy='anti-affinity',
            members=[uuids.one, uuids.two, uuids.three],
        )
        server = servers.Server(
            uuids.one,
            'name',
            'project',
            types.SimpleNamespace(aggregates=self.aggregates_of(host)),
            spec,
        )
        scheduler = mock.Mock(aggregates_of=self.aggregates_of)
        policy = policies.FailureDomain('ctxt', scheduler)
        with mock.patch.object(
            policies.group_members, 'get_hosts', return_value=self.hosts
        ) as self.get_hosts:
            return policy.judge(server)

    def test_others_in_the_domain(self):
        self.hosts = {uuids.two: {'a1'}, uuids.three: {'a2', 'b1'}}
        passes, reason = self.judge('a1')
        self.assertFalse(passes)
        self.assertEqual(
            f'not counting this server, failure domain a holds 2 servers of '
            f'server group {uuids.group} and the limit is 2',
            reason,
        )
        self.get_hosts.assert_called_once_with(
            'ctxt', {uuids.two, uuids.three}
        )
        self.assertTrue(self.judge('b1').passes)
        self.assertTrue(self.judge('a1', limit=3).passes)

    def test_nothing_is_asked(self):
        self.assertTrue(self.judge('a1', hints={'x': ['y']}).passes)
        self.get_hosts.assert_not_called()

    def test_malformed_hint(self):
        passes, reason = self.judge('a1', limit='many')
        self.assertFalse(passes)
        self.assertIn('expected one value, an integer, 1 or more', reason)


class JudgeTestCase(testtools.TestCase):
    """What the host filter says of the host, in the audit's words."""

    def judge(self, policy, judge):
        made = policy('ctxt', 'scheduler')
        server = mock.Mock()
        with mock.patch.object(made, '_filter') as host_filter:
            host_filter.judge.return_value = judge
            found = made.judge(server)
        host_filter.judge.assert_called_once_with(server.request_spec)
        if judge is not None:
            judge.assert_called_once_with(server.host_state)
        return found

    def test_nothing_is_asked(self):
        for policy in (policies.AntiAffinity, policies.AggregateInstanceType):
            self.assertEqual(verdict.PASS, self.judge(policy, None))

    def test_verdict(self):
        no = mock.Mock(return_value=verdict.reject('too many'))
        self.assertEqual(
            (False, 'not counting this server, too many'),
            self.judge(policies.AntiAffinity, no),
        )
        no = mock.Mock(return_value=verdict.reject('no match'))
        self.assertEqual(
            (False, 'no match'),
            self.judge(policies.AggregateInstanceType, no),
        )
        yes = mock.Mock(return_value=verdict.PASS)
        self.assertTrue(self.judge(policies.AntiAffinity, yes).passes)

    def test_halves_of_one_host_filter(self):
        """Isolation and reservation are two policies and one filter."""
        for policy, half in (
            (policies.Isolation, 'compile_isolation'),
            (policies.Reservation, 'compile_reservation'),
        ):
            made = policy('ctxt', 'scheduler')
            aggregate = objects.Aggregate(name='rack1', metadata={'k': 'v'})
            server = mock.Mock()
            server.host_state.aggregates = [aggregate]
            with mock.patch.object(made, '_filter') as host_filter:
                decide = getattr(host_filter, half).return_value
                self.assertIs(decide.return_value, made.judge(server))
            getattr(host_filter, half).assert_called_once_with(
                server.request_spec
            )
            [names] = decide.call_args.args
            self.assertEqual([('rack1', {'k': 'v'})], list(names))
