# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched import messages


@ddt.ddt
class MessagesTestCase(testtools.TestCase):
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
    def test_quote(self, text, expected):
        self.assertEqual(expected, messages.clean(text))

    @ddt.data((0, '0 hosts'), (1, '1 host'), (2, '2 hosts'))
    @ddt.unpack
    def test_count(self, number, expected):
        self.assertEqual(expected, messages.count('host', number))

    @ddt.data(
        (0, 1, '0 of 1 host is'),
        (1, 1, '1 of 1 host is'),
        (0, 2, '0 of 2 hosts are'),
        (1, 2, '1 of 2 hosts is'),
        (2, 2, '2 of 2 hosts are'),
    )
    @ddt.unpack
    def test_part(self, number, whole, expected):
        self.assertEqual(
            expected, messages.part(number, whole, 'host', 'is', 'are')
        )

    @ddt.data(
        ([], ''),
        (['a'], 'a'),
        (['a', 'b', 'c'], 'a, b, c'),
        (['a', 'b', 'c', 'd'], 'a, b, c and 1 more'),
    )
    @ddt.unpack
    def test_first_few(self, names, expected):
        self.assertEqual(expected, messages.first_few(names, 3))

    def test_first_few_as_values(self):
        self.assertEqual(
            "'a', ''", messages.first_few(['a', ''], 3, messages.quoted)
        )
        self.assertEqual(
            "''\\n'' and 1 more",
            messages.first_few(['\n', 'b'], 1, messages.quoted),
        )

    def test_install_extra(self):
        self.assertEqual(
            "in a clone of nova-ext-sched, pip install '.[commands]'; from a "
            "wheel, pip install './nova_ext_sched-VERSION-py3-none-any.whl"
            "[commands]'",
            messages.install_extra('commands'),
        )
