# SPDX-License-Identifier: Apache-2.0

import types

import testtools

from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals


def make_server(found, aggregates=(), uuid='uuid', name='name'):
    """Return a server that was judged: the policies of what was found."""
    state = types.SimpleNamespace(
        host='host1',
        aggregates=[types.SimpleNamespace(name=name) for name in aggregates],
    )
    server = policies.Standing(uuid, name, 'project', state, None)
    server.violated = [(policy, 'why') for policy in found]
    return server


class TotalsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.totals = totals.Totals(['a', 'b', 'c'])

    def add(self, found, *aggregates):
        self.totals.add(make_server(found, aggregates))

    def assertTold(self, head, remarks=(), counts=()):
        told = self.totals.head, self.totals.remarks, self.totals.counts
        self.assertEqual((head, [*remarks], [*counts]), told)

    def test_a_server_counts_once(self):
        self.add(['c', 'a'], 'rack1')
        self.add(['a'], 'rack1')
        self.add([], 'rack1')
        self.assertEqual((3, 2, 0), self.counts())
        self.assertEqual({'a': 2, 'b': 0, 'c': 1}, self.totals.policies)
        self.assertTold(
            '2 of 3 servers violate a policy',
            ['1 server violates several policies, and counts in each.'],
            [(2, 'a'), (1, 'c')],
        )
        policies = {'a': 2, 'c': 1}
        lines = list(self.totals.lines())
        places = ['aggregate rack1', 'project project', 'host host1']
        expected = [(*one.split(), 2, policies) for one in places]
        self.assertEqual(expected, lines)
        self.assertEqual(['a', 'c'], list(lines[0][3]))

    def test_merge(self):
        """As if one had counted all; a policy with a suffix comes in turn."""
        expected = totals.Totals(['a', 'b'], {'host1'})
        merged = totals.Totals(['a', 'b'], {'host1'})
        for found in (['b'], [], ['a', 'b-by-hint'], [policies.NOT_JUDGED]):
            part = totals.Totals(['a', 'b'], {'host1'})
            for one in (expected, part):
                one.add(make_server(found, ['rack1']))
            merged.merge(part)
        self.assertEqual(vars(expected), vars(merged))
        self.assertEqual([*expected.policies], [*merged.policies])
        self.assertEqual([*expected.lines()], [*merged.lines()])

    def test_hosts_that_are_to_be_free(self):
        self.totals = totals.Totals(['a'], {'host1', 'host2'})
        self.add([], 'spare')
        self.add(['a'], 'spare')
        self.assertEqual({'host1': 2}, self.totals.in_use)
        self.assertTold(
            '1 of 2 servers violates a policy',
            ['1 host kept for failures is in use: host1 (2 servers).'],
            [(1, 'a')],
        )

    def test_a_policy_that_fails_and_one_that_is_violated(self):
        self.add(['a', policies.NOT_JUDGED], 'rack1')
        self.add([policies.NOT_JUDGED], 'rack2')
        self.assertEqual((2, 1, 2), self.counts())
        remark = '2 servers could not be checked.'
        told = '1 of 2 servers violates a policy', [remark], [(1, 'a')]
        self.assertTold(*told)
        names = [line[1] for line in self.totals.lines()]
        self.assertEqual(['rack1', 'project', 'host1'], names)

    def counts(self):
        found = self.totals
        return found.servers, found.violating, found.not_judged

    def test_most_servers_first_then_by_name(self):
        for places in ('b', 'ab', 'cd', 'd', 'cd'):
            self.add(['a'], *places)
        found = [line[1:3] for line in self.totals.lines()][:-2]
        self.assertEqual([('d', 3), ('b', 2), ('c', 2), ('a', 1)], found)

    def test_nothing_found(self):
        checked = 'a policy (policies checked: a, b, c)'
        self.add([])
        self.assertTold(f'0 of 1 server violates {checked}')
        self.add([policies.NOT_JUDGED])
        remark = '1 server could not be checked.'
        self.assertTold(f'0 of 2 servers violate {checked}', [remark])

    def test_no_policy(self):
        self.totals = totals.Totals([])
        self.add([policies.NOT_JUDGED])
        self.assertTold('No policy is on')
