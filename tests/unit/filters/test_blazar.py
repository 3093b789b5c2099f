# SPDX-License-Identifier: Apache-2.0

import logging
import random

import ddt
from hypothesis import given
from hypothesis import strategies as st
from nova import objects

from nova_ext_sched import request_state
from nova_ext_sched.filters import blazar
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

INSTANCE = {'aggregate_instance_extra_specs:reservation': 'a'}


def blazar_spec(extra_specs=(), **fields):
    return test_base.request_spec(
        flavor=test_base.flavor(extra_specs=dict(extra_specs)), **fields
    )


def pool(name, owner='project'):
    written = {'availability_zone': f'blazar_{name}', 'blazar:owner': owner}
    return filters_base.aggregate(name, metadata=written)


@ddt.ddt
class BlazarFilterTestCase(test_base.RequestFilterTestCase):
    level = logging.INFO

    def setUp(self):
        super().setUp()
        self.filter = blazar.BlazarFilter()
        self.cloud = [
            pool('mine'),
            pool('others', 'other'),
            filters_base.aggregate('freepool'),
            filters_base.aggregate('ssd'),
        ]

    def passing(self, spec):
        """Judge a host in one aggregate, for each; return names."""
        hosts = [filters_base.host_state(one.name, one) for one in self.cloud]
        hosts.append(filters_base.host_state('plain'))
        return filters_base.names(self.filter.filter_all(hosts, spec))

    @ddt.data(
        ({}, {}, ['ssd', 'plain']),
        ({'reservation': ['mine', 'others']}, {}, ['mine']),
        ({}, INSTANCE, ['mine', 'others', 'freepool', 'ssd', 'plain']),
    )
    @ddt.unpack
    def test_requests(self, hints, extra_specs, expected):
        spec = blazar_spec(extra_specs, scheduler_hints=hints)
        self.assertEqual(expected, self.passing(spec))

    @ddt.data('project_id', 'flavor')
    def test_a_request_that_cannot_be_read(self, field):
        """blazar-nova raises; every host is rejected, with one warning."""
        hints = {'reservation': ['mine']} if field == 'project_id' else {}
        spec = objects.RequestSpec(scheduler_hints=hints)
        for _ in range(2):
            self.assertEqual([], self.passing(spec))
        logged = f'\n{self.output.output}'
        self.assertEqual(1, logged.count('\nBlazarFilter rejects'))

    def test_what_stage_1_left_out(self):
        spec = blazar_spec()
        left_out = request_state.LeftOut({'ssd': 'pool'})
        request_state.of(spec).left_out['blazar'] = left_out
        self.assertEqual(['plain'], self.passing(spec))

    def test_a_hint_that_names_nothing(self):
        """Refused as by the request filter, and no warning."""
        spec = blazar_spec(scheduler_hints={'reservation': ['\ud800']})
        self.assertEqual([], self.passing(spec))
        self.assertIn('255 printable characters', self.output.output)
        self.assertNotIn('cannot read which reservations', self.output.output)

    @ddt.data(
        ({'name': 'a'}, 'a has no metadata'),
        ({'metadata': {}}, 'without a name'),
    )
    @ddt.unpack
    def test_an_aggregate_that_cannot_be_read(self, fields, reason):
        """It may be a pool, so its hosts take no server."""
        unreadable = objects.Aggregate(hosts=[], **fields)
        plain = filters_base.aggregate('plain')
        host = filters_base.host_state('h', plain, unreadable)
        for hints in ({}, {'reservation': ['a']}):
            spec = blazar_spec(scheduler_hints=hints)
            self.assertEqual([], self.filter.filter_all([host], spec))
        self.assertIn(reason, self.output.output)


class Clouds(random.Random):
    """Random clouds, options and requests, of names that often meet."""

    NAMES = ('a', 'a', 'b', 'freepool', 'spot', 'A')
    PROJECTS = ('me', 'you', 'blazar:owner', 'blazar')
    ZONES = (
        'blazar_a', 'blazar:a', 'blazar_', 'Blazar_a', 'blazar', 'nova', 'x',
        '', 'None',
    )  # fmt: skip

    def some(self, values, most=3):
        return self.choices(values, k=self.randint(0, most))

    def options(self):
        choices = {
            'aggregate_freepool_name': ['freepool', 'freepool', 'a', ''],
            'allow_preemptibles': [True, False],
            'preemptible_aggregate': ['freepool', 'spot', 'b', ''],
            'project_id_key': ['blazar:tenant', 'me'],
            'blazar_owner': [*['blazar:owner'] * 2, 'me', 'availability_zone'],
            'blazar_az_prefix': ['blazar_', 'blazar_', 'x', '', 'blazar'],
        }
        return {name: self.choice(values) for name, values in choices.items()}

    def aggregate(self):
        metadata = {
            key: self.choice(['', 'true', 'blazar:project', *self.PROJECTS])
            for key in self.some(self.PROJECTS)
        }
        if self.random() < 0.7:
            metadata['availability_zone'] = self.choice(self.ZONES)
        if self.random() < 0.7:
            metadata['blazar:owner'] = self.choice(['me', *self.PROJECTS])
        name = self.choice(self.NAMES)
        return filters_base.aggregate(name, metadata=metadata)

    def hosts(self):
        aggregates = [self.aggregate() for _ in range(6)]
        return [
            filters_base.host_state(str(number), *self.some(aggregates))
            for number in range(5)
        ]

    def spec(self):
        extra_specs = {}
        if self.random() < 0.1:
            extra_specs.update(INSTANCE)
        if self.random() < 0.5:
            extra_specs['blazar:preemptible'] = self.choice(
                ['True', 'true', 'yes', '1', ' on', 'False', '', 'maybe']
            )
        hints = self.choice(
            [
                {},
                {'group': ['a']},
                {'reservation': self.some(self.NAMES)},
                {'reservation': [self.choice(['a', 'b', 'freepool', ''])]},
            ]
        )
        # No other field is read, and there are many of them.
        return objects.RequestSpec(
            flavor=objects.Flavor(extra_specs=extra_specs),
            scheduler_hints=hints,
            project_id=self.choice(['me', 'me', *self.PROJECTS, None, '']),
        )


class BlazarNovaTestCase(test_base.RequestFilterTestCase):
    """Beside blazar-nova's class: 3,000 requests, on 5 hosts each.

    NOVA_EXT_SCHED_TEST_EXAMPLES sets how many clouds there are, 60 by
    default, of 50 requests each.
    """

    def setUp(self):
        super().setUp()
        try:
            from blazarnova.scheduler.filters import blazar_filter
        except ImportError as exc:
            self.skipTest(f'blazar-nova is not installed: {exc}')
        self.theirs = blazar_filter.BlazarFilter()
        self.filter = blazar.BlazarFilter()

    @given(seed=st.integers(0, 2**32))
    def test_same_answers(self, seed):
        clouds = Clouds(seed)
        options = clouds.options()
        self.config(group='blazar:physical:host', **options)
        hosts = clouds.hosts()
        for _ in range(50):
            spec = clouds.spec()
            theirs, ours = (
                filters_base.names(one.filter_all(hosts, spec))
                for one in (self.theirs, self.filter)
            )
            cloud = [(state.host, state.aggregates) for state in hosts]
            self.assertEqual(theirs, ours, (options, spec, cloud))
