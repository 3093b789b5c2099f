# SPDX-License-Identifier: Apache-2.0

"""The specification's examples, on nova's objects, through the filter."""

import logging

import ddt
import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import objects
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler.filters import aggregate_instance_extra_specs
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.filters import aggregate_instance_type
from tests import log_once
from tests.unit.filters import base

CONF = nova.conf.CONF

FORCE = {'force_metadata_check': 'True'}


def make_aggregate(name, metadata):
    return objects.Aggregate(
        id=1, name=name, hosts=['host'], metadata=metadata
    )


def make_host(aggregates, name='host'):
    host_state = host_manager.HostState(name, f'{name}-node', None)
    host_state.update(aggregates=aggregates)
    return host_state


def make_spec(extra_specs, **kwargs):
    return objects.RequestSpec(
        flavor=objects.Flavor(name='tiny', extra_specs=extra_specs), **kwargs
    )


class FilterTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config
        self.filter = aggregate_instance_type.AggregateInstanceTypeFilter()
        self.useFixture(log_once.Forgotten(aggregate_instance_type))
        self.logger = self.useFixture(
            fixtures.FakeLogger('nova_ext_sched', level=logging.DEBUG)
        )

    def passes(self, extra_specs, *metadata):
        """Return whether a host in aggregates with the metadata passes."""
        host_state = make_host(
            [make_aggregate(f'agg{i}', m) for i, m in enumerate(metadata)]
        )
        return self.filter.host_passes(host_state, make_spec(extra_specs))

    def lines(self, level):
        return [
            line
            for line in self.logger.output.splitlines()
            if line.startswith(level)
        ]


