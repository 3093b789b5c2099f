# SPDX-License-Identifier: Apache-2.0

"""Queries that have no room for every isolated aggregate."""

from tests.functional import test_isolation


class BoundTestCase(test_isolation.IsolationTestCase):
    """max_forbidden_aggregates with the host filter to judge the rest."""

    options = {
        **test_isolation.IsolationTestCase.options,
        'max_forbidden_aggregates': 1,
    }
    weights = {'host1': 100, 'host2': 90, 'host3': 80, 'host4': 1}

    def member_of(self):
        (member_of,) = self.queries[-1]['member_of']
        return set(member_of.removeprefix('!in:').split(','))

    def test_largest_goes_in_and_the_host_filter_judges_the_rest(self):
        small = self.isolate('small', ['host1'], test_isolation.X)
        large = self.isolate('large', ['host2', 'host3'], test_isolation.Y)
        self.assertBootsOn('host4')
        self.assertEqual({large}, self.member_of())
        self.assertIn(
            'IsolatedAggregatesFilter checks the hosts of the other 1: small.',
            self.log,
        )
        # A forced host is not judged, so its aggregates go in.
        for zone, named in (
            ('nova:host1', {small}),
            ('nova:host2', {large}),
            ('nova::host1', {small}),
            ('nova::host3', {large}),
        ):
            self.assertNoValidHost(az=zone)
            self.assertEqual(named, self.member_of())
        # nova's own filter has put both in; ours adds none.
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        self.assertBootsOn('host4')
        self.assertEqual({small, large}, self.member_of())


class NoHostFilterTestCase(test_isolation.IsolationTestCase):
    host_filters = ()
    options = {
        **test_isolation.IsolationTestCase.options,
        'max_forbidden_aggregates': 1,
        'forbid_by_trait': ['CUSTOM_*'],
    }

    def test_nobody_judges_what_is_left_out_so_all_goes_in(self):
        uuids = {
            self.isolate(f'agg{i}', ['host1'], f'CUSTOM_T{i}')
            for i in range(3)
        }
        self.assertBootsOn('host2')
        (member_of,) = self.queries[-1]['member_of']
        self.assertEqual(uuids, set(member_of.removeprefix('!in:').split(',')))
        self.assertNotIn('!CUSTOM_', str(self.queries[-1]))
        self.assertRegex(
            self.log, 'WARNING .*IsolatedAggregatesFilter is not in'
        )
