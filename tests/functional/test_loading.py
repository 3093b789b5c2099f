# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler loads the package, or does not start."""

import json
import re
import subprocess
import sys
import textwrap

import nova.conf
from nova.scheduler import host_manager
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler.filters import affinity_filter
from nova.tests.functional import integrated_helpers
from oslotest import base as test_base

from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.request_filters import blazar as blazar_request_filter
from nova_ext_sched.request_filters import failover as failover_request_filter
from nova_ext_sched.request_filters import (
    failure_domain as failure_domain_request_filter,
)
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from nova_ext_sched.request_filters import (
    reservation as reservation_request_filter,
)
from tests import distributions
from tests import documentation
from tests import samples
from tests.functional import base
from tests.functional import explain

CONF = nova.conf.CONF

HOST_FILTERS = 'nova_ext_sched.host_filters'
REQUEST_FILTERS = 'nova_ext_sched.request_filters'

NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'nova_ext_sched.filters.all_filters'

# A scheduler's process, before it asks for the filters of others: nova itself
# imports openstack and, through its clients, cliff where it is installed.
LOAD = """
import json, sys
from nova import config
from nova.scheduler import manager
config.parse_args(['nova-scheduler'], [], configure_db=False, init_rpc=False)
before = set(sys.modules)
from nova_ext_sched import filters
filters.all_filters()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

FOREIGN_LIBRARIES = set(
    'cliff jsonschema openstack osc_lib oslo_upgradecheck pbr rich '
    'yaml'.split()
)
OTHER_ROOMS = tuple(
    f'nova_ext_sched.{room}'
    for room in ('cmd', 'objects', 'osc', 'placement', 'validators')
)


class StartTestCase(base.CloudTestCase):
    """A scheduler that starts with the package."""

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def test_filters_are_in_place(self):
        manager = self.scheduler_service.manager.host_manager
        self.assertIs(
            isolation_filter.IsolatedAggregatesFilter,
            manager.filter_cls_map['IsolatedAggregatesFilter'],
        )
        self.assertIn(
            'IsolatedAggregatesFilter',
            [type(f).__name__ for f in manager.enabled_filters],
        )
        # nova's own stay.
        self.assertIn('ComputeFilter', manager.filter_cls_map)
        self.assertEqual(
            [
                isolation_request_filter.isolate_aggregates,
                reservation_request_filter.reserved_aggregates,
                failure_domain_request_filter.failure_domains,
                blazar_request_filter.blazar_reservations,
                failover_request_filter.failover_hosts,
            ],
            nova_request_filter.ALL_REQUEST_FILTERS[-5:],
        )

        # One line tells what is active; a second manager tells nothing again.
        before = list(nova_request_filter.ALL_REQUEST_FILTERS)
        host_manager.HostManager()
        self.assertEqual(before, nova_request_filter.ALL_REQUEST_FILTERS)
        (line,) = [
            line
            for line in self.stdlog.logger.output.splitlines()
            if 'nova-ext-sched is loaded' in line
        ]
        self.assertIn('INFO', line)
        self.assertIn(
            'Policies that are on: anti-affinity '
            '(ServerGroupAntiAffinityFilter), isolation (isolate_aggregates, '
            'IsolatedAggregatesFilter), failure-domain (failure_domains). '
            'Off: reservation, aggregate-instance-type, blazar, failover. '
            'Weighers: ',
            line,
        )


class ThirdPartyTestCase(base.CloudTestCase):
    """Plugins of another distribution, installed with pip."""

    host_filters = ('ThirdPartyFilter',)
    options = {'request_filters': ['third_party', 'isolate_aggregates']}
    weights = {'host1': 100, 'host2': 1}

    def setUp(self):
        self.useFixture(distributions.Distributions()).install('third_party')
        super().setUp()

    def test_loads_and_acts(self):
        names = [f.__name__ for f in nova_request_filter.ALL_REQUEST_FILTERS]
        self.assertEqual(['third_party', 'isolate_aggregates'], names[-2:])
        # The mark of the request filter: a trait that placement must know.
        self._create_trait('CUSTOM_THIRD_PARTY')
        server = self._create_server(networks='none')
        # The host filter refuses host1, which the weigher prefers.
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self._set_provider_traits(
            self._get_provider_uuid_by_host('host2'), ['CUSTOM_THIRD_PARTY']
        )
        self._create_server(networks='none', expected_state='ERROR')


class ThirdPartyWeigherTestCase(base.CloudTestCase):
    """A weigher of another distribution, which nova.conf names."""

    host_filters = ()
    options = {'weighers': ['StarredWeigher']}
    weights = {'host1': 100, 'host2': 1}
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)

    def setUp(self):
        self.useFixture(distributions.Distributions()).install('third_party')
        super().setUp()

    def test_orders_the_hosts(self):
        self.assertBootsOn('host1')
        self.aggregate('stars', ['host2'], stars='1')
        self.assertBootsOn('host2')
        self.assertIn('starred (StarredWeigher)', self.stdlog.logger.output)
        # It is the only one of the package.
        names = [
            type(one).__name__
            for one in self.scheduler_service.manager.host_manager.weighers
        ]
        self.assertIn('StarredWeigher', names)
        self.assertNotIn('ServerGroupRoundRobinWeigher', names)
        self.assertIn(
            'Without StarredWeigher (prefers hosts with the most stars) it '
            'would be host1.',
            explain.read('--flavor', self.flavor()).document['answer'][
                'sentence'
            ],
        )


class StartedByTheTestCase(
    base.PluginMixin, integrated_helpers.ProviderUsageBaseTestCase
):
    """Everything of nova runs but the scheduler, which the test starts."""

    compute_driver = 'fake.MediumFakeDriver'

    def start_service(self, name, *args, **kwargs):
        if name == 'scheduler' and not kwargs:
            return None
        return super().start_service(name, *args, **kwargs)

    def start_scheduler(self):
        return self.start_service('scheduler', host='scheduler')

    @property
    def log(self):
        return self.stdlog.logger.output


class FirstLineTestCase(StartedByTheTestCase):
    @samples.compares('install/started.txt')
    def test_on_the_page(self):
        """What the page's nova.conf logs, wrapped for the page."""
        self.flags(
            available_filters=[NOVA, OURS],
            enabled_filters=[
                *documentation.nova_conf.FILTERS,
                'IsolatedAggregatesFilter',
            ],
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                'nova_ext_sched.weighers.all_weighers',
            ],
            group='filter_scheduler',
        )
        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        self.start_scheduler()
        (line,) = re.findall('nova-ext-sched is loaded.*', self.log)
        # The page says which line of nova follows.
        after = self.log.partition(line)[2]
        self.assertIn('Starting scheduler node', after)
        samples.check(
            self,
            'install/started.txt',
            textwrap.fill(
                line,
                samples.WIDTH,
                break_long_words=False,
                break_on_hyphens=False,
            )
            + '\n',
        )