@ddt.ddt
class SpecificationTestCase(FilterTestCase):
    """Every example of the specification, word for word.

    The published text has lost the asterisks of use case 5's second example
    (``{"key": ""}``); both readings are tried.
    """

    def check(self, flavors, aggregates, expected):
        """Compare with the pairs (flavor, aggregate) that may be used.

        Flavors and aggregates are counted from 1.
        """
        found = {
            (f, a)
            for f, flavor in enumerate(flavors, 1)
            for a, metadata in enumerate(aggregates, 1)
            if self.passes(flavor, metadata)
        }
        self.assertEqual(set(expected), found)

    def test_four_flavors_by_three_aggregates(self):
        self.check(
            [{'key': '~'}, {'key': '<or> * <or> ~'}, {'key': '*'}, {}],
            [
                {'key': '1', 'force_metadata_check': 'False'},
                {},
                {'other key': '1', 'force_metadata_check': 'False'},
            ],
            [
                *[(1, 2), (1, 3)],
                *[(2, 1), (2, 2), (2, 3)],
                (3, 1),
                *[(4, 1), (4, 2), (4, 3)],
            ],
        )

    def test_any_and_absent_is_as_if_not_specified_under_force(self):
        flavors = [{}, {'key': '1'}, {'key': '*'}, {'key': '!'}]
        self.check(
            flavors,
            [{'key': '<or> * <or> ~', **FORCE}],
            [(1, 1), (2, 1), (3, 1), (4, 1)],
        )

    def test_exclamation_mark_excludes_the_others(self):
        for value in ('<or> ! <or> ~', '<or> * <or> !', '! ~', '! *'):
            self.check([{'key': value}], [{'key': '1'}, {}], [])

    def test_use_case_1(self):
        self.check(
            [{'key': '*'}],
            [{'key': '1'}, {'key': '2'}, {'key': ''}, {}, {'other': '1'}],
            [(1, 1), (1, 2), (1, 3)],
        )

    def test_use_case_2(self):
        self.check(
            [{'key': '<or> 1 <or> ~'}],
            [{'key': '1'}, {'key': '2'}, {}],
            [(1, 1), (1, 3)],
        )

    def test_use_case_3(self):
        self.check([{'key': '!'}], [{'key': '1'}, {}], [(1, 2)])

    def test_use_case_4(self):
        flavors = [{'key': '1'}, {'key': '2'}, {}]
        self.check(flavors, [{'key': '1', **FORCE}], [(1, 1)])

    def test_use_case_4_without_force(self):
        self.check(
            [{'key': '1'}, {'key': '2'}, {}],
            [{'key': '1'}, {'key': '1', 'force_metadata_check': 'False'}],
            [(1, 1), (1, 2), (3, 1), (3, 2)],
        )

    def test_use_case_5(self):
        flavors = [{'key': '1'}, {'key': '2'}, {}]
        self.check(flavors, [{'key': '*', **FORCE}], [(1, 1), (2, 1)])

    @ddt.data('*', '')
    def test_use_case_5_without_force(self, value):
        self.check(
            [
                {'key': '1'},
                {'key': '2'},
                {},
                {'key': value, 'key2': '2'},
            ],
            [
                {'key': value},
                {'key': value, 'force_metadata_check': 'False'},
            ],
            [(3, 1), (3, 2)],
        )

    def test_use_case_5_exclamation_mark(self):
        flavors = [{'key': '1'}, {'key': '2'}, {}]
        self.check(flavors, [{'key': '!', **FORCE}], [(3, 1)])

    def test_use_case_6(self):
        self.check(
            [{'key': '1'}, {'key': '2'}, {'key': '<or> 2 <or> 3'}, {}],
            [{'key': '<or> 1 <or> 2', **FORCE}],
            [(1, 1), (2, 1), (3, 1)],
        )

    def test_use_case_6_without_force(self):
        # Flavor 4, without extra specs, demands nothing and passes: "no
        # flavor will pass" is said of those that have the key (use case 4,
        # "without force_metadata_check ... flavor 3 will allow").
        self.check(
            [
                {'key': '1'},
                {'key': '2'},
                {'key': '<or> 2 <or> 3'},
                {},
                {'key': '<or> 1 <or> 2'},
            ],
            [
                {'key': '<or> 1 <or> 2'},
                {'key': '<or> 1 <or> 2', 'force_metadata_check': 'False'},
            ],
            [(4, 1), (4, 2)],
        )

    def test_use_case_7(self):
        self.check(
            [{'hw:cpu_policy': 'shared'}],
            [
                {'hw:cpu_policy': 'shared'},
                {'hw:cpu_policy': 'dedicated'},
                {},
            ],
            [(1, 1), (1, 3)],
        )

    def test_use_case_7_under_force(self):
        self.check(
            [{'hw:cpu_policy': 'shared'}, {}],
            [
                {'hw:cpu_policy': 'shared', **FORCE},
                {'hw:cpu_policy': 'dedicated', **FORCE},
                FORCE,
            ],
            [(1, 1), (1, 3), (2, 3)],
        )


