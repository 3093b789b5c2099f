# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
import fixtures

from nova_ext_sched import faults
from nova_ext_sched.request_filters import bound
from nova_ext_sched.request_filters import isolate_aggregates
from tests.unit.request_filters import base as test_base

FILTER = isolate_aggregates.HOST_FILTER


class FilterTestCase(test_base.RequestFilterTestCase):
    """From metadata items to the request spec.

    The select and placement's answer are replaced; tests/functional has both.
    """

    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(level=logging.WARNING)
        )
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        self.config(group='filter_scheduler', enabled_filters=[FILTER])
        self.items = []
        self.known = set()
        self.asked = 0
        self.counts = {}
        for name, replacement in {
            'aggregates.get_metadata': lambda ctxt, prefixes: self.items,
            'aggregates.get_host_counts': lambda ctxt: self.counts,
            'aggregates.get_names': lambda ctxt, uuids: list(uuids),
            'request_filters.isolate_aggregates._known_traits.get': self.ask,
            'request_filters.isolate_aggregates._faults': faults.FaultLog(
                isolate_aggregates.LOG
            ),
            'request_filters.bound._faults': faults.FaultLog(bound.LOG),
            'request_filters.bound._host_counts': bound._HostCounts(),
        }.items():
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_ext_sched.{name}', replacement)
            )
        self.spec = test_base.request_spec()

    def ask(self, ctxt):
        self.asked += 1
        return frozenset(self.known)

    def isolate(self, uuid, *traits):
        self.items += [
            (uuid, f'name {uuid}', f'trait:{trait}', 'required')
            for trait in traits
        ]

    def filter(self):
        """Run the filter; return what it changed in the request spec."""
        self.assertTrue(
            isolate_aggregates.isolate_aggregates(self.ctxt, self.spec)
        )
        destination = self.spec.requested_destination
        return (
            set(destination.forbidden_aggregates or ())
            if destination
            else set()
        ), self.spec.root_forbidden


@ddt.ddt
class IsolateAggregatesTestCase(FilterTestCase):
    def test_off(self):
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=False
        )
        self.isolate('a', 'X')
        self.assertFalse(
            isolate_aggregates.isolate_aggregates(self.ctxt, self.spec)
        )
        self.assertIsNone(self.spec.requested_destination)

    def test_what_the_request_lacks_is_forbidden(self):
        self.isolate('a', 'X')
        self.isolate('b', 'X', 'Y')
        self.spec.flavor.extra_specs = {'trait:X': 'required'}
        self.assertEqual(({'b'}, set()), self.filter())

    def test_flavor_without_extra_specs(self):
        self.isolate('a', 'X')
        self.spec.flavor = test_base.flavor()
        self.assertEqual(({'a'}, set()), self.filter())

    @ddt.data(
        ('trait:X', 'Required'),
        ('trait:X', 'REQUIRED'),
        ('trait:X', 'required '),
        ('Trait:X', 'required'),
    )
    @ddt.unpack
    def test_slip_isolates_and_is_warned_about_once(self, key, value):
        self.items = [('a', 'windows', key, value)]
        for _ in range(2):
            self.assertEqual(({'a'}, set()), self.filter())
        self.assertEqual(
            1,
            self.output.output.count(
                f'aggregate windows: metadata {key}: expected '
                f"'trait:X=required', got '{key}={value}'"
            ),
        )

    def test_what_isolates_nothing_is_warned_about_once(self):
        self.items = [('a', 'windows', 'trait:X', 'forbidden')]
        for _ in range(2):
            self.assertEqual((set(), set()), self.filter())
        self.assertEqual(1, self.output.output.count('isolates nothing'))


class ForbidByTraitTestCase(FilterTestCase):
    def setUp(self):
        super().setUp()
        self.config(group='nova_ext_sched', forbid_by_trait=['CUSTOM_*'])
        self.known = {'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'}

    def test_declared_and_known(self):
        self.isolate('a', 'CUSTOM_A')
        self.isolate('x', 'X')
        self.isolate('ax', 'CUSTOM_A', 'X')
        self.assertEqual(({'x'}, {'CUSTOM_A'}), self.filter())

    def test_trait_that_is_required_of_the_root(self):
        """Placement answers 400 where one is required and forbidden."""
        self.isolate('a', 'CUSTOM_A')
        self.isolate('b', 'CUSTOM_B')
        self.spec.root_required.add('CUSTOM_A')
        self.assertEqual(({'a'}, {'CUSTOM_B'}), self.filter())

    def test_trait_that_covers_most_goes_in_first(self):
        self.config(group='nova_ext_sched', max_forbidden_aggregates=2)
        self.isolate('a', 'CUSTOM_A')
        for uuid in ('c1', 'c2', 'c3'):
            self.isolate(uuid, 'CUSTOM_C')
        for uuid in ('b1', 'b2'):
            self.isolate(uuid, 'CUSTOM_B')
        self.assertEqual((set(), {'CUSTOM_B', 'CUSTOM_C'}), self.filter())
        self.assertIn('the hosts of the other 1: ', self.output.output)

    def test_traits_and_aggregates_share_the_bound(self):
        self.config(group='nova_ext_sched', max_forbidden_aggregates=3)
        self.isolate('a', 'CUSTOM_A')
        for uuid in ('x', 'y', 'z'):
            self.isolate(uuid, 'X')
        self.counts = {'z': 3, 'y': 2, 'x': 1}
        self.assertEqual(({'y', 'z'}, {'CUSTOM_A'}), self.filter())

    def test_unknown_trait_is_warned_about_once(self):
        self.known = {'CUSTOM_B'}
        self.isolate('a', 'CUSTOM_A')
        for _ in range(2):
            self.assertEqual(({'a'}, set()), self.filter())
        self.assertEqual(
            1, self.output.output.count('not know the trait CUSTOM_A,')
        )

    def test_placement_that_cannot_be_asked_accuses_no_trait(self):
        self.known = set()
        self.isolate('a', 'CUSTOM_A')
        self.assertEqual(({'a'}, set()), self.filter())
        self.assertEqual('', self.output.output)

    def test_placement_is_asked_only_where_it_helps(self):
        self.isolate('x', 'X')
        self.filter()
        self.assertEqual(0, self.asked)
        self.isolate('a', 'CUSTOM_A')
        self.config(group='filter_scheduler', enabled_filters=['Other'])
        self.assertEqual(({'a', 'x'}, set()), self.filter())
        self.config(group='filter_scheduler', enabled_filters=[FILTER])
        self.spec = test_base.request_spec(force_hosts=['h'])
        self.assertEqual(({'a', 'x'}, set()), self.filter())
        self.assertEqual(0, self.asked)
