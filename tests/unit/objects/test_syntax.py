# SPDX-License-Identifier: Apache-2.0

"""Tests of what placement accepts as names, UUIDs and amounts."""

import unittest

import ddt

from nova_ext_sched import exception
from nova_ext_sched.objects import syntax

UUID = 'aaaaaaaa-0000-4000-8000-000000000001'

# The function; what it accepts; what it refuses.
CASES = [
    (
        syntax.check_trait,
        ['HW_CPU_X86_AVX2', 'CUSTOM_A', '_', '0', 'X' * 255],
        ['', 'a', 'A B', 'A,B', '!A', 'A-B', 'X' * 256, 'A\n', '\u00c4']
        + [None, 1, ['A']],
    ),
    (syntax.check_custom_trait,
     ['CUSTOM_A', 'CUSTOM__', 'CUSTOM_' + 'X' * 248],
     ['', 'CUSTOM_', 'HW_CPU_X86_AVX2', 'CUSTOM_a', 'CUSTOM_' + 'X' * 249]),
    (syntax.check_resource_class, ['VCPU', 'CUSTOM_FPGA'],
     ['', 'vcpu', 'VCPU:1', 'VCPU,PCPU']),
    (
        syntax.check_uuid,
        [UUID],
        [
            '',
            'cn1',
            UUID.replace('-', ''),
            '{' + UUID + '}',
            '!' + UUID,
            UUID + '\n',
            UUID[:-1] + 'g',
            UUID + '/traits',
        ],
    ),
    (syntax.check_suffix, ['', '1', '_net-1', 'x' * 64],
     ['a b', 'x' * 65, '1\n', '\u0661']),
    (
        syntax.check_amount,
        [1, 2**40],
        [0, -1, True, 1.5, None, '', '0', '-1', '+1', '1.5', '1e3', ' 1']
        + ['\u0661', '9' * 19, '0' * 5000 + '1'],
    ),
]  # fmt: skip


@ddt.ddt
class SyntaxTest(unittest.TestCase):
    @ddt.idata(CASES)
    @ddt.unpack
    def test_check(self, check, accepted, refused):
        for value in accepted:
            self.assertEqual(value, check(value, 'here'))
        for value in refused:
            with (
                self.subTest(value),
                self.assertRaises(exception.InvalidValue) as caught,
            ):
                check(value, 'here')
            self.assertEqual(value, caught.exception.got)
            self.assertEqual('here', caught.exception.where)

    def test_a_uuid_is_normalised(self):
        self.assertEqual(UUID, syntax.check_uuid(UUID.upper(), 'here'))

    @ddt.data(('1', 1), ('01', 1), ('1024', 1024))
    @ddt.unpack
    def test_digits(self, text, amount):
        self.assertEqual(amount, syntax.check_amount(text, 'here'))
