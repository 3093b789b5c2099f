# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched import grouping


class ByKeyTestCase(testtools.TestCase):
    def test_keys_and_values_keep_their_order(self):
        groups = grouping.by_key(
            [('rack2', 'b'), ('rack1', 'c'), ('rack2', 'a'), ('rack2', 'b')]
        )
        self.assertEqual(
            [('rack2', ['b', 'a', 'b']), ('rack1', ['c'])], [*groups.items()]
        )

    def test_an_absent_key_is_not_made(self):
        self.assertRaises(KeyError, grouping.by_key([]).__getitem__, 'rack1')
