# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler loads the package, or does not start."""

import ddt
from nova import exception as nova_exception
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
from nova.scheduler import request_filter as nova_request_filter
from nova.tests.functional import integrated_helpers

from nova_ext_sched import exception
from nova_ext_sched.filters import isolated_aggregates
from nova_ext_sched.request_filters import failure_domains
from nova_ext_sched.request_filters import isolate_aggregates
from nova_ext_sched.request_filters import reserved_aggregates
from tests import distributions
from tests.functional import base

HOST_FILTERS = 'nova_ext_sched.host_filters'
REQUEST_FILTERS = 'nova_ext_sched.request_filters'

HOST_FILTER = """
from nova.scheduler import filters
class {name}(filters.BaseHostFilter):
    pass
"""


class StartTestCase(base.CloudTestCase):
    """A scheduler that starts with the package."""

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def test_filters_are_in_place(self):
        manager = self.scheduler_service.manager.host_manager
        self.assertIs(
            isolated_aggregates.IsolatedAggregatesFilter,
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
                isolate_aggregates.isolate_aggregates,
                reserved_aggregates.reserved_aggregates,
                failure_domains.failure_domains,
            ],
            nova_request_filter.ALL_REQUEST_FILTERS[-3:],
        )

    def test_a_second_scheduler_installs_nothing_twice(self):
        before = list(nova_request_filter.ALL_REQUEST_FILTERS)
        host_manager.HostManager()
        self.assertEqual(before, nova_request_filter.ALL_REQUEST_FILTERS)

    def test_one_line_tells_what_is_active(self):
        (line,) = [
            line
            for line in self.stdlog.logger.output.splitlines()
            if 'nova-ext-sched is loaded' in line
        ]
        self.assertIn('INFO', line)
        self.assertIn(
            'Request filters: isolate_aggregates, reserved_aggregates, '
            'failure_domains.',
            line,
        )
        self.assertIn('enabled: IsolatedAggregatesFilter', line)
        self.assertIn('enable_isolated_aggregate_filtering is True', line)
        self.assertNotIn('Both [scheduler]', self.stdlog.logger.output)


class BothIsolationsTestCase(base.CloudTestCase):
    options = {'enable_isolated_aggregate_filtering': True}
    host_filters = ('IsolatedAggregatesFilter',)

    def setUp(self):
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        super().setUp()

    def test_warns(self):
        self.assertRegex(
            self.stdlog.logger.output,
            r'WARNING .*Both \[scheduler\] enable_isolated_aggregate_',
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


@ddt.ddt
class BrokenPluginTestCase(
    base.PluginMixin, integrated_helpers.ProviderUsageBaseTestCase
):
    """A plugin that cannot be used stops the scheduler at its start."""

    compute_driver = 'fake.MediumFakeDriver'

    def setUp(self):
        self.dists = self.useFixture(distributions.Distributions())
        super().setUp()

    def start_service(self, name, *args, **kwargs):
        # The test starts the scheduler.
        if name == 'scheduler' and not kwargs:
            return None
        return super().start_service(name, *args, **kwargs)

    def assertDoesNotStart(self, error, *parts):
        before = list(nova_request_filter.ALL_REQUEST_FILTERS)
        exc = self.assertRaises(
            error, self.start_service, 'scheduler', host='scheduler'
        )
        for part in parts:
            self.assertIn(part, str(exc))
        self.assertEqual(before, nova_request_filter.ALL_REQUEST_FILTERS)

    def test_starts_without_broken_plugins(self):
        self.assertIsNotNone(self.start_service('scheduler', host='scheduler'))

    def test_request_filter_is_named_and_missing(self):
        self.flags(
            request_filters=['isolate_aggregates', 'absent'],
            group='nova_ext_sched',
        )
        self.assertDoesNotStart(
            exception.PluginNotFound,
            "'absent'",
            REQUEST_FILTERS,
            "'isolate_aggregates'",
        )

    def test_request_filter_is_ambiguous(self):
        self.dists.declare(
            'impostor',
            REQUEST_FILTERS,
            ['isolate_aggregates = impostor:f'],
            'def f(ctxt, spec): return False',
        )
        self.assertDoesNotStart(
            exception.PluginAmbiguous,
            "'isolate_aggregates'",
            REQUEST_FILTERS,
            'impostor:f',
        )

    @ddt.data(
        ('f = 1', 'an object of type int'),
        ('class f: pass', 'the class f'),
        ('def f(request_spec): pass', 'a function (request_spec)'),
        ('def f(ctxt, spec, more): pass', 'a function (ctxt, spec, more)'),
    )
    @ddt.unpack
    def test_request_filter_is_of_the_wrong_kind(self, code, got):
        self.dists.declare('ext', REQUEST_FILTERS, ['f = ext:f'], code)
        self.flags(request_filters=['f'], group='nova_ext_sched')
        self.assertDoesNotStart(
            exception.PluginInvalid, "'f'", 'ext:f', REQUEST_FILTERS, got
        )

    def test_request_filter_fails_to_import(self):
        self.dists.declare(
            'ext', REQUEST_FILTERS, ['f = ext:f'], 'import no_such_library'
        )
        self.flags(request_filters=['f'], group='nova_ext_sched')
        self.assertDoesNotStart(
            exception.PluginLoadFailed, "'f'", REQUEST_FILTERS, 'no_such_lib'
        )

    def test_broken_request_filter_that_is_not_named_is_not_loaded(self):
        self.dists.declare('ext', REQUEST_FILTERS, ['f = ext:f'], '1 / 0')
        self.start_service('scheduler', host='scheduler')

    def test_host_filter_is_ambiguous(self):
        name = 'IsolatedAggregatesFilter'
        self.dists.declare(
            'impostor',
            HOST_FILTERS,
            [f'{name} = impostor:{name}'],
            HOST_FILTER.format(name=name),
        )
        self.assertDoesNotStart(
            exception.PluginAmbiguous, name, HOST_FILTERS, 'impostor'
        )

    @ddt.data(
        ('def F(): pass', 'an object of type function'),
        ('class F: pass', 'the class F'),
        (HOST_FILTER.format(name='G') + 'F = G', "the class name 'G'"),
    )
    @ddt.unpack
    def test_host_filter_is_of_the_wrong_kind(self, code, got):
        self.dists.declare('ext', HOST_FILTERS, ['F = ext:F'], code)
        self.assertDoesNotStart(
            exception.PluginInvalid, "'F'", 'ext:F', HOST_FILTERS, got
        )

    def test_host_filter_fails_to_import(self):
        self.dists.declare('ext', HOST_FILTERS, ['F = ext:F'], '1 / 0')
        self.assertDoesNotStart(
            exception.PluginLoadFailed, "'F'", HOST_FILTERS, 'division'
        )

    def test_host_filter_is_enabled_and_missing(self):
        # nova's own error; it names the filter.
        self.flags(enabled_filters=['Absent'], group='filter_scheduler')
        exc = self.assertRaises(
            nova_exception.SchedulerHostFilterNotFound,
            self.start_service,
            'scheduler',
            host='scheduler',
        )
        self.assertIn('Absent', str(exc))

    def test_good_host_filter(self):
        self.dists.declare(
            'ext', HOST_FILTERS, ['F = ext:F'], HOST_FILTER.format(name='F')
        )
        service = self.start_service('scheduler', host='scheduler')
        loaded = service.manager.host_manager.filter_cls_map['F']
        self.assertTrue(issubclass(loaded, nova_filters.BaseHostFilter))
