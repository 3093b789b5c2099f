# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import ddt
import hypothesis
from hypothesis import strategies as st
from nova.scheduler.filters import extra_specs_ops
import testtools

from nova_ext_sched import exception
from nova_ext_sched.policy import expression

NUMBERS = ('=', '>=', '<=', '==', '!=')
STRINGS = ('s==', 's!=', 's<', 's<=', 's>', 's>=')
OPERATORS = (*NUMBERS, *STRINGS, '<in>', '<all-in>', '<or>')

# Words that are close to one another, so that operators often accept.
words = st.sampled_from(
    ('1', '2', '10', '4.0', '-3', 'inf', 'nan', 'a', 'ab', 'abc', 'b', '<or>',
     '>=', 's==', '¼', '1_0', '٣', '1e400')
)  # fmt: skip
values = words | st.text(max_size=8)
requirements = st.one_of(
    values,
    st.lists(st.sampled_from(OPERATORS) | words, max_size=5).map(' '.join),
    st.lists(st.sampled_from(OPERATORS) | values, max_size=5).map('\t'.join),
)


def parse(text):
    return expression.parse(text)


def accepts(text, value):
    return parse(text).meets(expression.literal([value]))


def novas_answer(value, requirement):
    """Return nova's answer, or None where nova's matcher raises."""
    try:
        return extra_specs_ops.match(value, requirement)
    except (IndexError, ValueError):
        return None


@ddt.ddt
class ParseTestCase(testtools.TestCase):
    # expression, values accepted, values not accepted, absence accepted
    @ddt.data(
        ('*', ['1', 'a b', '', '*', '~'], [], False),
        ('~', [], ['1', '', '~'], True),
        ('!', [], ['1', '', '!'], True),
        (' * ', ['1'], [], False),
        (' ! ', [], ['1', '!'], True),
        ('<or> 1 <or> 2', ['1', '2'], ['3', '<or> 1 <or> 2', '<or>'], False),
        ('<or> 1 <or> ~', ['1'], ['2', '~'], True),
        ('<or> ~ <or> 1', ['1'], ['2', '~'], True),
        ('<or> * <or> ~', ['1', ''], [], True),
        ('<or> ~', [], ['1'], True),
        ('<or> *', ['1'], [], False),
        # nova's own operators: NovaTestCase has them all.
        ('= 4', ['4', '5', '4.0', 'inf'], ['3.9', '-5'], False),
        ('<all-in> a c', ['abc', 'ca'], ['a', 'c', ''], False),
        # The way to compare with a value that is a sentinel.
        ('s== *', ['*'], ['1'], False),
        ('s== !', ['!'], ['1'], False),
        # nova takes every second word, whatever stands between.
        ('<or> 1 2 3', ['1', '3'], ['2'], False),
        ('true', ['true'], ['True', ' true'], False),
        ('', [''], [' ', 'a'], False),
        ('* 1', ['* 1'], ['1'], False),
        ('~~', ['~~'], ['1'], False),
        ('4', ['4'], ['4.0', '5'], False),
    )
    @ddt.unpack
    def test_accepts(self, text, accepted, refused, absence):
        for value in accepted:
            self.assertTrue(accepts(text, value), value)
        for value in refused:
            self.assertFalse(accepts(text, value), value)
        self.assertIs(absence, parse(text).absent)

    @ddt.data(
        ('<or>', "'<or> VALUE [<or> VALUE ...]'"),
        ('! 1', "'!' with nothing beside it"),
        ('* !', "'!' with nothing beside it"),
        ('<or> 1 <or> !', "'<or> VALUE [<or> VALUE ...]', each VALUE"),
        ('<or> 1 ~', "'<or> VALUE [<or> VALUE ...]', each VALUE"),
        ('<or> 1 2 *', "'<or> VALUE [<or> VALUE ...]', each VALUE"),
        ('<or> ~ <or>', "'<or> VALUE [<or> VALUE ...]', each VALUE"),
        ('>= x', "'>= NUMBER'"),
        ('>=', "'>= NUMBER'"),
        ('s==', "'s== WORD'"),
        ('<in>', "'<in> WORD'"),
        ('<all-in>', "'<all-in> WORD [WORD ...]'"),
    )
    @ddt.unpack
    def test_malformed(self, text, expected):
        error = self.assertRaises(exception.InvalidValue, parse, text)
        self.assertEqual(text, error.got)
        self.assertTrue(error.expected.startswith(expected), error.expected)

    @ddt.data(
        ('1,2 , 3', ['1', '2', '3'], ['1,2 , 3', ''], False),
        ('<or> 1 <or> 2,3', ['1', '2', '3'], ['4'], False),
        ('>= 4,~', ['5'], ['3'], True),
        ('!', [], ['1'], True),
        ('!, !', [], ['1'], True),
        ('*', ['1'], [], False),
        (',', [''], ['1'], False),
    )
    @ddt.unpack
    def test_parse_values(self, text, accepted, refused, absence):
        parsed = expression.parse_values(text)
        for value in accepted:
            self.assertTrue(parsed.meets(expression.literal([value])))
        for value in refused:
            self.assertFalse(parsed.meets(expression.literal([value])))
        self.assertIs(absence, parsed.absent)

    @ddt.data('!,1', '~, !', '1,<or>', '1,>= x')
    def test_parse_values_malformed(self, text):
        parse = expression.parse_values
        self.assertRaises(exception.InvalidValue, parse, text)


