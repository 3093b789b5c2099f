# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.simulator import hostnames


@ddt.ddt
class ExpandTest(unittest.TestCase):
    @ddt.unpack
    @ddt.data(
        ('compute1', ['compute1']),
        ('compute{1..3}', ['compute1', 'compute2', 'compute3']),
        ('compute{0..1}', ['compute0', 'compute1']),
        ('compute{08..10}', ['compute08', 'compute09', 'compute10']),
        ('r{1..2}n{1..2}', ['r1n1', 'r1n2', 'r2n1', 'r2n2']),
        # Not a range: a name like another.
        ('compute{a..c}', ['compute{a..c}']),
        ('compute{1,2}', ['compute{1,2}']),
    )
    def test_expand(self, pattern, names):
        self.assertEqual(names, hostnames.expand(pattern))

    @ddt.data('a{3..1}', 'a{1..1001}', 'a{1..50}b{1..50}', 'a{1..9999999999}')
    def test_refused(self, pattern):
        self.assertRaises(ValueError, hostnames.expand, pattern)

    def test_expand_all(self):
        self.assertEqual(['a1', 'a2'], hostnames.expand_all('a{1..2}'))
        self.assertEqual(
            ['b', 'a1', 'a2'], hostnames.expand_all(['b', 'a{1..2}'])
        )
