# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.cmd.audit import totals


class TotalsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.totals = totals.Totals(['a', 'b', 'c'])

    def add(self, found, *places):
        self.totals.add(found, [('host', p) for p in places])

    def test_a_server_counts_once(self):
        self.add(['c', 'a'], 'host1')
        self.add(['a'], 'host1')
        self.add([], 'host1')
        self.assertEqual((3, 2, 0), self.counts())
        self.assertEqual({'a': 2, 'b': 0, 'c': 1}, self.totals.policies)
        [line] = self.totals.lines()
        self.assertEqual(('host', 'host1', 2, {'a': 2, 'c': 1}), line)
        self.assertEqual(['a', 'c'], list(line[3]))

    def test_a_policy_that_fails_and_one_that_is_violated(self):
        self.add(['a', totals.NOT_JUDGED], 'host1')
        self.add([totals.NOT_JUDGED], 'host2')
        self.assertEqual((2, 1, 2), self.counts())
        self.assertEqual(
            '1 of 2 servers violates a policy: a 1. 2 servers cannot be '
            'judged.',
            self.totals.sentence,
        )
        self.assertEqual(1, len(list(self.totals.lines())))

    def counts(self):
        found = self.totals
        return found.servers, found.violating, found.not_judged

    def test_most_servers_first_then_by_name(self):
        for places in ('b', 'ab', 'cd', 'd', 'cd'):
            self.add(['a'], *places)
        self.assertEqual(
            [('d', 3), ('b', 2), ('c', 2), ('a', 1)],
            [line[1:3] for line in self.totals.lines()],
        )

    def test_order_of_the_parts(self):
        self.totals.add(
            ['a'],
            [('host', 'x'), ('project', 'x'), ('aggregate', 'x')],
        )
        self.assertEqual(
            ['aggregate', 'project', 'host'],
            [line[0] for line in self.totals.lines()],
        )

    def test_nothing_found(self):
        self.add([], 'host1')
        self.assertEqual(
            '0 of 1 server violates a policy (judged by a, b, c).',
            self.totals.sentence,
        )

    def test_no_policy(self):
        self.assertEqual('No policy is on.', totals.Totals([]).sentence)
