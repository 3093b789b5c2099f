# SPDX-License-Identifier: Apache-2.0

"""nova's own functional tests of isolation, with our filters in place."""

from nova.tests.functional import test_aggregates

from tests.functional import base


class IsolateAggregateFilterTest(
    base.PluginMixin, test_aggregates.IsolateAggregateFilterTest
):
    """Every test of nova's class, with nova's own filter off and ours on."""

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        # nova's class turns nova's filter on.
        self.flags(
            enable_isolated_aggregate_filtering=False, group='scheduler'
        )
