# SPDX-License-Identifier: Apache-2.0

import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import isolation


def metadata(*traits):
    return {f'trait:{trait}': 'required' for trait in traits}


def items(aggregates):
    """The metadata items of aggregates, given their metadata by UUID."""
    return [
        (uuid, f'name of {uuid}', key, value)
        for uuid, metadata in aggregates.items()
        for key, value in metadata.items()
    ]


def lacking_traits(aggregates, required):
    """What the request filter asks, given metadata by UUID."""
    traits = isolation.read(items(aggregates))[0]
    return isolation.lacking_traits(traits, set(required))


@ddt.ddt
class TruthTableTestCase(testtools.TestCase):
    """Every row of the table in the module's docstring."""

    @ddt.data(
        ((), (), True),
        ((), ('X',), True),
        (('X',), (), False),
        (('X',), ('X',), True),
        (('X',), ('Y',), False),
        (('X',), ('X', 'Y'), True),
        (('X', 'Y'), (), False),
        (('X', 'Y'), ('X',), False),
        (('X', 'Y'), ('Y',), False),
        (('X', 'Y'), ('X', 'Y'), True),
        (('X', 'Y'), ('X', 'Y', 'Z'), True),
    )
    @ddt.unpack
    def test_decision(self, aggregate, request, allowed):
        verdict = isolation.judge([('agg', metadata(*aggregate))], request)
        self.assertEqual(allowed, verdict.passes, verdict.reason)
        lacking = lacking_traits({'agg': metadata(*aggregate)}, request)
        self.assertEqual(allowed, not lacking)


@ddt.ddt
class ReadItemTestCase(testtools.TestCase):
    """Every row of read_item's table, and what is near it."""

    @ddt.data(
        ('trait:X', 'required', 'X', False),
        # What a person reads as required.
        ('trait:X', 'Required', 'X', True),
        ('trait:X', ' required\t', 'X', True),
        ('Trait:X', 'required', 'X', True),
        (' trait:X', 'required', 'X', True),
        ('trait: X ', 'required', 'X', True),
        # No request can require these, so the aggregate takes none.
        ('trait:', 'required', '', True),
        ('trait:custom_x', 'required', 'custom_x', True),
        ('trait:CUSTOM-X', 'Required', 'CUSTOM-X', True),
        ('trait:' + 'X' * 256, 'required', 'X' * 256, True),
        # Nothing is isolated.
        ('trait:X', 'forbidden', None, True),
        ('trait:X', '', None, True),
        ('trait:X', None, None, True),
        ('trait :X', 'required', None, True),
        ('traits:X', ' Required', None, True),
        ('xtrait:X', 'required', None, True),
        ('trait', 'required', None, True),
        ('aggregate_instance_extra_specs:trait:X', 'required', None, True),
        ('CUSTOM_X', 'required', None, True),
        # Nobody meant it.
        ('trait :X', 'forbidden', None, False),
        ('portrait:X', 'required', None, False),
        ('zone:trait', 'required', None, False),
        ('X', 'required', None, False),
        ('os:secure_boot', 'required', None, False),
        ('', 'required', None, False),
    )
    @ddt.unpack
    def test_table(self, key, value, trait, faulty):
        item = isolation.read_item(key, value)
        self.assertEqual((trait, faulty), (item.trait, bool(item.fault)))
        missing = lacking_traits({'agg': {key: value}}, ())
        self.assertEqual({} if trait is None else {'agg': {trait}}, missing)
        if trait:
            found = isolation.judge([('agg', {key: value})], {trait})
            self.assertTrue(found.passes)

    @ddt.data(
        ('trait:X', 'forbidden',
         "aggregate windows: metadata trait:X: expected 'required', got "
         "'forbidden'; the item has no effect"),
        ('Trait:X', 'Required ',
         'aggregate windows: metadata Trait:X: expected '
         "'trait:X=required', got 'Trait:X=Required '; the aggregate is "
         "isolated anyway, but by nova's own filter on some databases "
         'only: correct it'),
        ('trait:x', 'required',
         'aggregate windows: metadata trait:x: expected a trait name of '
         "A-Z, 0-9 and _, got 'x'; no request can require it, so the "
         'aggregate takes no server'),
        ('traits:X', 'required',
         'aggregate windows: metadata traits:X: expected '
         "'trait:<NAME>=required', got 'traits:X=required'; the item "
         'has no effect'),
        ('trait:X', 'required', ''),
        ('zone', 'required', ''),
    )  # fmt: skip
    @ddt.unpack
    def test_fault_names_aggregate_key_and_value(self, key, value, expected):
        _, faults = isolation.read([('u', 'windows', key, value)])
        self.assertEqual([expected] if expected else [], faults)