class SlipTestCase(StartedByTheTestCase):
    """Slips that are no reason to stop."""

    def test_our_line_before_novas(self):
        name = 'ServerGroupAntiAffinityFilter'
        theirs = f'nova.scheduler.filters.affinity_filter.{name}'
        self.flags(
            available_filters=[OURS, NOVA],
            enabled_filters=[name],
            group='filter_scheduler',
        )
        (used,) = self.start_scheduler().manager.host_manager.enabled_filters
        self.assertIs(
            affinity_filter.ServerGroupAntiAffinityFilter, type(used)
        )
        self.assertIn(f'nova uses {theirs} in place of ours.', self.log)
        self.assertRegex(
            self.log,
            f'WARNING .*expected {OURS} as the last line that has {name}, got '
            rf'a later one\. nova uses {theirs}',
        )

    def test_a_function_that_calls_ours(self):
        # A site's own, in place of ours.
        self.useFixture(distributions.Distributions()).declare(
            'our_site',
            'no_namespace',
            [],
            'from nova_ext_sched import filters\n'
            'def all_filters(): return filters.all_filters()',
        )
        self.flags(
            available_filters=[NOVA, 'our_site.all_filters'],
            group='filter_scheduler',
        )
        self.start_scheduler()
        self.assertEqual(1, self.log.count('nova-ext-sched is loaded'))


class ProcessTestCase(test_base.BaseTestCase):
    """What comes into the scheduler's process."""

    def test_nothing_but_what_the_filters_need(self):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', LOAD],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        modules = json.loads(done.stdout.splitlines()[-1])
        self.assertIn('nova_ext_sched.filters.isolation', modules)
        self.assertEqual(
            [],
            [
                name
                for name in modules
                if name.split('.')[0] in FOREIGN_LIBRARIES
                or name.startswith(OTHER_ROOMS)
            ],
        )
