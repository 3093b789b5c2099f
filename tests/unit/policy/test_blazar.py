# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched import conf
from nova_ext_sched.policy import blazar

INSTANCE = {blazar.INSTANCE_RESERVATION: 'a'}
PREEMPTIBLE = {blazar.PREEMPTIBLE: 'True'}

ON = {'allow_preemptibles': True}
# A pool for preemptible servers beside that of free hosts.
APART = {'preemptible_aggregate': 'spot', **ON}


def pool(name, owner='me', **metadata):
    """A host reservation's pool, as Blazar writes it."""
    written = {'availability_zone': f'blazar_{name}', 'blazar:owner': owner}
    return name, written | metadata


PLAIN = ('plain', {'availability_zone': 'nova', 'ssd': 'true'})
FREE = ('freepool', {'blazar:owner': 'blazar'})
SPOT = ('spot', {})
#: Known by its name and by its zone.
TWICE = pool('freepool', 'blazar')


OPTIONS = {option.name: option.default for option in conf.blazar.OPTS}


def compile_request(hints=(), extra_specs=(), project='me', **options):
    config = types.SimpleNamespace(**OPTIONS | options)
    return blazar.Request.compile(config, hints, dict(extra_specs), project)


def items(aggregates):
    """Their items as the API database gives them; their UUIDs are indexes."""
    for uuid, (name, metadata) in enumerate(aggregates):
        for key, value in metadata.items() or [(None, None)]:
            yield uuid, name, key, value


def stage_1(request, aggregates):
    """Whether placement's answer would have a host in these aggregates."""
    required, forbidden, _, unmet, *_ = request.resolve(items(aggregates))
    return not unmet and is_left(
        set(range(len(aggregates))), required, forbidden
    )


def is_left(host, required, forbidden):
    """Whether placement returns a host in aggregates with these UUIDs."""
    return host.isdisjoint(forbidden) and not any(
        host.isdisjoint(uuids) for uuids in required
    )


