# SPDX-License-Identifier: Apache-2.0

import ddt
import fixtures
from nova import objects

from nova_ext_sched import request_state
from nova_ext_sched.filters import isolation
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base


def requiring(*traits):
    return {f'trait:{trait}': 'required' for trait in traits}


@ddt.ddt
class IsolatedAggregatesFilterTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.set(enable_isolated_aggregate_filtering=True)
        self.filter = isolation.IsolatedAggregatesFilter()

    def passes(self, metadata, extra_specs, **fields):
        spec = test_base.request_spec(**fields)
        spec.flavor.extra_specs = extra_specs
        state = filters_base.host_state(
            'h',
            filters_base.aggregate('plain'),
            filters_base.aggregate('agg', metadata=metadata),
        )
        return bool(self.filter.filter_all([state], spec))

    def passing(self, spec, **metadata):
        """Judge a host in one aggregate for each metadata; return names."""
        hosts = [
            filters_base.host_state(
                name, filters_base.aggregate(name, metadata=mine)
            )
            for name, mine in metadata.items()
        ]
        return filters_base.names(self.filter.filter_all(hosts, spec))

    def test_off(self):
        self.set(enable_isolated_aggregate_filtering=False)
        self.assertTrue(self.passes(requiring('X'), {}))

    def test_runs_on_rebuild(self):
        rebuild = filters_base.REBUILD
        self.assertFalse(self.passes(requiring('X'), {}, **rebuild))

    @ddt.data(
        ({}, True),
        # Stage 1 found out which image the server runs, at its last move.
        (filters_base.REBUILD, True),
        # It did not.
        ({'scheduler_hints': filters_base.HINT}, False),
        ({**filters_base.REBUILD, 'id': 1}, False),
    )
    @ddt.unpack
    def test_image_of_what_says_that_it_is_a_rebuild(self, fields, expected):
        image = test_base.image(traits_required=['X'])
        passes = self.passes(requiring('X'), {}, image=image, **fields)
        self.assertIs(expected, passes)
        # A flavor is an administrator's.
        self.assertTrue(self.passes(requiring('X'), requiring('X'), **fields))

    def test_flavor_that_nova_cannot_read_opens_no_isolated_host(self):
        read = 'nova.scheduler.utils.ResourceRequest.from_request_spec'
        with fixtures.MockPatch(read, lambda spec: 1 / 0):
            for _ in range(2):
                self.assertFalse(self.passes(requiring('X'), requiring('X')))
            self.assertTrue(self.passes({}, {}))
        self.assertEqual(1, self.output.output.count('division by zero'))
        self.assertIn('flavor small', self.output.output)

    def test_image_that_nova_cannot_read_is_no_warning(self):
        """A member wrote it, in a rebuild too."""
        image = test_base.image(os_secure_boot='disabled')
        flavor = {'os:secure_boot': 'required', **requiring('X')}
        self.assertFalse(self.passes(requiring('X'), flavor, image=image))
        self.assertNotIn('rejects every isolated', self.output.output)

    def test_request_that_cannot_be_read_names_no_reservation(self):
        self.set(
            enable_isolated_aggregate_filtering=False,
            placement_req_required_member_prefix=['r:'],
            placement_req_default_forbidden_member_prefix=['r:'],
        )
        state, spec = filters_base.host_state('h'), test_base.request_spec()
        self.assertEqual([state], self.filter.filter_all([state], spec))
        # No project, which only a broken request spec lacks.
        spec = objects.RequestSpec(flavor=objects.Flavor(name='m1'))
        self.assertEqual([], self.filter.filter_all([state], spec))
        self.assertFalse(self.filter.host_passes(state, spec))
        self.assertEqual(1, self.output.output.count('rejects every host'))

    @ddt.data(
        ('required', False, ['a']),
        ('default_forbidden', False, ['plain']),
        ('required', True, ['a', 'b', 'plain']),
        ('default_forbidden', True, ['a', 'b', 'plain']),
    )
    @ddt.unpack
    def test_prefix_in_one_option_alone(self, option, other_side, expected):
        """Stage 2 judges whichever of the two options is set.

        ``required`` binds the request that names a key, ``default_forbidden``
        the one that names none.
        """
        options = {
            f'placement_req_{name}_member_prefix': ['r:'] * (name == option)
            for name in ('required', 'default_forbidden')
        }
        self.set(enable_isolated_aggregate_filtering=False, **options)
        spec = test_base.request_spec()
        if (option == 'required') != other_side:
            spec.flavor.extra_specs = {'r:a': '1'}
        found = self.passing(spec, a={'r:a': '1'}, b={'r:b': '1'}, plain={})
        self.assertEqual(expected, found)

    @ddt.data(
        ('isolation', True, False, ['b']),
        ('isolation', False, True, ['a', 'b']),
        ('reservation', False, True, ['b']),
        ('reservation', True, False, ['a', 'b']),
        ('blazar', True, True, ['a', 'b']),
    )
    @ddt.unpack
    def test_what_stage_1_left_out(self, policy, isolates, reserves, passed):
        """Each policy judges what its own query left out, and nobody else."""
        prefixes = ['r:'] if reserves else []
        self.set(
            enable_isolated_aggregate_filtering=isolates,
            placement_req_default_forbidden_member_prefix=prefixes,
        )
        spec = test_base.request_spec()
        left_out = request_state.LeftOut({'a': 'new'})
        request_state.of(spec).left_out[policy] = left_out
        self.assertEqual(passed, self.passing(spec, a={}, b={}))

    def test_request_without_a_flavor_opens_no_isolated_host(self):
        spec = objects.RequestSpec()
        self.assertEqual(['h'], self.passing(spec, h={}, i=requiring('X')))
        self.assertIn('flavor without a name', self.output.output)