@ddt.ddt
class AggregateInstanceTypeFilterTestCase(FilterTestCase):
    def test_once_per_request(self):
        self.assertTrue(self.filter.run_filter_for_index(0))
        self.assertFalse(self.filter.run_filter_for_index(1))

    def test_not_on_rebuild(self):
        self.assertFalse(self.passes({'key': '1'}))
        spec = make_spec({'key': '1'}, **base.REBUILD)
        self.assertTrue(self.filter.host_passes(make_host([]), spec))
        spec = make_spec({'key': '1'}, scheduler_hints=base.HINT)
        self.assertFalse(self.filter.host_passes(make_host([]), spec))

    def test_no_extra_specs(self):
        spec = objects.RequestSpec(flavor=objects.Flavor(name='tiny'))
        free, forced = (
            make_host([make_aggregate('agg', metadata)])
            for metadata in ({'k': '1'}, {'k': '1', **FORCE})
        )
        self.assertEqual([free], self.filter.filter_all([free, forced], spec))

    def test_what_nova_leaves_out_is_empty(self):
        aggregate = make_aggregate('agg', {})
        aggregate._obj_metadata = None
        flavor = objects.Flavor(name='tiny')
        flavor._obj_extra_specs = None
        hosts = [make_host([aggregate]), make_host([objects.Aggregate()])]
        for spec in (
            make_spec({}),
            make_spec({'key': '!'}),
            objects.RequestSpec(flavor=flavor),
            objects.RequestSpec(),
        ):
            self.assertEqual(hosts, self.filter.filter_all(hosts, spec))
        self.assertEqual(
            [], self.filter.filter_all(hosts, make_spec({'key': '1'}))
        )

    def test_hosts_without_aggregates(self):
        self.assertTrue(self.passes({}))
        self.assertTrue(self.passes({'key': '~'}))
        self.assertFalse(self.passes({'key': '1'}))

    def test_availability_zone_is_ignored_under_force(self):
        zone = {'availability_zone': 'az1', 'key': '1', **FORCE}
        self.assertTrue(self.passes({'key': '1'}, zone))
        self.config(
            group='nova_ext_sched', force_metadata_check_ignored_keys=[]
        )
        self.assertFalse(self.passes({'key': '1'}, zone))

    def test_ignored_keys(self):
        weights = {'cpu_weight_multiplier': '2', 'key': '1', **FORCE}
        self.assertFalse(self.passes({'key': '1'}, weights))
        self.config(
            group='nova_ext_sched',
            force_metadata_check_ignored_keys=['cpu_weight_multiplier'],
        )
        self.assertTrue(self.passes({'key': '1'}, weights))

    @ddt.data(
        'placement_req_required_member_prefix',
        'placement_req_default_forbidden_member_prefix',
    )
    def test_reserved_prefixes(self, option):
        reserved = {'reservation:7': 'true', **FORCE}
        extra_specs = {'reservation:7': 'false'}
        self.assertFalse(self.passes({}, reserved))
        self.assertFalse(self.passes(extra_specs, reserved))
        self.config(group='nova_ext_sched', **{option: ['reservation:']})
        self.assertTrue(self.passes({}, reserved))
        self.assertTrue(self.passes(extra_specs, reserved))

    def test_warning_where_novas_filter_is_enabled_too(self):
        enabled = ['AggregateInstanceTypeFilter']
        self.config(group='filter_scheduler', enabled_filters=enabled)
        self.assertEqual([], conf.contradictions(CONF))
        self.config(
            group='filter_scheduler',
            enabled_filters=[*enabled, 'AggregateInstanceExtraSpecsFilter'],
        )
        (found,) = conf.contradictions(CONF)
        self.assertIn('Remove AggregateInstanceExtraSpecsFilter', found)

    def test_update_of_an_aggregate_takes_effect_on_the_next_request(self):
        # As nova's host manager does it: the new object takes the place of
        # the old one, and host states get it with their next update.
        aggregate = make_aggregate('agg', {'key': '1'})
        host_state = make_host([aggregate])
        spec = make_spec({'key': '1'})
        self.assertEqual(
            [host_state], self.filter.filter_all([host_state], spec)
        )
        host_state.update(aggregates=[make_aggregate('agg', {'key': '2'})])
        self.assertEqual([], self.filter.filter_all([host_state], spec))
        # Changed in place.
        host_state.aggregates[0].metadata = {'key': '1'}
        self.assertEqual(
            [host_state], self.filter.filter_all([host_state], spec)
        )
        host_state.aggregates[0].metadata['key'] = '2'
        self.assertEqual([], self.filter.filter_all([host_state], spec))

    def test_sets_of_one_size_are_judged_by_themselves(self):
        one, two = (make_aggregate('agg', {'key': v}) for v in '12')
        hosts = [make_host([one]), make_host([two]), make_host([one, two])]
        spec = make_spec({'key': '1'})
        for some in (hosts, hosts[::-1]):
            passed = self.filter.filter_all(some, spec)
            self.assertEqual([h for h in some if h is not hosts[1]], passed)
        [(_, judge)] = self.filter.decisions(spec)
        self.assertEqual(
            [True, False, True], [judge(host).passes for host in hosts]
        )

    def test_objects_without_a_name(self):
        # As nova's own filter, ours reads names only to report them.
        host_state = make_host([objects.Aggregate(metadata={'k': 'x'})])
        spec = objects.RequestSpec(
            flavor=objects.Flavor(extra_specs={'k': '>= 4'})
        )
        self.assertEqual([], self.filter.filter_all([host_state], spec))
        self.assertIn('aggregate without a name', self.logger.output)

    def test_nothing_is_kept_beyond_the_request(self):
        spec = make_spec({'key': '1'})
        host_state = make_host([make_aggregate('agg', {'key': '<or>'})])
        before = dict(vars(self.filter))
        self.filter.filter_all([host_state], spec)
        self.assertEqual(before, vars(self.filter))

    def test_metadata_is_read_once_a_request(self):
        reads = []

        class Aggregate:
            @property
            def metadata(self):
                reads.append(1)
                return {'key': '1'}

        shared = Aggregate()
        hosts = [make_host([shared], f'host{n}') for n in range(9)]
        self.assertEqual(
            hosts, self.filter.filter_all(hosts, make_spec({'key': '1'}))
        )
        self.assertEqual([1], reads)


