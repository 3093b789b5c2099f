# SPDX-License-Identifier: Apache-2.0

from nova_ext_sched.weighers import preferred_aggregates
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base
from tests.unit.weighers import preferences


class PreferredAggregatesWeigherTestCase(preferences.PreferenceTestCase):
    weigher = preferred_aggregates.PreferredAggregatesWeigher

    def test_numbers_add_up(self):
        new, both = self.host('new', preference='2'), self.host('both')
        plain = self.host('plain')
        both.aggregates = [
            *new.aggregates,
            filters_base.aggregate('old', preference='-5'),
        ]
        found = self.weigh([plain, both, new])
        self.assertEqual([0, -3000, 2000], found)

    def test_for_whom(self):
        small = self.host('a', preference='1', preference_flavors='small')
        mine = self.host('b', preference='1', preference_projects='project')
        self.assertEqual([1000, 1000], self.weigh([small, mine]))
        found = self.weigh([small, mine], project_id='other')
        self.assertEqual([1000, 0], found)
        by_id = self.host('c', preference='1', preference_flavors='7')
        flavor = test_base.flavor(flavorid='7')
        self.assertEqual(
            [0, 1000], self.weigh([self.host('d'), by_id], flavor=flavor)
        )

    def test_another_key(self):
        self.set(
            preference_key='rank', weighers=['PreferredAggregatesWeigher']
        )
        self.set(preferred_aggregates_weight_multiplier=2.0)
        hosts = [self.host('a', preference='9'), self.host('b', rank='1')]
        self.assertEqual([0, 2], self.weigh(hosts))

    def test_what_cannot_be_read(self):
        for _ in range(2):
            found = self.weigh(
                [self.host('a', preference='x'), self.host('b')]
            )
            self.assertEqual([0, 0], found)
        warning = (
            'aggregate of a: preference: expected a number from -1000000 to '
            "1000000, got 'x'; it counts for nothing"
        )
        self.assertEqual(1, self.output.output.count(warning))
