# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import verdict


@ddt.ddt
class VerdictTestCase(testtools.TestCase):
    def test_reject(self):
        self.assertTrue(verdict.PASS.passes)
        self.assertEqual((False, 'full'), verdict.reject('full'))

    @ddt.data(
        ('reservation:lease-42', 'reservation:lease-42'),
        ('', ''),
        ('b\u00fccher', 'b\u00fccher'),
        ('x' * 255, 'x' * 255),
        ('a\nb', "'a\\nb'"),
        ('a\x1b[2Jb', "'a\\x1b[2Jb'"),
        ('a\u2028b', "'a\\u2028b'"),
        ('\u00fc\n', "'\\xfc\\n'"),
        ('x' * 256, "'" + 'x' * 255 + "'..."),
    )
    @ddt.unpack
    def test_shown(self, text, expected):
        self.assertEqual(expected, verdict.shown(text))

    @ddt.data(
        ([], ''),
        (['a'], 'a'),
        (['a', 'b', 'c'], 'a, b, c'),
        (['a', 'b', 'c', 'd'], 'a, b, c and 1 more'),
    )
    @ddt.unpack
    def test_first_few(self, names, expected):
        self.assertEqual(expected, verdict.first_few(names, 3))