@ddt.ddt
class TruthTableTestCase(testtools.TestCase):
    """Every row of the table in the module's docstring, at both stages."""

    def check(self, expected, request, *aggregates):
        if request is None:
            self.assertTrue(expected)
            return
        passes, reason, *_ = request.judge(aggregates)
        self.assertEqual((expected, expected), (passes, not reason), reason)
        self.assertEqual(expected, stage_1(request, aggregates))

    @ddt.data(
        (True,),
        (True, PLAIN),
        (False, pool('a')),
        (False, PLAIN, pool('a', 'other')),
        (False, FREE),
        (False, TWICE),
        (True, SPOT),
        (False, ('a', {'availability_zone': 'blazar:a'})),
        # No pool: Blazar gives the aggregates of instance reservations no
        # zone, and zones are compared exactly.
        (True, ('a', {'blazar:owner': 'me', 'reservation': 'a'})),
        (True, ('a', {'availability_zone': 'Blazar_a'})),
        (True, ('a', {'availability_zone': 'my_blazar_a'})),
        (True, ('a', {'availability_zone': 'blazarXa'})),
        (True, ('a', {'availability_zone': ''})),
        (True, ('Freepool', {})),
    )
    def test_no_hint(self, row):
        expected, *aggregates = row
        self.check(expected, compile_request(), *aggregates)

    @ddt.data(
        (['a'], False),
        (['a'], False, PLAIN),
        (['a'], False, FREE),
        (['a'], True, pool('a')),
        (['a'], True, PLAIN, pool('a')),
        (['a'], False, pool('b')),
        (['a'], False, pool('A')),
        (['a'], False, pool('a', 'other')),
        (['a'], True, pool('a', 'other', me='blazar:project')),
        (['a'], True, pool('a', 'other', me='anything')),
        (['a'], False, pool('a', 'other', me='')),
        (['a'], False, pool('a', 'other', you='blazar:project')),
        (['a'], False, ('a', {'availability_zone': 'blazar_a'})),
        (['a'], True, FREE, pool('a'), pool('b', 'other')),
        # One aggregate of that name is no pool.
        (['a'], False, ('a', {'blazar:owner': 'me'})),
        (['a'], True, ('x', {'blazar:owner': 'me'}), pool('a')),
        (['a'], True, ('a', {'availability_zone': 'blazar:a',
                             'blazar:owner': 'me'})),
        # Several reservations.
        (['a', 'b'], True, pool('b')),
        (['b', 'a'], True, pool('a')),
        (['a', 'b'], False, pool('b', 'other')),
        (['a', 'b'], False, pool('c')),
        # The pool of free hosts is a pool as others are.
        (['freepool'], False, FREE),
        (['freepool'], True, ('freepool', {'blazar:owner': 'me'})),
        ([''], False, PLAIN),
    )  # fmt: skip
    def test_hint(self, row):
        hints, expected, *aggregates = row
        for extra_specs in ({}, INSTANCE, PREEMPTIBLE):
            request = compile_request(hints, extra_specs, **ON)
            self.check(expected, request, *aggregates)

    def test_a_host_in_several_pools(self):
        """The first decides; stage 1 leaves such a host to stage 2."""
        mine, other = pool('a'), pool('b', 'other')
        request = compile_request(['a', 'b'])
        self.assertTrue(request.judge([mine, other]).passes)
        self.assertFalse(request.judge([other, mine]).passes)
        self.assertTrue(stage_1(request, [other, mine]))

    @ddt.data(None, 'me')
    def test_nobodys_pool(self, project):
        """Only a request without a project owns it, as in blazar-nova."""
        request = compile_request(['a'], project=project)
        nobodys = ('a', {'availability_zone': 'blazar_a'})
        self.check(project is None, request, nobodys)

    @ddt.data(
        ((), INSTANCE, False, True),
        ((), {**INSTANCE, **PREEMPTIBLE}, True, True),
        ((), {blazar.INSTANCE_RESERVATION: ''}, False, True),
        (('a',), INSTANCE, False, False),
        ((), {'reservation': 'a'}, False, False),
        ((), PREEMPTIBLE, False, False),
    )
    @ddt.unpack
    def test_every_host(self, hints, extra_specs, allowed, expected):
        options = {'allow_preemptibles': allowed}
        request = compile_request(hints, extra_specs, **options)
        self.assertIs(expected, request is None)

    @ddt.data(
        (ON, True, FREE),
        (ON, True, PLAIN, FREE),
        (ON, False, TWICE),
        (ON, False, PLAIN),
        (ON, False),
        (ON, False, pool('a')),
        (ON, False, FREE, pool('a')),
        (APART, True, SPOT),
        (APART, False, SPOT, FREE),
        (APART, False, FREE),
        (APART, False, SPOT, pool('a')),
        (APART, False, SPOT, TWICE),
        (ON, False, FREE, pool('spot')),
        ({}, False, FREE),
        ({}, True, PLAIN),
    )
    def test_preemptible(self, row):
        rules, expected, *aggregates = row
        for value in ('True', 'yes', '1', ' on '):
            request = compile_request((), {blazar.PREEMPTIBLE: value}, **rules)
            self.check(expected, request, *aggregates)

    @ddt.data('False', 'no', '', 'preemptible')
    def test_not_preemptible(self, value):
        request = compile_request((), {blazar.PREEMPTIBLE: value}, **ON)
        self.check(False, request, FREE)
        self.check(True, request, PLAIN)

    @ddt.data(
        ({'blazar_az_prefix': 'lease-'}, False,
         ('a', {'availability_zone': 'lease-a'})),
        ({'blazar_az_prefix': 'lease-'}, True, pool('a')),
        # Every zone is Blazar's then.
        ({'blazar_az_prefix': ''}, False, PLAIN),
        ({'blazar_az_prefix': ''}, True, SPOT),
        ({'aggregate_freepool_name': 'free'}, False, ('free', {})),
        ({'aggregate_freepool_name': 'free',
          'preemptible_aggregate': 'spot'}, True, FREE),
        ({'preemptible_aggregate': 'spot'}, False, SPOT),
    )  # fmt: skip
    @ddt.unpack
    def test_options(self, options, expected, aggregate):
        self.check(expected, compile_request(**options), aggregate)

    def test_owner_key(self):
        request = compile_request(['a'], blazar_owner='lessee')
        self.check(False, request, pool('a'))
        self.check(True, request, pool('a', 'other', lessee='me'))


