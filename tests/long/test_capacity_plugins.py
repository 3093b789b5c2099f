# SPDX-License-Identifier: Apache-2.0

"""capacity under filters and policies of other packages."""

import importlib

from tests import distributions
from tests.functional import capacity

# Its answer depends on the host's name and on how many servers it holds, so
# hosts that are alike in all else take another number.
UNEVEN = """
from nova.scheduler import filters
LIMITS = {'host1': 0, 'host3': 1}
class UnevenFilter(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        limit = LIMITS.get(host_state.host, 99)
        return host_state.num_instances < limit
"""


def install(test):
    """Install the packages, before the services of a test start."""
    packages = test.useFixture(distributions.Distributions())
    for package in ('third_party', 'quiet'):
        packages.install(package)
    packages.declare(
        'uneven',
        'nova_ext_sched.host_filters',
        ['UnevenFilter = uneven:UnevenFilter'],
        UNEVEN,
    )
    importlib.import_module('quiet_sched')
    test.flags(enabled=True, group='quiet')


OPTIONS = {'request_filters': ['third_party', 'quiet_aggregates']}


class PluginsTestCase(capacity.CapacityTestCase):
    host_filters = ('QuietAggregatesFilter',)
    options = OPTIONS

    def setUp(self):
        install(self)
        super().setUp()
        # third_party forbids it.
        self._create_trait('CUSTOM_THIRD_PARTY')

    def test_a_request_filter_and_a_policy(self):
        # Let the request filter of third_party refuse a host.
        self.add_traits('host2', 'CUSTOM_THIRD_PARTY')
        self.aggregate('library', ['host1'], quiet='true')
        answer = self.assertCapacity(2)
        self.assertEqual(
            {'are quiet': 1, 'have the forbidden trait CUSTOM_THIRD_PARTY': 1},
            answer.refused,
        )
        self.assertCapacity(2, specs={'quiet': 'true'})


class HostFiltersTestCase(capacity.CapacityTestCase):
    """A filter that judges each host by itself."""

    host_filters = ('QuietAggregatesFilter', 'UnevenFilter')
    options = OPTIONS

    def setUp(self):
        install(self)
        super().setUp()
        self._create_trait('CUSTOM_THIRD_PARTY')

    def test_hosts_that_are_alike(self):
        answer = self.capacity('--flavor', self.large())
        self.assertEqual({'VCPU': 1, 'UnevenFilter': 1}, answer.ends)
        self.assertEqual({'host2': 2, 'host3': 1}, answer.rooms)
        # Beside a policy.
        self.aggregate('library', ['host2'], quiet='true')
        answer = self.assertCapacity(1)
        self.assertEqual({'UnevenFilter': 1}, answer.ends)
        self.assertEqual(
            {'are quiet': 1, 'are refused by UnevenFilter': 1}, answer.refused
        )