class JudgeTestCase(testtools.TestCase):
    def test_every_aggregate_of_the_host_counts(self):
        aggregates = [
            ('plain', {'availability_zone': 'az1'}),
            ('windows', metadata('X')),
            ('gpu', metadata('Y')),
        ]
        reason = 'the request is not allowed in gpu: it does not require Y'
        verdict = isolation.judge(aggregates, {'X'})
        self.assertEqual((False, reason, 'gpu', False, False), verdict[:5])
        self.assertFalse(isolation.judge(aggregates, {'Y'}).passes)
        self.assertTrue(isolation.judge(aggregates, {'X', 'Y'}).passes)

    def test_the_first_by_name_is_to_blame(self):
        aggregates = [('b', metadata('X')), ('a', metadata('Y'))]
        for some in (aggregates, aggregates[::-1]):
            self.assertEqual('a', isolation.judge(some, set()).aggregate)

    def test_reason_lists_every_missing_trait_in_order(self):
        verdict = isolation.judge([('a', metadata('Z', 'Y', 'X'))], {'Y'})
        self.assertIn('does not require X, Z', verdict.reason)


traits = st.sets(st.sampled_from('ABCDEF'))


class ChooseTraitsTestCase(testtools.TestCase):
    @given(st.lists(traits, max_size=6), traits, traits, st.integers(0, 4))
    def test_chosen_traits_are_among_those_that_the_request_lacks(
        self, aggregates, required, usable, limit
    ):
        given = {str(i): metadata(*agg) for i, agg in enumerate(aggregates)}
        lacking = lacking_traits(given, required)
        forbidden = isolation.choose_traits(lacking, usable, limit)
        # Never a trait that the request requires, or that was not offered.
        self.assertLessEqual(forbidden, usable - required)
        self.assertLessEqual(forbidden, set().union(*lacking.values()))
        self.assertLessEqual(len(forbidden), limit)

    def test_limit_takes_the_traits_that_cover_most(self):
        lacking = {'1': ['A'], '2': ['B'], '3': ['B'], '4': ['C']}
        for limit, expected in ((1, 'B'), (2, 'AB'), (9, 'ABC')):
            found = isolation.choose_traits(lacking, {*'ABC'}, limit)
            self.assertEqual({*expected}, found)


class ResolveTestCase(testtools.TestCase):
    def test_what_no_chosen_trait_covers_is_forbidden(self):
        lacking = {'1': {'A'}, '2': {'A', 'C'}, '3': {'B'}, '4': {'D'}}
        for room, traits, forbidden in (
            (0, '', '1234'),
            (1, 'A', '34'),
            (2, 'AB', '4'),
        ):
            found = isolation.resolve(lacking, set(), {'A', 'B'}, room)
            self.assertEqual({*traits}, found.traits)
            self.assertEqual([*forbidden], found.forbidden)
            self.assertEqual(set('1234') - set(forbidden), found.covered)


@ddt.ddt
class DeclaredTraitsTestCase(testtools.TestCase):
    @ddt.data(
        ((), 'CUSTOM_A', False),
        (('CUSTOM_A',), 'CUSTOM_A', True),
        (('CUSTOM_A',), 'CUSTOM_AB', False),
        (('CUSTOM_*',), 'CUSTOM_A', True),
        (('CUSTOM_*',), 'CUSTOM_', True),
        (('CUSTOM_*',), 'HW_CPU_X86_VMX', False),
        (('*',), 'HW_CPU_X86_VMX', True),
        (('C*M_A',), 'CUSTOM_A', False),
        (('X', 'CUSTOM_*'), 'X', True),
    )
    @ddt.unpack
    def test_contains(self, patterns, trait, expected):
        declared = isolation.DeclaredTraits(patterns)
        self.assertEqual(expected, trait in declared)
        self.assertEqual(bool(patterns), bool(declared))
