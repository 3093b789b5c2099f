# SPDX-License-Identifier: Apache-2.0

"""The filter on nova's objects; the decisions are in tests/unit/policy."""

import logging

import ddt
import hypothesis
from hypothesis import strategies as st
from nova import objects
from nova.scheduler.filters import aggregate_instance_extra_specs

from nova_ext_sched import conf
from nova_ext_sched.filters import aggregate_instance_type
from tests.unit.filters import base
from tests.unit.policy import test_expression
from tests.unit.request_filters import base as test_base

FORCE = {'force_metadata_check': 'True'}


def make_host(*metadata):
    """Return a host in aggregates with the metadata."""
    return base.host_state(
        'host',
        *(
            base.aggregate(f'agg{i}', metadata=m)
            for i, m in enumerate(metadata)
        ),
    )


def make_spec(extra_specs, **kwargs):
    return objects.RequestSpec(
        flavor=objects.Flavor(name='tiny', extra_specs=extra_specs), **kwargs
    )


class FilterTestCase(test_base.RequestFilterTestCase):
    level = logging.DEBUG

    def setUp(self):
        super().setUp()
        self.filter = aggregate_instance_type.AggregateInstanceTypeFilter()

    def passes(self, extra_specs, *metadata):
        """Return whether a host in aggregates with the metadata passes."""
        return self.filter.host_passes(
            make_host(*metadata), make_spec(extra_specs)
        )

    def warnings(self):
        lines = self.output.output.splitlines()
        return [line for line in lines if 'rejected' not in line]


@ddt.ddt
class AggregateInstanceTypeFilterTestCase(FilterTestCase):
    def test_what_nova_leaves_out_of_a_flavor_is_empty(self):
        flavor = objects.Flavor(name='tiny')
        flavor._obj_extra_specs = None
        hosts = [base.host_state('a', base.aggregate('agg'))]
        for spec in (
            make_spec({}),
            make_spec({'key': '!'}),
            objects.RequestSpec(flavor=flavor),
            objects.RequestSpec(flavor=objects.Flavor(name='tiny')),
            objects.RequestSpec(),
        ):
            self.assertEqual(hosts, self.filter.filter_all(hosts, spec))
        self.assertEqual(
            [], self.filter.filter_all(hosts, make_spec({'key': '1'}))
        )

    def test_aggregate_without_metadata_in_memory(self):
        """Beside the reasons of other hosts; also where nothing is asked."""
        unread = objects.Aggregate(name='unread')
        hosts = [
            base.host_state('a', unread, base.aggregate('agg', key='1')),
            base.host_state('b', base.aggregate('agg', key='2')),
        ]
        for extra_specs, left in (({}, ['b']), ({'key': '1'}, [])):
            spec = make_spec(extra_specs)
            passed = self.filter.filter_all(hosts, spec)
            self.assertEqual(left, [state.host for state in passed])
        for reason in ('unread has no metadata', "wants 'key' to be '1'"):
            self.assertIn(reason, self.output.output)

    def test_availability_zone_is_ignored_under_force(self):
        zone = {'availability_zone': 'az1', 'key': '1', **FORCE}
        self.assertTrue(self.passes({'key': '1'}, zone))
        self.set(force_metadata_check_ignored_keys=[])
        self.assertFalse(self.passes({'key': '1'}, zone))

    @ddt.data(
        'placement_req_required_member_prefix',
        'placement_req_default_forbidden_member_prefix',
    )
    def test_reserved_prefixes(self, option):
        reserved = {'reservation:7': 'true', **FORCE}
        extra_specs = {'reservation:7': 'false'}
        self.assertFalse(self.passes({}, reserved))
        self.assertFalse(self.passes(extra_specs, reserved))
        self.set(**{option: ['reservation:']})
        self.assertTrue(self.passes({}, reserved))
        self.assertTrue(self.passes(extra_specs, reserved))

    def test_warning_where_novas_filter_is_enabled_too(self):
        enabled = ['AggregateInstanceTypeFilter']
        self.config(group='filter_scheduler', enabled_filters=enabled)
        self.assertEqual([], conf.contradictions(test_base.CONF))
        self.config(
            group='filter_scheduler',
            enabled_filters=[*enabled, 'AggregateInstanceExtraSpecsFilter'],
        )
        (found,) = conf.contradictions(test_base.CONF)
        self.assertIn('Remove AggregateInstanceExtraSpecsFilter', found)

    def test_update_of_an_aggregate_takes_effect_on_the_next_request(self):
        host_state = make_host({'key': '1'})
        spec = make_spec({'key': '1'})
        self.assertTrue(self.filter.host_passes(host_state, spec))
        # As nova's host manager does it: the new object takes the place of
        # the old one, and host states get it with their next update.
        host_state.update(aggregates=make_host({'key': '2'}).aggregates)
        self.assertFalse(self.filter.host_passes(host_state, spec))
        # Changed in place.
        host_state.aggregates[0].metadata = {'key': '1'}
        self.assertTrue(self.filter.host_passes(host_state, spec))
        host_state.aggregates[0].metadata['key'] = '2'
        self.assertFalse(self.filter.host_passes(host_state, spec))

    def test_objects_without_a_name(self):
        # As nova's own filter, ours reads names only to report them.
        nameless = objects.Aggregate(metadata={'k': 'x'})
        host_state = base.host_state('host', nameless)
        spec = objects.RequestSpec(
            flavor=objects.Flavor(extra_specs={'k': '>= 4'})
        )
        self.assertEqual([], self.filter.filter_all([host_state], spec))
        self.assertIn('aggregate without a name', self.output.output)

    def test_metadata_is_read_once_a_request(self):
        reads = []

        class Aggregate:
            @property
            def metadata(self):
                reads.append(1)
                return {'key': '1'}

        shared = Aggregate()
        hosts = [base.host_state(f'host{n}', shared) for n in range(9)]
        self.assertEqual(
            hosts, self.filter.filter_all(hosts, make_spec({'key': '1'}))
        )
        self.assertEqual([1], reads)


