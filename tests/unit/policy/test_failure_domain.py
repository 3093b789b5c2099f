# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.policy import failure_domain as policy

KEY = 'failure_domain'


def different(*words):
    return {'different_failure_domain': list(words)}


def at_most(*limits):
    return {'max_server_per_failure_domain': list(limits)}


@ddt.ddt
class ReadLimitTestCase(testtools.TestCase):
    """What a request asks for: the first table of the module."""

    @ddt.data(
        (None, 0, None),
        ({}, 0, None),
        (different('true'), 0, 1),
        (different('Yes'), 0, 1),
        (different('False'), 0, None),
        (at_most('3'), 0, 3),
        ({}, 2, 2),
        # The strictest wins.
        ({**different('true'), **at_most('3')}, 2, 1),
        ({**different('false'), **at_most('3')}, 2, 2),
        (at_most('1'), 2, 1),
        # Values that did not come through nova's API.
        ({'different_failure_domain': 'true'}, 0, 1),
        ({'max_server_per_failure_domain': 3}, 0, 3),
    )
    @ddt.unpack
    def test_read(self, hints, option, expected):
        self.assertEqual(expected, policy.read_limit(hints, option))

    @ddt.data(
        *(
            (at_most(limit), 'an integer, 1 or more')
            for limit in (
                *('0', 'abc', '-1', '1.5', '', ' ', '1e3', '²', None),
                '9' * 999,
            )
        ),
        *(
            (different(word), 'true or false')
            for word in ('ture', '2', '', None, 'true\n[x]')
        ),
        (at_most(), 'one value'),
        (at_most('1', '2'), 'one value'),
        (different('true', 'true'), 'one value'),
        # Beside a good one.
        ({**different('true'), **at_most('0')}, "got '0'"),
        ({**different('x'), **at_most('1')}, "got 'x'"),
    )
    @ddt.unpack
    def test_refused(self, hints, said):
        args = policy.read_limit, hints, 2
        error = str(self.assertRaises(exception.InvalidValue, *args))
        for part in ('scheduler hint ', said):
            self.assertIn(part, error)
        self.assertNotIn('\n', error)
        self.assertLess(len(error), 500)


@ddt.ddt
class ReadDomainsTestCase(testtools.TestCase):
    @ddt.data(
        ([], set()),
        ([{}, {'zone': 'a'}], set()),
        ([{KEY: 'a'}, {KEY: 'b'}, {}], {'a', 'b'}),
        ([{KEY: 'a, b'}], {'a', 'b'}),
        ([{KEY: ' a\t'}], {'a'}),
        ([{KEY: 'A'}, {KEY: 'a'}], {'A', 'a'}),
        ([{'Failure_Domain': 'a'}], set()),
        # What operators should not write.
        ([{KEY: ''}], set()),
        ([{KEY: ' , ,'}], set()),
        ([{KEY: 'a,,'}], {'a'}),
        ([{KEY: None}], set()),
        ([None, {KEY: 'a'}], {'a'}),
    )
    @ddt.unpack
    def test_read(self, aggregates, expected):
        self.assertEqual(expected, policy.read_domains(aggregates, KEY))


@ddt.ddt
class CountTestCase(testtools.TestCase):
    """How members count: the last table of the module."""

    DOMAINS = {
        'a1': frozenset('a'),
        'a2': frozenset('a'),
        'b1': frozenset('b'),
        'ab': frozenset('ab'),
        'none': frozenset(),
    }

    @ddt.data(
        ({}, [], {'m1': []}),
        # In one domain and in several.
        ({'a': 3, 'b': 2}, [],
         {'m1': ['a1'], 'm2': ['a2'], 'm3': ['b1'], 'm4': ['ab']}),
        ({}, ['m1', 'm2'], {'m2': ['unknown'], 'm1': ['none']}),
        # Both ends of a move.
        ({'a': 3, 'b': 1}, [],
         {'m1': ['a1', 'b1'], 'm2': ['a1', 'a2'], 'm3': ['a1', 'none']}),
    )  # fmt: skip
    @ddt.unpack
    def test_count(self, held, without_domain, hosts):
        spread = policy.Spread('g', 1, KEY, hosts, self.DOMAINS)
        self.assertEqual(held, spread.held)
        self.assertEqual(without_domain, spread.without_domain)


def host_in(*values):
    return [(f'agg-{value}', {KEY: value}) for value in values]


@ddt.ddt
class SpreadTestCase(testtools.TestCase):
    """Which hosts a request gets: the second table of the module."""

    def spread(self, limit=2, **held):
        spread = policy.Spread('g', limit, KEY, {}, {})
        spread.held.update(held)
        return spread

    @ddt.data(
        # (held in a, held in b, domains of the host, passes)
        (0, 0, '', False),
        (0, 0, 'a', True),
        (1, 9, 'a', True),
        (2, 0, 'a', False),
        (3, 0, 'a', False),
        (1, 1, 'ab', True),
        (1, 2, 'ab', False),
        (2, 1, 'ab', False),
    )
    @ddt.unpack
    def test_judge(self, in_a, in_b, domains, passes):
        spread = self.spread(a=in_a, b=in_b)
        self.assertEqual(passes, spread.judge(host_in(*domains)).passes)

    @ddt.data(
        # (limit, option, held in a, held in b, domains, only a hint asks)
        (1, 0, 0, 0, '', True),
        (1, 0, 1, 0, 'a', True),
        (1, 3, 0, 0, '', False),
        (1, 3, 2, 0, 'a', True),
        (1, 3, 3, 0, 'a', False),
        (1, 3, 1, 3, 'ab', False),
        (2, 2, 2, 0, 'a', False),
    )
    @ddt.unpack
    def test_who_asks(self, limit, option, in_a, in_b, domains, by_hint):
        spread = policy.Spread('g', limit, KEY, {}, {}, option)
        spread.held.update(a=in_a, b=in_b)
        found = spread.judge(host_in(*domains))
        self.assertEqual((False, by_hint), (found.passes, found.by_hint))

    def test_reasons(self):
        spread = self.spread(a=2, b=5)
        self.assertEqual(
            'failure domain a holds 2 servers of server group g and the '
            'limit is 2',
            spread.judge(host_in('b', 'a')).reason,
        )
        self.assertEqual(
            'the host is in no failure domain: none of its aggregates has a '
            'value for the metadata key failure_domain',
            spread.judge([]).reason,
        )
        spread = self.spread(**{'a\nb': 2})
        self.assertNotIn('\n', spread.judge(host_in('a\nb')).reason)

    def test_what_is_to_blame(self):
        spread = self.spread(a=2, b=5)
        self.assertTrue(spread.judge([('agg', {})]).lacks)
        found = spread.judge([('other', {}), *host_in('b', 'a')])
        self.assertEqual(('agg-a', False), (found.aggregate, found.lacks))

    def test_added_members_count(self):
        spread = self.spread(a=1)
        spread.add(['a', 'a', 'b'])
        self.assertFalse(spread.judge(host_in('a')).passes)
        self.assertTrue(spread.judge(host_in('b')).passes)
        spread.add([])
        self.assertEqual(['a'], spread.find_full('ab'))