@ddt.ddt
class ReasonTestCase(testtools.TestCase):
    @ddt.data(
        ((), {}, [pool('a')],
         "aggregate a is a pool of Blazar (in zone 'blazar_a') and the "
         'request names no reservation'),
        ((), {}, [FREE],
         'aggregate freepool is a pool of Blazar (of free hosts) and the '
         'request names no reservation'),
        (('b', 'a'), {}, [FREE],
         'no pool of Blazar that the host is in is named a, b'),
        (('a',), {}, [pool('a', 'you')],
         "Blazar's pool a has blazar:owner=you and no key for project me, "
         'which asks for it'),
        (('freepool',), {}, [('freepool', {})],
         "Blazar's pool freepool has no blazar:owner and no key for project "
         'me, which asks for it'),
        ((), PREEMPTIBLE, [],
         'a preemptible server must be in aggregate freepool and no other '
         'pool of Blazar; the host is in none'),
        ((), PREEMPTIBLE, [FREE, pool('a')],
         'a preemptible server must be in aggregate freepool and no other '
         'pool of Blazar; the host is in freepool (of free hosts), a (in '
         "zone 'blazar_a')"),
    )  # fmt: skip
    @ddt.unpack
    def test_reason(self, hints, extra_specs, aggregates, reason):
        request = compile_request(hints, extra_specs, **ON)
        self.assertEqual(reason, request.judge(aggregates).reason)

    @ddt.data(
        ((), {}, [PLAIN, pool('a')], ('a', False)),
        (('b',), {}, [pool('a')], ('', True)),
        (('freepool',), {}, [pool('a'), FREE], ('freepool', False)),
        ((), PREEMPTIBLE, [], ('', True)),
        ((), PREEMPTIBLE, [FREE, pool('a')], ('a', False)),
    )
    @ddt.unpack
    def test_what_is_to_blame(self, hints, extra_specs, aggregates, blame):
        found = compile_request(hints, extra_specs, **ON).judge(aggregates)
        self.assertEqual(blame, (found.aggregate, found.lacks))

    def test_spot(self):
        request = compile_request(preemptible_aggregate='spot')
        self.assertIn('(of preemptibles)', request.judge([SPOT]).reason)

    @ddt.data(
        ([pool('b')], 'no pool of Blazar is named a'),
        ([('a', {'blazar:owner': 'me'})], 'no pool of Blazar is named a'),
        ([pool('a', 'you')], "Blazar's pool a has blazar:owner=you and no "
         'key for project me, which asks for it'),
    )  # fmt: skip
    @ddt.unpack
    def test_unmet(self, aggregates, detail):
        """A user learns nothing of others' reservations."""
        found = compile_request(['a']).resolve(items(aggregates))
        self.assertEqual(
            'no reservation that project me may use is named a', found.unmet
        )
        self.assertEqual(detail, found.detail)

    def test_what_others_wrote_is_quoted(self):
        name = 'a\nERROR forged'
        for found in (
            compile_request().judge([pool(name)]).reason,
            compile_request([name]).judge([pool(name, name)]).reason,
            compile_request([name]).judge([]).reason,
            compile_request([name]).resolve([]).unmet,
            compile_request([name]).resolve([]).detail,
            compile_request((), PREEMPTIBLE, **ON).judge([pool(name)]).reason,
            compile_request((), PREEMPTIBLE, allow_preemptibles=True,
                            preemptible_aggregate=name).judge([]).reason,
        ):  # fmt: skip
            self.assertNotIn('\n', found)
            self.assertIn('a\\nERROR forged', found)


ZONES = st.sampled_from(['', 'nova', 'blazar_a', 'blazar_b', 'blazar:a'])
PROJECTS = ['me', 'you']
METADATA = st.fixed_dictionaries(
    {},
    optional={
        'availability_zone': ZONES,
        'blazar:owner': st.sampled_from(PROJECTS),
        'me': st.sampled_from(['', 'blazar:project']),
        'you': st.just('blazar:project'),
    },
)
AGGREGATES = st.lists(
    st.tuples(st.sampled_from(['a', 'b', 'freepool', 'spot', 'x']), METADATA),
    max_size=5,
    # As in nova's API database.
    unique_by=lambda aggregate: aggregate[0],
)


class StagesTestCase(testtools.TestCase):
    @given(
        aggregates=AGGREGATES,
        host=st.sets(st.integers(0, 4)),
        hints=st.lists(st.sampled_from(['a', 'b', 'freepool', 'x'])),
        extra_specs=st.sampled_from([{}, PREEMPTIBLE]),
        rules=st.sampled_from([{}, ON, APART]),
    )
    def test_stage_1_asks_what_stage_2_decides(
        self, aggregates, host, hints, extra_specs, rules
    ):
        request = compile_request(hints, extra_specs, **rules)
        required, forbidden, _, unmet, *_ = request.resolve(items(aggregates))
        mine = [a for i, a in enumerate(aggregates) if i in host]
        left_in = not unmet and is_left(host, required, forbidden)
        passes = request.judge(mine).passes
        if passes:
            self.assertTrue(left_in)
        elif left_in:
            # The one case that is left to stage 2.
            named = [agg for agg in mine if agg[0] in hints]
            self.assertLess(1, len(named))

    @given(aggregates=AGGREGATES, hints=st.lists(st.sampled_from('ab')))
    def test_what_resolve_must_know_is_enough(self, aggregates, hints):
        request = compile_request(hints)
        zones = tuple(request.zone_prefixes)
        known = [
            (uuid, name, key, value)
            for uuid, name, key, value in items(aggregates)
            if name in request.names
            or (key == 'availability_zone' and value.startswith(zones))
        ]

        def count(given):
            required, forbidden, *rest = request.resolve(given)
            return [*map(len, required)], len(forbidden), rest

        self.assertEqual(count(items(aggregates)), count(known))
