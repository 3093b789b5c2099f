# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
from nova import objects
import nova.conf
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import compute_filter
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.filters import aggregate_instance_type
from nova_ext_sched.filters import anti_affinity
from nova_ext_sched.filters import base
from nova_ext_sched.filters import blazar
from nova_ext_sched.filters import failover
from nova_ext_sched.filters import failure_domain
from nova_ext_sched.filters import isolation
from nova_ext_sched.policy import declaration
from nova_ext_sched.queries import sources
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

CONF = nova.conf.CONF
objects.register_all()

ISOLATED = 'IsolatedAggregatesFilter'

QUIET = declaration.Policy(
    name='quiet', refuses='are quiet', host_filter='QuietFilter'
)


class QuietFilter(nova_filters.BaseHostFilter):
    """Another package's, on nothing but nova's base."""

    policies = (QUIET,)

    def host_passes(self, host_state, filter_properties):
        return host_state.host != 'quiet'


class UndeclaredFilter(nova_filters.BaseHostFilter):
    """It declares no policy."""


CLASSES = (
    aggregate_instance_type.AggregateInstanceTypeFilter,
    anti_affinity.ServerGroupAntiAffinityFilter,
    blazar.BlazarFilter,
    failure_domain.FailureDomainFilter,
    failover.FailoverHostsFilter,
    isolation.IsolatedAggregatesFilter,
    QuietFilter,
    UndeclaredFilter,
)


class PoliciesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config

    def make(self, filters, names=(), classes=CLASSES, **options):
        self.config(group='filter_scheduler', enabled_filters=list(filters))
        options = {'request_filters': [], **options}
        self.config(group='nova_ext_sched', **options)
        cloud = mock.Mock(
            filter_cls_map={cls.__name__: cls for cls in classes},
            filter_obj_map={},
            aggregates_copy=change.copy_aggregates(()),
            supposed=None,
        )
        self.cloud = cloud
        with mock.patch.object(policies.process, 'context'):
            return policies.Policies(cloud, names)

    def judge(self, judging, state, **fields):
        spec = test_base.request_spec(**fields)
        server = policies.Standing(uuids.one, 'name', 'project', state, spec)
        return list(judging.judge(server))


@ddt.ddt
class NamesTestCase(PoliciesTestCase):
    def test_order_of_the_scheduler(self):
        found = self.make(
            ['QuietFilter', 'ServerGroupAntiAffinityFilter', ISOLATED],
            enable_isolated_aggregate_filtering=True,
            request_filters=['failure_domains'],
        )
        names = ['quiet', 'anti-affinity', 'isolation', 'failure-domain']
        self.assertEqual(names, found.names)

    def test_nova_without_this_package(self):
        """Its options have their defaults, and none of its lines is there."""
        found = self.make(
            ['ComputeFilter'],
            classes=[compute_filter.ComputeFilter],
            request_filters=CONF.nova_ext_sched.request_filters,
        )
        self.assertIn('failure_domains', CONF.nova_ext_sched.request_filters)
        self.assertEqual([], found.names)

    @ddt.data(
        # Its option is off.
        ([ISOLATED], [], []),
        (['UndeclaredFilter'], [], []),
        (['ServerGroupAntiAffinityFilter', 'QuietFilter'], ['quiet'],
         ['quiet']),
    )  # fmt: skip
    @ddt.unpack
    def test_names(self, enabled, wanted, expected):
        self.assertEqual(expected, self.make(enabled, wanted).names)

    @ddt.data(('isolation', ''), ('quite', ' Did you mean quiet?'))
    @ddt.unpack
    def test_what_is_off_or_unknown(self, name, more):
        asked = self.make, ['QuietFilter'], [name]
        error = self.assertRaises(exception.UnknownName, *asked)
        self.assertEqual(
            f'There is no enabled policy {name} (enabled: quiet; --option '
            f'judges as if another were).{more}',
            str(error),
        )


@ddt.ddt
class JudgeTestCase(PoliciesTestCase):
    def test_another_packages_policy(self):
        judging = self.make(['QuietFilter'])
        for host, expected in (
            ('quiet', [('quiet', 'QuietFilter refuses it')]),
            ('loud', []),
        ):
            found = self.judge(judging, types.SimpleNamespace(host=host))
            self.assertEqual(expected, found)

    def test_two_policies_of_one_filter(self):
        """A host that is isolated and reserved violates both."""
        metadata = {'trait:X': 'required', 'r:a': ''}
        aggregate = objects.Aggregate(name='rack1', metadata=metadata)
        state = filters_base.host_state('host1', aggregate)
        options = {
            'enable_isolated_aggregate_filtering': True,
            'placement_req_default_forbidden_member_prefix': ['r:'],
        }
        judging = self.make([ISOLATED], **options)
        [first, second] = self.judge(judging, state)
        self.assertEqual(['isolation', 'reservation'], [first[0], second[0]])
        self.assertIn('not allowed in rack1', first[1])
        self.assertIn('aggregate rack1 is reserved', second[1])
        judging = self.make([ISOLATED], ['reservation'], **options)
        self.assertEqual([second], self.judge(judging, state))

    def test_a_policy_that_fails(self):
        judging = self.make(['QuietFilter'])
        [(name, reason)] = self.judge(judging, None)
        self.assertEqual('not-judged', name)
        said = 'QuietFilter fails: AttributeError: '
        self.assertEqual(said, reason[: len(said)])

    @ddt.data(False, True)
    def test_a_server_that_is_to_leave(self, leaving):
        metadata = {'failover': 'true'}
        spare = objects.Aggregate(name='spare', metadata=metadata, hosts=['h'])
        judging = self.make(
            ['FailoverHostsFilter'], enable_failover_hosts=True
        )
        self.cloud.aggs_by_id = {1: spare}
        self.assertEqual({'h'}, judging.held)
        with mock.patch(
            'nova_ext_sched.queries.failover.judge_standing',
            lambda ctxt, spec, host, no: no._replace(is_leaving=leaving),
        ):
            found = self.judge(judging, filters_base.host_state('h', spare))
        name = 'failover' + '-to-leave' * leaving
        self.assertEqual([name], [policy for policy, _ in found])
        self.assertFalse(judging.counts_group(name))
        named = self.make(
            ['FailoverHostsFilter'], [name], enable_failover_hosts=True
        )
        self.assertEqual(['failover'], named.names)
        self.assertEqual(frozenset(), self.make(['QuietFilter']).held)

    def test_a_server_that_cannot_be_judged(self):
        server = policies.Standing('uuid', '', 'p', None, None, 'no spec')
        found = [*self.make(['QuietFilter']).judge(server)]
        self.assertEqual([('not-judged', 'no spec')], found)

    def test_nothing_is_asked(self):
        judging = self.make(['FailureDomainFilter'])
        found = self.judge(judging, filters_base.host_state('a1'))
        self.assertEqual([], found)

    @ddt.data(False, True)
    def test_who_reads_aggregates_and_places(self, forks):
        """In a fork that is the fork."""
        seen = []

        class QuietFilter(base.PolicyFilter):
            policies = (QUIET,)

            def prepare(self, ctxt, spec_obj):
                seen.append(sources.current)

            def decisions(self, spec_obj):
                return ()

        judging = self.make(['QuietFilter'], classes=[QuietFilter])
        before = sources.current
        self.cloud.open_fork = mock.sentinel.fork if forks else None
        self.judge(judging, filters_base.host_state('a1'))
        self.assertEqual([forks], [one is before for one in seen])
        self.assertIs(before, sources.current)