@ddt.ddt
class LogTestCase(FilterTestCase):
    def setUp(self):
        super().setUp()
        self.ones, self.twos, self.none = (
            make_aggregate(name, metadata)
            for name, metadata in (
                ('ones', {'key': '1'}),
                ('twos', {'key': '2'}),
                ('none', {}),
            )
        )

    def test_one_summary_with_the_most_frequent_reason_first(self):
        hosts = [
            make_host(aggregates)
            for aggregates in (
                *[[self.ones]] * 4,
                *[[self.none]] * 2,
                *[[self.twos, self.none], [self.none, self.twos]],
                [self.twos, self.none],
            )
        ]
        self.filter.filter_all(hosts, make_spec({'key': '1'}))
        (line,) = self.lines('')
        self.assertIn(
            'AggregateInstanceTypeFilter rejected 5 of 9 hosts: '
            "3 because flavor tiny wants 'key' to be '1' and the aggregates "
            "offer '2' (twos); 2 because flavor tiny wants 'key' to be '1' "
            'and no aggregate of the host has the key',
            line,
        )

    def test_nothing_is_said_where_all_pass(self):
        self.filter.filter_all([make_host([self.ones])], make_spec({}))
        self.assertEqual('', self.logger.output)

    @ddt.data(
        (
            {'key': '<or>'},
            {'key': '1'},
            "flavor tiny: extra spec 'key': expected '<or> VALUE",
        ),
        (
            {'key': '>= 4'},
            {'key': 'many'},
            "aggregate agg: metadata 'key': expected numbers",
        ),
        (
            {'key': '1'},
            {'key': '>= x', **FORCE},
            "aggregate agg: metadata 'key': expected '>= NUMBER'",
        ),
    )
    @ddt.unpack
    def test_one_warning_for_a_malformed_value(
        self, extra_specs, metadata, expected
    ):
        aggregate = make_aggregate('agg', metadata)
        hosts = [make_host([aggregate, self.ones]) for _ in range(50)]
        for _ in range(3):
            spec = make_spec(extra_specs)
            self.assertEqual([], self.filter.filter_all(hosts, spec))
        warnings = [line for line in self.lines('') if 'rejected' not in line]
        self.assertEqual(1, len(warnings), warnings)
        self.assertIn(f'AggregateInstanceTypeFilter: {expected}', warnings[0])

    def test_one_warning_for_each_of_several(self):
        aggregates = [
            make_aggregate(name, {'key': value, **FORCE})
            for name, value in (('a', '<or>'), ('b', '<or>'), ('c', '! 1'))
        ]
        hosts = [make_host([aggregate]) for aggregate in aggregates]
        for _ in range(2):
            self.filter.filter_all(hosts, make_spec({'k': '<or>'}))
        warnings = [line for line in self.lines('') if 'rejected' not in line]
        self.assertEqual(4, len(warnings), warnings)

    @ddt.data('ture', 'enabled', '', '2', 'True, True', '*')
    def test_flag_that_is_no_boolean(self, flag):
        aggregate = make_aggregate(
            'agg', {'key': '1', 'force_metadata_check': flag}
        )
        hosts = [make_host([aggregate]) for _ in range(9)]
        for _ in range(2):
            self.assertEqual(
                hosts, self.filter.filter_all(hosts, make_spec({}))
            )
        (line,) = self.lines('')
        self.assertIn(
            "aggregate agg: metadata 'force_metadata_check': expected one "
            f'of 1, t, true, on, y, yes, 0, f, false, off, n, no, got '
            f'{flag!r}',
            line,
        )


