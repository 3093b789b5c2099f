# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
from nova import objects

from nova_ext_sched.request_filters import blazar
from tests.unit.request_filters import base as test_base

ZONE = 'availability_zone'
INSTANCE = {'aggregate_instance_extra_specs:reservation': 'a'}
PREEMPTIBLE = {'blazar:preemptible': 'true'}
SHARED = {'project': 'blazar:project'}


@ddt.ddt
class BlazarReservationsTestCase(test_base.RequestFilterTestCase):
    level = logging.INFO

    def setUp(self):
        super().setUp()
        self.enable('BlazarFilter')
        self.aggregates = {
            'A': ('a', {ZONE: 'blazar_a', 'blazar:owner': 'project'}),
            'B': ('b', {ZONE: 'blazar_b', 'blazar:owner': 'other'}),
            'C': ('c', {ZONE: 'blazar_c', 'blazar:owner': 'other'} | SHARED),
            'F': ('freepool', {'blazar:owner': 'other'}),
            'S': ('spot', {}),
            'P': ('plain', {ZONE: 'nova'}),
        }
        self.asked = []
        self.replace('queries.aggregates.get_by_name_or_value', self.get)
        self.spec = test_base.request_spec()

    def get(self, ctxt, *asked):
        self.asked.append(asked)
        names, key, prefixes = asked
        return [
            (uuid, name, one, metadata.get(one))
            for uuid, (name, metadata) in self.aggregates.items()
            for one in [None, *metadata]
            if name in names
            or (one == key and metadata[one].startswith(tuple(prefixes)))
        ]

    def filter(self, hints=(), extra_specs=()):
        if hints:
            self.spec.scheduler_hints = {'reservation': list(hints)}
        self.spec.flavor.extra_specs = dict(extra_specs)
        return blazar.blazar_reservations(self.ctxt, self.spec)

    def destination(self):
        return test_base.destination_of(self.spec)

    def test_off(self):
        """Without BlazarFilter, an aggregate's name means nothing."""
        self.enable('X')
        self.assertIs(False, self.filter())
        self.assertEqual([], self.asked)
        self.assertIsNone(self.destination())

    @ddt.data(
        ((), {}, None, {'A', 'B', 'C', 'F'}),
        (['a', 'b', 'c', 'x'], {}, ['A,C'], None),
        (['a'], INSTANCE, ['A'], None),
    )
    @ddt.unpack
    def test_membership(self, hints, extra_specs, required, forbidden):
        self.assertIs(True, self.filter(hints, extra_specs))
        self.assertEqual((required, forbidden), self.destination())
        self.assertEqual(1, len(self.asked))

    @ddt.data(
        ('freepool', ['F'], {'A', 'B', 'C'}),
        ('spot', ['S'], {'A', 'B', 'C', 'F'}),
    )
    @ddt.unpack
    def test_preemptible(self, aggregate, required, forbidden):
        self.config(
            group='blazar:physical:host',
            allow_preemptibles=True,
            preemptible_aggregate=aggregate,
        )
        self.assertIs(True, self.filter((), PREEMPTIBLE))
        self.assertEqual((required, forbidden), self.destination())

    def test_instance_reservation_is_left_as_it_is(self):
        self.assertIs(False, self.filter((), INSTANCE))
        self.assertIsNone(self.destination())
        self.assertEqual([], self.asked)

    def test_reservation_of_another_project(self):
        self.assertIn(
            'no reservation that project project may use is named b',
            self.assertFails(self.filter, ['b']),
        )

    def test_bound(self):
        """The rest is left to BlazarFilter, on which stage 1 depends."""
        self.set(max_forbidden_aggregates=2)
        hosts = {'B': '12', 'F': '123', 'A': '1'}
        self.replace('queries.aggregates.get_hosts', lambda ctxt: hosts)
        self.assertIs(True, self.filter())
        self.assertEqual((None, {'B', 'F'}), self.destination())
        self.assertIn('BlazarFilter checks the hosts', self.output.output)

    @ddt.data(
        (['\ud800'], "printable characters, got '\\ud800'"),
        # Of four bytes; what nova's tables in MySQL do not take.
        (['a', '\U0001f600'], "got '\\U0001f600'"),
        (['x' * 256], 'expected a name of up to 255'),
        ([str(n) for n in range(101)], 'names 101 reservations: expected'),
    )
    @ddt.unpack
    def test_a_hint_that_names_nothing(self, hint, reason):
        """The request's own fault, before any database is asked."""
        self.assertIn(reason, self.assertFails(self.filter, hint))
        self.assertEqual([], self.asked)
        self.assertIn('no host for request', self.output.output)
        self.assertNotIn('could land on any host', self.output.output)

    def test_a_hundred_reservations(self):
        self.assertIs(True, self.filter(['a', *map(str, range(99))]))

    def test_a_request_without_a_project_is_refused(self):
        flavor = test_base.flavor(extra_specs={})
        self.spec = objects.RequestSpec(flavor=flavor)
        self.assertIn('cannot decide', self.assertFails(self.filter, ['a']))
