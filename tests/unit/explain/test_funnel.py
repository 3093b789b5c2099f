# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.explain import funnel

HOSTS = {'1': 'host1', '2': 'host2', '3': 'host3'}


def build(*refused, order=(), **fields):
    found = funnel.Funnel(HOSTS, order=order, **fields)
    for number, reasons in enumerate(refused):
        found.add('placement', f'part{number}', refused=reasons)
    return found


@ddt.ddt
class FunnelTestCase(testtools.TestCase):
    def test_a_host_counts_where_it_is_refused_first(self):
        found = build({'1': 'lack VCPU'}, {'1': 'are down', '2': 'are down'})
        self.assertEqual(
            [
                ('all hosts', 0, 3),
                ('part0', 1, 2),
                ('part1', 1, 1),
            ],
            [(line.name, line.refused, line.left) for line in found.lines],
        )
        self.assertEqual({'3'}, found.left)
        self.assertEqual(
            '1 of 3 hosts: 1 lacks VCPU, 1 is down.', found.sentence
        )

    def test_every_constraint_says_its_word(self):
        found = build({'1': 'lack VCPU'}, {'1': 'are down', '2': 'are down'})
        found.add('host filter', 'F', judged=frozenset(['2']))
        self.assertEqual(
            [
                ('part0', 'refused', 'lacks VCPU'),
                ('part1', 'refused', 'is down'),
                ('F', 'not judged', ''),
            ],
            [(w.name, w.verdict, w.reason) for w in found.words(['1'])],
        )
        self.assertEqual(
            ['passes', 'refused', 'passes'],
            [word.verdict for word in found.words(['2'])],
        )

    @ddt.data(
        ((), '', False),
        ([('1', 1.0)], '', True),
        ([('1', 1.0)], 'Only 1 of 2 instances find a host', False),
    )
    @ddt.unpack
    def test_finds_host(self, order, shortage, expected):
        found = build(order=order, shortage=shortage)
        self.assertIs(expected, found.finds_host)

    def test_the_order_is_shown(self):
        found = build({'2': 'are down'}, order=[('3', 2.5), ('1', 1.0)])
        self.assertEqual(
            [
                ('host3', 'choice 1, weight 2.5'),
                ('host1', 'choice 2, weight 1'),
            ],
            [(line.name, line.effect) for line in found.lines[-2:]],
        )
        self.assertEqual(
            '2 of 3 hosts: 1 is down. The scheduler prefers host3.',
            found.sentence,
        )

    def test_many_reasons_are_cut(self):
        hosts = {str(number): f'host{number}' for number in range(13)}
        found = funnel.Funnel(hosts)
        found.add(
            'placement', 'x', refused={u: f'lack RESOURCE_{u}' for u in hosts}
        )
        self.assertTrue(
            found.sentence.endswith('3 are refused for other reasons.')
        )

    def test_the_end_of_a_request(self):
        found = build({'1': 'lack VCPU'})
        found.end('request filter', 'f', 'no\nway.')
        self.assertEqual(set(), found.left)
        self.assertEqual(
            "0 of 3 hosts: 2 are not considered (f: 'no\\nway'), "
            '1 lacks VCPU.',
            found.sentence,
        )

    def test_names_are_quoted(self):
        found = funnel.Funnel({'1': 'a\nb'}, order=[('1', 1.0)])
        self.assertNotIn('\n', found.sentence)
        self.assertEqual("'a\\nb'", found.lines[-1].name)
