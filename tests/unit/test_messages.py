# SPDX-License-Identifier: Apache-2.0

import time

import ddt
import testtools

from nova_ext_sched import messages

LONG, CUT = 'x' * 256, "'" + 'x' * 255 + "'..."


@ddt.ddt
class MessagesTestCase(testtools.TestCase):
    @ddt.data(
        ('reservation:lease-42', 'reservation:lease-42'),
        ('', ''),
        ('b\u00fccher', 'b\u00fccher'),
        ('a\nb', "'a\\nb'"),
        ('a\u2028b', "'a\\u2028b'"),
        ('\u00fc\n', "'\\xfc\\n'"),
        (LONG, CUT),
        # The last character that nova's tables in MySQL take, and the next.
        ('\ufffd', '\ufffd'),
        ('\U00010000', "'\\U00010000'"),
    )
    @ddt.unpack
    def test_clean(self, text, expected):
        self.assertEqual(expected, messages.clean(text))

    @ddt.data(
        (1, '1 second'),
        (89, '89 seconds'),
        (90, '2 minutes'),
        (5300, '88 minutes'),
        (5400, '1 hour 30 min'),
        (30000, '8 hours 20 min'),
    )
    @ddt.unpack
    def test_say_time(self, seconds, expected):
        self.assertEqual(expected, messages.say_time(seconds))

    @ddt.data(
        ((), ''),
        (('a.b.c',), ''),
        (('a.b.c', 'a2.b.c'), '.b.c'),
        (('a.x.c', 'a.y.c', 'b.x.c'), '.c'),
        (('a.b', 'a'), ''),
        (('b.c', 'a.b.c'), '.c'),
        (('a', 'b'), ''),
        (('a.bc', 'd.c'), ''),
    )
    @ddt.unpack
    def test_find_domain(self, hosts, expected):
        self.assertEqual(expected, messages.find_domain(hosts))

    def test_in_order(self):
        names = ['', '10', 'a', 'a2', 'a2b', 'a10', 'a10b2', 'a10b10', 'b']
        found = sorted(reversed(names), key=messages.in_order)
        self.assertEqual(['', 'a', *names[3:], '10'], found)

    # Once, not twice.
    @ddt.data(('', "''"), ('a', "'a'"), ('\n', "'\\n'"), (LONG, CUT))
    @ddt.unpack
    def test_quoted(self, text, expected):
        self.assertEqual(expected, messages.quoted(text))

    @ddt.data(
        (None, 'None'),
        (7, '7'),
        ('', "''"),
        (['b\u00fccher'], "['b\u00fccher']"),
        ('a\nb', "'a\\nb'"),
        (['\u00fc\U0001f600'], "['\\xfc\\U0001f600']"),
        ('x' * 20, "'" + 'x' * 19 + '...'),
    )
    @ddt.unpack
    def test_literal(self, value, expected):
        self.assertEqual(expected, messages.literal(value, 20))

    @ddt.data(messages.clean, messages.quoted, messages.literal)
    def test_any_text(self, show):
        """What is not shown is not looked at: a member may write it."""
        text = 'a' * 10_000_000
        before = time.process_time()
        for _ in range(20):
            self.assertLess(len(show(text)), 300)
        self.assertLess(time.process_time() - before, 0.5)
        # A lone surrogate.
        self.assertEqual("'a\\ud800'", show('a\ud800'))

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
        ('', ''),
        ('a', 'a'),
        ('abc', 'a, b, c'),
        ('abcd', 'a, b, c, d'),
        ('abcde', 'a, b, c and 2 more'),
        (['a', ''], "'a', ''", messages.quoted),
        (['\n', *'abcd'], "'\\n', 'a', 'b' and 2 more", messages.quoted),
    )
    @ddt.unpack
    def test_first_few(self, names, expected, *show):
        self.assertEqual(expected, messages.first_few([*names], 3, *show))

    @ddt.data(
        ([], ''),
        (['host'], 'host'),
        (['compute107'], 'compute107'),
        (
            ['c160', 'c107', 'c157', 'c158', 'c159', 'a', 'b2'],
            'a, b2, c[107,157-160]',
        ),
        (['c9', 'c10', 'c11'], 'c[9-11]'),
        (['c08', 'c09', 'c10', 'c9', 'c010'], 'c[08-09,9-10,010]'),
        (['r1-c1.x2', 'r1-c2.x2', 'r2-c3.x2'], 'r1-c[1-2].x2, r2-c3.x2'),
        (['c1a', 'c2a', 'c3b'], 'c[1-2]a, c3b'),
        (['c1\n', 'd'], "'c1\\n', d"),
        (['c2', 'c1', 'c2', 'b', 'b'], 'b, c[1-2]'),
        # The first two alone.
        (['c1', 'c2', 'c4', 'd'], 'c[1-2,4], d', 2),
        (['c1', 'c2', 'c4', 'd', 'e7', 'e8', 'f'], 'c[1-2,4] and 4 more', 2),
        (['c9', 'c1', 'c3', 'c5', 'c6'], 'c[1,3] and 3 more', 2),
        (['b', 'a', 'c', 'c', 'd'], 'a, b and 2 more', 2),
    )
    @ddt.unpack
    def test_in_ranges(self, names, expected, *most):
        self.assertEqual(expected, messages.in_ranges(names, *most))

    def test_nearest(self):
        hosts = [f'compute{number}' for number in range(1, 20)]
        found = messages.nearest('compte12', hosts).split(', ')
        self.assertEqual(['compute12', 'compute1'], found[:2])
        self.assertEqual('compute17 and 9 more', found[-1])
        self.assertEqual('none', messages.nearest('compute1', []))


@ddt.ddt
class TracebackTestCase(testtools.TestCase):
    @ddt.data(
        ('No valid host was found. ', 'No valid host was found. '),
        ('Remote error\n'
         "['Traceback (most recent call last):\\n', '  File x'].",
         'Remote error'),
        ('full\nTraceback (most recent call last):\n  File x', 'full'),
    )  # fmt: skip
    @ddt.unpack
    def test_table(self, text, expected):
        self.assertEqual(expected, messages.without_traceback(text))


@ddt.ddt
class SecretsTestCase(testtools.TestCase):
    def test_a_huge_error(self):
        """The search for passwords in megabytes would never end."""
        error = ValueError('a://:' * 200_000)
        before = time.process_time()
        self.assertLess(len(messages.say_error(error)), 1100)
        self.assertLess(time.process_time() - before, 0.5)

    @ddt.data(
        ('mysql+pymysql://nova:s3cret@db/nova', 'nova:***@db'),
        ('rabbit://u:s3:cr3t@h:5672//', 'u:***@h'),
        ("{'password': 's3cret'}", '***'),
        ('http://host:8778/resource_providers', ':8778/resource_providers'),
    )
    @ddt.unpack
    def test_without_secrets(self, text, expected):
        found = messages.without_secrets(text)
        self.assertIn(expected, found)
        self.assertNotIn('s3', found)
        error = messages.say_error(ValueError(text))
        self.assertEqual(f'ValueError: {found}', error)
