# SPDX-License-Identifier: Apache-2.0

"""Plugins of others that cannot be used."""

from unittest import mock

import ddt
import fixtures
from nova.scheduler import request_filter as nova_request_filter

from nova_ext_sched import exception
from tests import distributions
from tests.functional import test_loading


@ddt.ddt
class BrokenPluginTestCase(test_loading.StartedByTheTestCase):
    """A plugin that cannot be used stops the scheduler at its start."""

    def setUp(self):
        self.dists = self.useFixture(distributions.Distributions())
        super().setUp()

    def assertDoesNotStart(self, error, *parts):
        before = list(nova_request_filter.ALL_REQUEST_FILTERS)
        exc = self.assertRaises(error, self.start_scheduler)
        for part in parts:
            self.assertIn(part, str(exc))
        self.assertEqual(before, nova_request_filter.ALL_REQUEST_FILTERS)

    def test_plugins_that_cannot_be_used(self):
        """The kinds are in tests/unit/test_plugins.py."""
        with fixtures.EnvironmentVariable(
            'OS_NOVA_EXT_SCHED__MEMBER_SOURCE', 'flavor'
        ):
            self.assertDoesNotStart(
                exception.InvalidValues,
                "expected the option member_sources, got 'member_source'",
            )
        self.flags(
            request_filters=['isolate_aggregates', 'absent'],
            group='nova_ext_sched',
        )
        self.assertDoesNotStart(
            exception.PluginError,
            "'absent'",
            test_loading.REQUEST_FILTERS,
            "'isolate_aggregates'",
        )
        self.flags(request_filters=[], group='nova_ext_sched')
        name = 'IsolatedAggregatesFilter'
        self.dists.declare(
            'impostor',
            test_loading.HOST_FILTERS,
            [f'{name} = impostor:f'],
            'f = 1',
        )
        self.assertDoesNotStart(
            exception.PluginError, name, test_loading.HOST_FILTERS, 'impostor'
        )

    def test_broken_request_filter_that_is_not_named_is_not_loaded(self):
        self.dists.declare(
            'ext', test_loading.REQUEST_FILTERS, ['f = ext:f'], '1 / 0'
        )
        self.start_scheduler()

    @ddt.data('available_filters', 'weight_classes')
    def test_an_option_of_our_name_that_is_registered_later(self, lines):
        """Another package's, which nova loads after ours."""
        # What acme registers is not there for the next test.
        self.enterContext(mock.patch.dict(test_loading.CONF._groups))
        self.dists.declare(
            'acme',
            'no_namespace',
            [],
            'from oslo_config import cfg\n'
            'import nova.conf\n'
            'option = cfg.StrOpt("member_sources")\n'
            f'nova.conf.CONF.register_opt(option, group="acme_{lines}")\n'
            'def find(): return []\n',
        )
        self.useFixture(
            fixtures.EnvironmentVariable(
                f'OS_ACME_{lines.upper()}__MEMBER_SOURCES', 'x'
            )
        )
        self.assertDoesNotStart(
            exception.InvalidValues,
            'expected member_sources in the section [nova_ext_sched]',
        )
        self.flags(
            group='filter_scheduler',
            **{
                lines: [
                    *test_loading.CONF.filter_scheduler[lines],
                    'acme.find',
                ]
            },
        )
        self.start_scheduler()
