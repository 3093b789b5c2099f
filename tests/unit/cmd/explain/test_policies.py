# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from nova.scheduler import filters
from nova.scheduler import request_filter
import testtools

from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.filters import base
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation
from nova_ext_sched.request_filters import isolation as isolation_request

QUIET = declaration.Policy(
    name='quiet', refuses='are quiet', request_filter='quiet_aggregates'
)


class QuietFilter(filters.BaseHostFilter):
    policies = (QUIET,)


class OtherFilter(filters.BaseHostFilter):
    pass


def function(name, **attributes):
    return types.SimpleNamespace(__name__=name, **attributes)


@ddt.ddt
class PoliciesTestCase(testtools.TestCase):
    @ddt.data(
        (isolation_request.isolate_aggregates, isolation.DECLARATION),
        # nova's of the same name is the same policy.
        (request_filter.isolate_aggregates, isolation.DECLARATION),
        (request_filter.require_tenant_aggregate, policies.TENANT),
        (
            request_filter.map_az_to_placement_aggregate,
            policies.AVAILABILITY_ZONE,
        ),
        (request_filter.compute_status_filter, policies.DISABLED),
        # By the declaration of the host filter, or its own.
        (function('quiet_aggregates'), QUIET),
        (function('other_name', policies=(QUIET,)), QUIET),
        (function('accelerators_filter'), None),
    )
    @ddt.unpack
    def test_request_filter(self, filter_, expected):
        classes = [isolation_filter.IsolatedAggregatesFilter, QuietFilter]
        self.assertIs(expected, policies.of_request_filter(filter_, classes))

    def test_host_filter(self):
        find = policies.of_host_filter
        self.assertIs(QUIET, find(QuietFilter()))
        self.assertIs(
            isolation.DECLARATION,
            find(isolation_filter.IsolatedAggregatesFilter()),
        )
        self.assertEqual(
            (isolation.DECLARATION, reservation.DECLARATION),
            base.policies_of(isolation_filter.IsolatedAggregatesFilter()),
        )
        self.assertEqual('OtherFilter', find(OtherFilter()).name)

    def test_novas_filters_exist(self):
        """A name that nova no longer has would explain nothing."""
        classes = filters.HostFilterHandler().get_matching_classes(
            ['nova.scheduler.filters.all_filters']
        )
        names = {cls.__name__ for cls in classes}
        for policy in policies.NOVA:
            self.assertTrue(hasattr(request_filter, policy.request_filter))
            if policy.host_filter:
                self.assertIn(policy.host_filter, names)
