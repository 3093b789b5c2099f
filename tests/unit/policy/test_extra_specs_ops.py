# SPDX-License-Identifier: Apache-2.0
import itertools

import ddt
from nova.scheduler.filters import extra_specs_ops as novas
import testtools

from nova_ext_sched.policy import extra_specs_ops


class KnownTestCase(testtools.TestCase):
    def test_novas_operators_of_numbers_and_strings(self):
        self.assertEqual(
            novas.op_methods.keys(), extra_specs_ops.OPERATORS.keys()
        )


@ddt.ddt
class OperatorTestCase(testtools.TestCase):
    @ddt.data(
        ('4', True), ('-1e3', True), ('inf', True), ('nan', True),
        ('1_0', True), (' 4 ', True), ('', False), ('x', False),
        ('4,0', False), ('0x10', False), ('\ud800', False), ('\0', False),
    )  # fmt: skip
    @ddt.unpack
    def test_is_number(self, value, expected):
        self.assertIs(expected, extra_specs_ops.is_number(value))

    def test_a_number_operator_accepts_no_words(self):
        for name in extra_specs_ops.NUMBERS:
            operator = extra_specs_ops.number(name, ['4'])
            self.assertTrue(operator.compares_numbers)
            self.assertFalse(operator.accepts('many'))

    @ddt.data(
        (extra_specs_ops.number('==', ['nan']), False),
        (extra_specs_ops.number('>=', ['inf']), True),
        (extra_specs_ops.number('!=', ['nan']), True),
        (extra_specs_ops.string('s<', ['a']), True),
        (extra_specs_ops.substring('<all-in>', ('a', 'b')), True),
    )
    @ddt.unpack
    def test_anything_meets_what_accepts_some_value(self, operator, expected):
        self.assertIs(expected, operator.meets(extra_specs_ops.ANYTHING))
        self.assertIs(expected, extra_specs_ops.ANYTHING.meets(operator))

    def check_against_brute_force(self, make, names, operands, tried):
        operators = [
            (f'{name} {operand}', make(name, [operand]))
            for name, operand in itertools.product(names, operands)
        ]
        for (one_text, one), (other_text, other) in itertools.product(
            operators, operators
        ):
            expected = any(
                novas.match(value, one_text) and novas.match(value, other_text)
                for value in tried
            )
            self.assertIs(expected, one.meets(other), (one_text, other_text))

    def test_two_on_numbers_meet_exactly(self):
        self.check_against_brute_force(
            extra_specs_ops.number,
            extra_specs_ops.NUMBERS,
            ('0', '1', '2', '-1', 'inf', '-inf', 'nan'),
            [*(str(n / 2) for n in range(-5, 6)), 'inf', '-inf', 'nan'],
        )

    def test_two_on_the_order_of_strings_meet_exactly(self):
        self.check_against_brute_force(
            extra_specs_ops.string,
            extra_specs_ops.STRINGS,
            ('a', 'a\0', 'aa', 'b'),
            [
                ''.join(letters)
                for length in range(4)
                for letters in itertools.product('\0ab', repeat=length)
            ],
        )

    def test_two_on_substrings_always_meet(self):
        needles = [('a',), ('b',), ('ab', 'c'), ('!',)]
        for one, other in itertools.product(needles, needles):
            self.assertTrue(
                extra_specs_ops.substring('<all-in>', one).meets(
                    extra_specs_ops.substring('<all-in>', other)
                )
            )
