# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
import testtools

from nova_ext_sched.queries import fields

objects.register_all()


@ddt.ddt
class FieldsTestCase(testtools.TestCase):
    """What nova leaves out is empty; to read it would raise, or load it."""

    @ddt.data(
        ({}, 'without a name', {}),
        ({'flavor': objects.Flavor()}, 'without a name', {}),
        ({'flavor': objects.Flavor(name='tiny')}, 'tiny', {}),
        (
            {'flavor': objects.Flavor(name='tiny', extra_specs={'k': '1'})},
            'tiny',
            {'k': '1'},
        ),
    )
    @ddt.unpack
    def test_flavor(self, given, name, extra_specs):
        spec = objects.RequestSpec(**given)
        self.assertEqual(name, fields.flavor_name(spec))
        self.assertEqual(extra_specs, fields.flavor_extra_specs(spec))

    def test_flavor_whose_extra_specs_are_none(self):
        flavor = objects.Flavor(name='tiny')
        # As nova's objects hold a field; its setter refuses None.
        flavor._obj_extra_specs = None
        spec = objects.RequestSpec(flavor=flavor)
        self.assertEqual({}, fields.flavor_extra_specs(spec))

    @ddt.data(({}, {}), ({'metadata': {'k': '1'}}, {'k': '1'}))
    @ddt.unpack
    def test_aggregate(self, given, metadata):
        aggregate = objects.Aggregate(**given)
        self.assertEqual(
            [('without a name', metadata)],
            fields.names_and_metadata([aggregate]),
        )

    @ddt.data(
        ({}, 'anti-affinity'),
        ({'policy': 'affinity'}, 'affinity'),
        ({'policy': None}, None),
    )
    @ddt.unpack
    def test_policy_of_a_group(self, given, expected):
        """The strictest, where a request of before does not say."""
        group = objects.InstanceGroup(**given)
        self.assertEqual(expected, fields.group_policy(group))

    def test_aggregate_whose_metadata_is_none(self):
        aggregate = objects.Aggregate(name='a')
        aggregate._obj_metadata = None
        self.assertEqual([('a', {})], fields.names_and_metadata([aggregate]))
