# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.audit import command
from nova_ext_sched.cmd.audit import policies

CONF = nova.conf.CONF

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
