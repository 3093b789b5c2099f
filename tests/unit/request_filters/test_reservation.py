# SPDX-License-Identifier: Apache-2.0

import logging
from unittest import mock

import ddt
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.filters import isolation
from nova_ext_sched.request_filters import reservation
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base


class ReservationTestCase(test_base.RequestFilterTestCase):
    level = logging.DEBUG

    def setUp(self):
        super().setUp()
        self.set(
            placement_req_required_member_prefix=['r:'],
            placement_req_default_forbidden_member_prefix=['r:'],
        )
        self.items = [('A', 'agg-a', 'r:a', '1'), ('B', 'agg-b', 'r:b', '1')]
        self.asked = []
        self.replace('queries.aggregates.get_metadata', self.get_metadata)
        glance = mock.Mock()
        self.replace('queries.running_image.glance', glance)
        self.get_image = glance.API.return_value.get
        self.get_image.return_value = {'properties': {'r:a': '1', 'x': '2'}}
        self.spec = test_base.request_spec(image=test_base.image(uuids.image))

    def get_metadata(self, ctxt, prefixes):
        self.asked.append(prefixes)
        return [
            item for item in self.items if item[2].startswith(tuple(prefixes))
        ]

    def filter(self):
        return reservation.reserved_aggregates(self.ctxt, self.spec)

    def judge(self, *metadata):
        host = filters_base.host_state(
            'h', *(filters_base.aggregate('agg', metadata=m) for m in metadata)
        )
        judge = isolation.IsolatedAggregatesFilter()
        return judge.filter_all([host], self.spec) == [host]


@ddt.ddt
class RequestFilterTestCase(ReservationTestCase):
    def assertAsked(self, required, forbidden):
        """Run the filter; check what the query requires and forbids."""
        self.assertIs(True, self.filter())
        found = test_base.destination_of(self.spec)
        self.assertEqual((required, forbidden), found)

    def test_off(self):
        self.set(
            placement_req_required_member_prefix=[],
            placement_req_default_forbidden_member_prefix=[],
            member_sources=['image'],
        )
        self.assertIs(False, self.filter())
        self.assertIsNone(self.spec.requested_destination)
        self.assertEqual([], self.asked)
        self.get_image.assert_not_called()

    def test_no_key(self):
        self.assertAsked(None, {'A', 'B'})

    def test_key(self):
        self.spec.flavor.extra_specs = {'r:a': '1'}
        self.items.append(('C', 'agg-c', 'r:a', '2'))
        self.assertAsked(['A,C'], None)
        self.assertIn('2 aggregates: agg-a, agg-c\n', self.output.output)

    def test_a_slip_in_an_aggregate(self):
        self.items.append(('C', 'agg-c', 'R:c', '1'))
        self.replace('queries.aggregates.get_metadata', lambda *_: self.items)
        for _ in range(2):
            self.assertAsked(None, {'A', 'B', 'C'})
        self.assertEqual(
            1, self.output.output.count("aggregate agg-c: metadata 'R:c'")
        )

    def test_hints_that_are_not_set(self):
        self.set(member_sources=['hint'])
        self.spec.scheduler_hints = None
        self.assertAsked(None, {'A', 'B'})

    def test_a_key_of_a_source_that_does_not_count(self):
        self.set(member_sources=['image'])
        self.get_image.return_value = {'properties': {}}
        self.spec.scheduler_hints = {'r': ['a']}
        self.spec.flavor.extra_specs = {'r:a': '1'}
        self.assertAsked(None, {'A', 'B'})

    def test_required_prefix_alone(self):
        """Without project keys: all that is read of aggregates is by it."""
        self.set(
            placement_req_default_forbidden_member_prefix=[],
            member_project_keys=[],
        )
        self.spec.flavor.extra_specs = {'r:a': '1'}
        self.assertAsked(['A'], None)

    def test_flavor_without_extra_specs(self):
        self.spec.flavor = objects.Flavor(name='bare')
        self.assertAsked(None, {'A', 'B'})
        self.spec = test_base.request_spec(flavor=objects.Flavor(name='bare'))
        self.assertTrue(self.judge({}))
        self.assertFalse(self.judge({'r:a': '1'}))

    def test_the_select_is_by_prefix(self):
        """However many keys the request names."""
        self.set(member_sources=['hint'])
        for values in (['a'], ['a', 'b']):
            self.spec.scheduler_hints = {'r': values}
            self.assertTrue(self.filter())
        self.assertEqual([('r:', 'filter_tenant_id')] * 2, self.asked)

    @ddt.data(
        (['gone\n2026-01-01 CRITICAL nova ' + 'x' * 60_000],
         'key of a reserved aggregate: expected a name of up to 255 printable '
         "characters, got 'r:gone\\n2026-01-01 CRITICAL"),
        ([str(number) for number in range(101)],
         'names 101 keys of reserved aggregates: expected at most 100'),
    )  # fmt: skip
    @ddt.unpack
    def test_hint_of_a_user_cannot_flood_or_forge_the_log(self, hint, reason):
        self.set(member_sources=['hint'])
        self.spec.scheduler_hints = {'r': hint}
        for text in (self.assertFails(self.filter), self.output.output):
            self.assertNotIn('\n2026', text)
            self.assertIn(reason, text)
        self.assertLess(len(self.output.output), 2000)
        self.assertNotIn('could land on any host', self.output.output)
        self.assertEqual([], self.asked)