class LogTestCase(FilterTestCase):
    def test_one_summary_with_the_most_frequent_reason_first(self):
        ones, twos, none = (
            base.aggregate(name, metadata=metadata)
            for name, metadata in (
                ('ones', {'key': '1'}),
                ('twos', {'key': '2'}),
                ('none', {}),
            )
        )
        hosts = [
            base.host_state('host', *aggregates)
            for aggregates in (
                *[[ones]] * 4,
                *[[none]] * 2,
                *[[twos, none], [none, twos], [twos, none]],
            )
        ]
        self.filter.filter_all(hosts, make_spec({'key': '1'}))
        self.assertEqual(
            'AggregateInstanceTypeFilter rejected 5 of 9 hosts: '
            "3 because flavor tiny wants 'key' to be '1' and the aggregates "
            "offer '2' (twos); 2 because flavor tiny wants 'key' to be '1' "
            'and no aggregate of the host has the key\n',
            self.output.output,
        )

    def test_a_malformed_flag_forces_nothing_and_is_warned_about(self):
        metadata = {'key': '1', 'force_metadata_check': 'ture'}
        self.assertTrue(self.passes({}, metadata))
        (warning,) = self.warnings()
        self.assertIn(
            'AggregateInstanceTypeFilter: aggregate agg0: metadata '
            "'force_metadata_check'",
            warning,
        )

    def test_one_warning_for_each_of_several(self):
        host_state = make_host(
            *({'key': value, **FORCE} for value in ('<or>', '<or>', '! 1'))
        )
        for _ in range(2):
            self.filter.filter_all([host_state], make_spec({'k': '<or>'}))
        self.assertEqual(4, len(self.warnings()))


requirements = st.lists(
    st.sampled_from(test_expression.OPERATORS) | test_expression.words,
    max_size=5,
).map(' '.join)
keys = st.sampled_from(('k', 'l', 'm'))
novas_keys = keys | keys.map('aggregate_instance_extra_specs:{}'.format)
metadata = st.dictionaries(
    keys,
    st.lists(test_expression.words, min_size=1, max_size=3).map(' , '.join),
    max_size=3,
)


class NovaTestCase(FilterTestCase):
    """nova's filter answers alike where it has the same language."""

    novas = aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter()

    def novas_answer(self, host_state, spec):
        """Return nova's answer, or None where it raises in some order.

        nova tries the values of a key in the order of a set, so whether it
        meets the value that it cannot read is a matter of chance.
        """
        for key, value in spec.flavor.extra_specs.items():
            key = key.removeprefix('aggregate_instance_extra_specs:')
            for aggregate in host_state.aggregates:
                for offer in aggregate.metadata.get(key, '').split(','):
                    alone = make_host({key: offer.strip()})
                    try:
                        self.novas.host_passes(alone, make_spec({key: value}))
                    except (IndexError, ValueError):
                        if key in aggregate.metadata:
                            return None
        return self.novas.host_passes(host_state, spec)

    @hypothesis.given(
        st.dictionaries(novas_keys, requirements, max_size=3),
        st.lists(metadata, max_size=3),
    )
    def test_agrees(self, extra_specs, aggregates):
        host_state = make_host(*aggregates)
        spec = make_spec(extra_specs)
        novas = self.novas_answer(host_state, spec)
        ours = self.filter.filter_all([host_state], spec)
        self.assertIs(bool(novas), bool(ours))