words = st.sampled_from(('1', '2', '3.0', '10', 'a', 'ab', 'b c', '', '-1'))
operators = st.sampled_from(
    ('=', '>=', '<=', '==', '!=', 's==', 's!=', 's<', 's<=', 's>', 's>=',
     '<in>', '<all-in>', '<or>')
)  # fmt: skip
requirements = st.one_of(
    words,
    st.tuples(operators, words).map(' '.join),
    st.lists(words, min_size=1, max_size=3).map(
        lambda some: ''.join(f'<or> {word} ' for word in some)
    ),
    st.lists(operators | words, max_size=4).map(' '.join),
)
keys = st.sampled_from(('k', 'l', 'm'))
novas_keys = keys | keys.map('aggregate_instance_extra_specs:{}'.format)
metadata = st.dictionaries(
    keys, st.lists(words, min_size=1, max_size=3).map(' , '.join), max_size=3
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
                    alone = make_host(
                        [make_aggregate('alone', {key: offer.strip()})]
                    )
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
        host_state = make_host(
            [make_aggregate(f'agg{i}', m) for i, m in enumerate(aggregates)]
        )
        spec = make_spec(extra_specs)
        novas = self.novas_answer(host_state, spec)
        ours = self.filter.filter_all([host_state], spec)
        self.assertIs(bool(novas), bool(ours))

    def test_where_novas_raises_ours_rejects(self):
        for requirement, value in (
            ('<or>', '1'),
            ('>= x', '1'),
            ('>= 4', 'many'),
            ('!= 4', ''),
        ):
            host_state = make_host([make_aggregate('agg', {'k': value})])
            spec = make_spec({'k': requirement})
            self.assertRaises(
                (IndexError, ValueError),
                self.novas.host_passes,
                host_state,
                spec,
            )
            self.assertEqual([], self.filter.filter_all([host_state], spec))


class AnyStringTestCase(FilterTestCase):
    anything = st.text(max_size=20) | st.text('<or>=!~*s in1,\n', max_size=9)
    items = st.dictionaries(anything | keys, anything, max_size=4)

    @hypothesis.given(
        anything,
        items,
        st.lists(st.tuples(anything, items), max_size=3),
        st.booleans(),
    )
    def test_nothing_raises_or_breaks_a_line(
        self, name, extra_specs, aggregates, forced
    ):
        host_state = make_host(
            [
                make_aggregate(agg, {**m, **(FORCE if forced else {})})
                for agg, m in aggregates
            ]
        )
        spec = make_spec(extra_specs)
        spec.flavor.name = name
        with fixtures.FakeLogger(
            'nova_ext_sched', level=logging.DEBUG, format='>%(message)s'
        ) as logger:
            passed = self.filter.filter_all([host_state], spec)
        [(_, judge)] = self.filter.decisions(spec)
        verdict = judge(host_state)
        self.assertIs(bool(passed), verdict.passes)
        self.assertTrue(verdict.reason.isprintable(), ascii(verdict.reason))
        lines = logger.output.split('\n')
        self.assertEqual('', lines.pop())
        for line in lines:
            self.assertTrue(line.startswith('>'), ascii(line))
            self.assertTrue(line.isprintable(), ascii(line))