@ddt.ddt
class ImageTestCase(ReservationTestCase):
    def setUp(self):
        super().setUp()
        self.set(member_sources=['flavor', 'image'])

    def test_not_asked_unless_turned_on(self):
        self.set(member_sources=['flavor'])
        self.filter()
        self.get_image.assert_not_called()

    @ddt.data(test_base.image(), test_base.image(''), None)
    def test_not_asked_without_an_image_id(self, image):
        self.spec.image = image
        self.filter()
        self.assertEqual([], self.get_image.mock_calls)

    def test_key(self):
        self.filter()
        self.get_image.assert_called_once_with(self.ctxt, uuids.image)
        self.assertEqual(['A'], self.spec.requested_destination.aggregates)

    def test_image_that_the_server_runs_is_asked_for(self):
        """Not the one of a rebuild that was refused."""

        def restore(ctxt, request_spec, asker):
            request_spec.image = test_base.image(uuids.running)

        self.replace('queries.running_image.restore', restore)
        self.filter()
        self.get_image.assert_called_once_with(self.ctxt, uuids.running)

    def test_stage_two_knows_what_stage_one_read(self):
        self.filter()
        self.assertTrue(self.judge({'r:a': '1'}))
        self.assertFalse(self.judge({'r:b': '1'}))
        self.assertFalse(self.judge({}))

    def test_stage_two_alone_opens_nothing(self):
        self.assertFalse(self.judge({'r:a': '1'}))
        self.assertTrue(self.judge({}))
        self.assertEqual([], self.get_image.mock_calls)

    def test_read_anew_for_a_spec_that_is_filtered_again(self):
        self.filter()
        self.get_image.return_value = {'properties': {}}
        self.filter()
        self.assertFalse(self.judge({'r:a': '1'}))

    def test_failure_leaves_no_keys_of_before(self):
        self.filter()
        self.get_image.side_effect = nova_exception.ImageNotFound(image_id='i')
        error = self.assertFails(self.filter)
        self.assertIn(
            f'the properties of image {uuids.image} cannot be read', error
        )
        self.assertNotIn('ImageNotFound', error)
        self.assertFalse(self.judge({'r:a': '1'}))


@ddt.ddt
class HostFilterTestCase(ReservationTestCase):
    """Stage 2, on a host's aggregates."""

    def test_both_keys_on_boot_and_on_rebuild(self):
        self.spec.flavor.extra_specs = {'r:a': '1', 'r:b': '1'}
        for fields in ({}, filters_base.REBUILD):
            for name, value in fields.items():
                setattr(self.spec, name, value)
            self.assertTrue(self.judge({'x': 'y'}, {'r:a': '1'}, {'r:b': '1'}))
            self.assertFalse(self.judge({'x': 'y'}, {'r:a': '1'}))

    def test_projects(self):
        self.spec.flavor.extra_specs = {'r:a': '1'}
        mine = {'r:a': '1', 'filter_tenant_id': self.spec.project_id}
        self.assertTrue(self.judge(mine))
        self.assertFalse(self.judge({'r:a': '1', 'filter_tenant_id': 'x'}))

    @ddt.data(
        # Isolation passes, reservation passes, the host passes.
        (True, True, True),
        (True, False, False),
        (False, True, False),
    )
    @ddt.unpack
    def test_each_policy_must_pass(self, isolation, reservation, expected):
        self.set(enable_isolated_aggregate_filtering=True)
        self.spec.flavor.extra_specs = {'trait:X': 'required', 'r:a': '1'}
        if not isolation:
            del self.spec.flavor.extra_specs['trait:X']
        if not reservation:
            del self.spec.flavor.extra_specs['r:a']
        passes = self.judge({'r:a': '1'}, {'trait:X': 'required'})
        self.assertIs(expected, passes)
