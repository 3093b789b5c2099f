# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
from nova.scheduler import utils
import testtools

from nova_ext_sched import fields

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
            *('tiny', {'k': '1'}),
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
        found = fields.names_and_metadata([aggregate])
        self.assertEqual([('without a name', metadata)], found)

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

    @ddt.data(
        # Hint, forced hosts, forced nodes, ID of the stored row.
        (['rebuild'], ['h'], ['n'], {}, True),
        (['rebuild'], ['h'], ['n'], {'id': 1}, False),
        (['rebuild'], ['h'], None, {}, False),
        (['rebuild'], ['h'], [], {}, False),
        (['rebuild'], None, ['n'], {}, False),
        (['rebuild'], None, None, {}, False),
        (['rebuild'], None, None, {'id': 1}, False),
    )
    @ddt.unpack
    def test_rebuild(self, hint, hosts, nodes, row, expected):
        spec = objects.RequestSpec(
            scheduler_hints={'_nova_check_type': hint},
            force_hosts=hosts,
            force_nodes=nodes,
            **row,
        )
        self.assertTrue(utils.request_is_rebuild(spec))
        self.assertIs(expected, fields.is_rebuild(spec))
        self.assertIs(not expected, fields.pretends_rebuild(spec))

    @ddt.data(
        {},
        {'scheduler_hints': None},
        {'scheduler_hints': {}},
        {'scheduler_hints': {'_nova_check_type': ['Rebuild']}},
        {'scheduler_hints': {'_nova_check_type': ['rebuild', 'rebuild']}},
        {'scheduler_hints': {'_nova_check_type': []}},
        {'scheduler_hints': {'_nova_other': ['rebuild']}},
    )
    def test_no_hint_of_a_rebuild(self, hints):
        for forced in ({}, {'force_hosts': ['h'], 'force_nodes': ['n']}):
            spec = objects.RequestSpec(**hints, **forced)
            self.assertFalse(fields.is_rebuild(spec))
            self.assertFalse(fields.pretends_rebuild(spec))

    def test_aggregate_whose_metadata_is_none(self):
        aggregate = objects.Aggregate(name='a')
        aggregate._obj_metadata = None
        self.assertEqual([('a', {})], fields.names_and_metadata([aggregate]))
