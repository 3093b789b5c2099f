#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
