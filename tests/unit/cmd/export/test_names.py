# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.cmd.export import names


@ddt.ddt
class NamesTest(unittest.TestCase):
    def test_names_of_their_own(self):
        given = names.Names()
        self.assertEqual('web', given.give('web', '1'))
        self.assertEqual('2', given.give('web', '2'))
        self.assertEqual('web', given.give('web', '1'))

    @ddt.data('', None, ' web', 'web\n', 'a\x07', '\U0001f4a9', 'a{1..3}')
    def test_id(self, name):
        self.assertEqual('1', names.Names().give(name, '1'))