class NovaTestCase(testtools.TestCase):
    """The operators are nova's."""

    def test_every_operator_of_nova_is_known(self):
        self.assertEqual({*extra_specs_ops.op_methods, '<or>'}, {*OPERATORS})

    @hypothesis.given(values, requirements)
    def test_agrees_with_nova(self, value, requirement):
        hypothesis.assume(expression.SENTINELS.isdisjoint(requirement.split()))
        novas = novas_answer(value, requirement)
        try:
            parsed = parse(requirement)
        except exception.InvalidValue:
            # Where nova's matcher does not raise, it accepts nothing.
            self.assertFalse(novas)
            return
        offer = expression.literal([value])
        if novas is None:
            self.assertEqual([value], parsed.unreadable(offer))
            self.assertFalse(parsed.meets(offer))
        else:
            self.assertEqual([], parsed.unreadable(offer))
            self.assertIs(novas, parsed.meets(offer))

    @hypothesis.given(st.lists(words, min_size=1, max_size=4), words)
    def test_agrees_with_nova_on_each_operator(self, operands, value):
        for name in OPERATORS:
            requirement = ' '.join((name, *operands))
            novas = novas_answer(value, requirement)
            try:
                ours = accepts(requirement, value)
            except exception.InvalidValue:
                ours = False
            self.assertIs(bool(novas), ours, requirement)


@ddt.ddt
class MeetsTestCase(testtools.TestCase):
    # Every pair of kinds in the docstring's table, both where it meets and
    # where it does not.
    @ddt.data(
        ('1', '1', True),
        ('1', '2', False),
        ('1', '*', True),
        ('1', '>= 1', True),
        ('1', '>= 2', False),
        ('1', '~', False),
        ('1', '<or> 2 <or> 1', True),
        ('1', '<or> 2 <or> ~', False),
        ('*', '*', True),
        ('*', '>= 4', True),
        ('*', '<in> a', True),
        ('*', '== nan', False),
        ('*', '~', False),
        ('*', '<or> * <or> ~', True),
        ('~', '~', True),
        ('~', '!', True),
        ('!', '!', True),
        ('~', '>= 4', False),
        ('~', '<or> 1 <or> ~', True),
        ('*', '!= nan', True),
        ('*', 's< a', True),
        ('*', '<all-in> a b', True),
        # Two of one kind: every pair of them is in OperatorTestCase.
        ('<all-in> a b', '<in> c', True),
        # Substrings and strings.
        ('<in> a', 's!= a', True),
        ('<in> a', 's> x', True),
        ('<in> x', 's< m', True),
        ('<in> a', 's== xay', True),
        ('<in> a', 's== xyz', False),
        # Mixtures: found, and not there to find.
        ('>= 4', 's== 5', True),
        ('>= 4', '<in> 5', True),
        ('>= 4', '<in> x', False),
        ('== 540', '<in> 40', True),
        # Held not to meet, though -7 would fit.
        ('<= 0', '<in> 7', False),
    )
    @ddt.unpack
    def test_meets(self, one, other, expected):
        one, other = parse(one), parse(other)
        self.assertIs(expected, one.meets(other))
        self.assertIs(expected, other.meets(one))
        # Without absence, what meets are values.
        for left, right in ((one, other), (other, one)):
            values = dataclasses.replace(left, absent=False)
            self.assertIs(values.meets(right), left.meets_value(right))

    @hypothesis.given(requirements, requirements, values)
    def test_what_both_accept_meets_where_values_are_listed(
        self, one, other, value
    ):
        try:
            one, other = parse(one), parse(other)
        except exception.InvalidValue:
            return
        self.assertIs(one.meets(other), other.meets(one))
        offer = expression.literal([value])
        listed = expression.union([other, offer])
        if one.meets(offer):
            self.assertTrue(one.meets(listed))
        self.assertIs(one.meets(listed), one.meets(other) or one.meets(offer))

    @ddt.data(
        ('>= 4', '<or> 8 <or> x <or> a', ['a', 'x']),
        ('>= 4', '8', []),
        ('>= 4', '*', []),
        ('s>= 4', 'x', []),
        ('8', 'x', []),
    )
    @ddt.unpack
    def test_unreadable(self, one, other, expected):
        self.assertEqual(expected, parse(one).unreadable(parse(other)))


class OperatorTestCase(testtools.TestCase):
    """Two operators of one kind meet exactly where a value exists."""

    def check_against_brute_force(self, make, names, operands, tried):
        operators = [
            (f'{name} {operand}', make(name, [operand]))
            for name, operand in itertools.product(names, operands)
        ]
        for pair in itertools.product(operators, repeat=2):
            texts, (one, other) = zip(*pair, strict=True)
            expected = any(
                all(extra_specs_ops.match(value, text) for text in texts)
                for value in tried
            )
            self.assertIs(expected, one.meets(other), texts)

    def test_two_on_numbers_meet_exactly(self):
        self.check_against_brute_force(
            expression.number,
            expression.NUMBERS,
            ('0', '1', '2', '-1', 'inf', '-inf', 'nan'),
            [*(str(n / 2) for n in range(-5, 6)), 'inf', '-inf', 'nan'],
        )

    def test_two_on_the_order_of_strings_meet_exactly(self):
        tried = [
            ''.join(letters)
            for length in range(4)
            for letters in itertools.product('\0ab', repeat=length)
        ]
        operands = ('a', 'a\0', 'aa', 'b')
        self.check_against_brute_force(
            expression.string, expression.STRINGS, operands, tried
        )
