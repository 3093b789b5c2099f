# SPDX-License-Identifier: Apache-2.0

import gc

import fixtures
from nova import exception as nova_exception

from nova_ext_sched import aggregates
from nova_ext_sched.request_filters import isolate_aggregates
from nova_ext_sched.request_filters import lookup
from nova_ext_sched.request_filters import reserved_aggregates
from tests.unit.request_filters import base as test_base

ISOLATION = isolate_aggregates.NAME
RESERVATION = reserved_aggregates.NAME


class LookupTestCase(test_base.RequestFilterTestCase):
    """Who selects what; tests/unit/test_aggregates.py runs the select."""

    def setUp(self):
        super().setUp()
        self.config(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=True,
            placement_req_required_member_prefix=['r:'],
            placement_req_default_forbidden_member_prefix=['r:'],
        )
        self.rows = {
            'trait:X': 'required',
            'r:a': '1',
            'filter_tenant_id': 'p',
        }
        self.selects = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.aggregates.get_metadata', self.get_metadata
            )
        )
        self.spec = test_base.request_spec()

    def get_metadata(self, ctxt, prefixes):
        self.selects.append(tuple(prefixes))
        return [
            aggregates.MetadataItem('uuid', 'agg', key, value)
            for key, value in self.rows.items()
            if key.startswith(tuple(prefixes))
        ]

    def take(self, name, spec=None):
        return [
            item.key
            for item in lookup.take_metadata(
                self.ctxt, spec or self.spec, name
            )
        ]

    def test_one_select_for_both_in_either_order(self):
        for order in ((ISOLATION, RESERVATION), (RESERVATION, ISOLATION)):
            del self.selects[:]
            taken = {name: self.take(name) for name in order}
            self.assertEqual(
                {ISOLATION: ['trait:X'], RESERVATION: ['r:a']}, taken
            )
            self.assertEqual([('trait:', 'r:')], self.selects)

    def test_one_that_is_off_needs_nothing(self):
        self.config(
            group='nova_ext_sched',
            placement_req_required_member_prefix=[],
            placement_req_default_forbidden_member_prefix=[],
        )
        self.assertEqual(['trait:X'], self.take(ISOLATION))
        self.assertEqual([('trait:',)], self.selects)

    def test_one_that_is_not_loaded_needs_nothing(self):
        self.config(
            group='nova_ext_sched', request_filters=['reserved_aggregates']
        )
        self.assertEqual(['r:a'], self.take(RESERVATION))
        self.assertEqual([('r:',)], self.selects)

    def test_projects_only_where_a_key_is_named(self):
        self.spec.flavor.extra_specs = {'r:a': '1'}
        self.take(ISOLATION)
        self.assertEqual([('trait:', 'r:', 'filter_tenant_id')], self.selects)
        self.assertEqual(['r:a', 'filter_tenant_id'], self.take(RESERVATION))

    def test_a_spec_that_is_filtered_again_is_selected_for_again(self):
        for name in (ISOLATION, RESERVATION):
            self.take(name)
        del self.rows['r:a']
        self.assertEqual(['trait:X'], self.take(ISOLATION))
        self.assertEqual([], self.take(RESERVATION))
        self.assertEqual(2, len(self.selects))

    def test_rows_that_were_left_by_a_failed_request_are_not_taken(self):
        self.take(ISOLATION)  # and then the request fails
        del self.rows['r:a']
        self.take(ISOLATION)
        self.assertEqual([], self.take(RESERVATION))

    def test_every_spec_has_its_own(self):
        other = test_base.request_spec()
        self.take(ISOLATION)
        del self.rows['r:a']
        self.take(ISOLATION, other)
        self.assertEqual(['r:a'], self.take(RESERVATION))
        self.assertEqual([], self.take(RESERVATION, other))

    def test_nothing_stays_when_the_spec_goes(self):
        gc.collect()
        before = len(lookup._rows)
        self.take(ISOLATION)
        self.assertEqual(before + 1, len(lookup._rows))
        self.spec = None
        gc.collect()
        self.assertEqual(before, len(lookup._rows))

    def test_nothing_needed_nothing_selected(self):
        self.config(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=False,
            placement_req_required_member_prefix=[],
        )
        self.spec.flavor.extra_specs = {'r:a': '1'}
        self.assertEqual([], self.take(RESERVATION))
        self.assertEqual([], self.selects)

    def test_error_of_the_database_is_raised(self):
        def fail(ctxt, prefixes):
            raise nova_exception.DBNotAllowed(binary='x')

        with fixtures.MonkeyPatch(
            'nova_ext_sched.aggregates.get_metadata', fail
        ):
            self.assertRaises(
                nova_exception.DBNotAllowed, self.take, ISOLATION
            )
        self.assertEqual(['trait:X'], self.take(ISOLATION))
