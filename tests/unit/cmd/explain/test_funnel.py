# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cmd.explain import funnel

HOSTS = {'1': 'host1', '2': 'host2', '3': 'host3'}


def build(*refused, detailed=(), order=(), shortage=''):
    found = funnel.Funnel(HOSTS, detailed)
    found.order, found.shortage = order, shortage
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
            [(name, *numbers) for _, name, _, *numbers in found.lines],
        )
        self.assertEqual({'3'}, found.left)
        self.assertEqual(
            '1 of 3 hosts: 1 lacks VCPU, 1 is down.', found.sentence
        )

    def test_every_constraint_says_its_word(self):
        found = build(
            {'1': 'lack VCPU'},
            {'1': 'are down', '2': 'are down'},
            detailed=['2', '1'],
        )
        found.add('host filter', 'F', judged={'2'})
        self.assertEqual(
            [
                ('host2', 'placement', 'part0', 'passes', ''),
                ('host2', 'placement', 'part1', 'refused', 'is down'),
                ('host2', 'host filter', 'F', 'passes', ''),
                ('host1', 'placement', 'part0', 'refused', 'lacks VCPU'),
                ('host1', 'placement', 'part1', 'refused', 'is down'),
                ('host1', 'host filter', 'F', 'not judged', ''),
            ],
            found.words,
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
            [line[1:3] for line in found.lines[-2:]],
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
        found = funnel.Funnel({'1': 'a\nb'})
        found.order = [('1', 1.0)]
        self.assertNotIn('\n', found.sentence)
        self.assertEqual("'a\\nb'", found.lines[-1][1])
