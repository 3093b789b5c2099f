# SPDX-License-Identifier: Apache-2.0

import unittest

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nova_ext_sched.policy import explanation


def host(name, **kwargs):
    return explanation.Host(name, name, f'uuid-{name}', **kwargs)


def refusing(words, names, phrase='lack VCPU', reason='no VCPU'):
    """A constraint that refuses the hosts of these names."""
    refusal = explanation.Refusal(phrase, reason)
    return explanation.Constraint(
        'resources',
        words,
        lambda host: refusal if host.name in names else None,
    )


class FunnelTest(unittest.TestCase):
    def test_each_host_is_removed_by_the_first_that_refuses_it(self):
        funnel = explanation.Funnel(
            [host('c'), host('b'), host('a')],
            [
                refusing('first', {'a'}),
                refusing('second', {'a', 'b'}, 'are down', 'it is down'),
                refusing('third', set()),
            ],
        )
        self.assertEqual(
            [({'uuid-a'}, 2), ({'uuid-b'}, 1), (set(), 1)],
            [(set(step.removed), step.left) for step in funnel.steps],
        )
        self.assertEqual(['c'], [h.name for h in funnel.left])
        self.assertEqual(
            [('a', 'first'), ('b', 'second'), ('c', None)],
            [
                (h.name, step and step.constraint.words)
                for h, step in funnel.first_refusals()
            ],
        )
        self.assertEqual(
            '1 of 3 hosts: 1 lacks VCPU, 1 is down', funnel.sentence()
        )

    def test_story_asks_every_constraint(self):
        constraints = [
            refusing('first', {'a'}),
            refusing('second', {'a'}, 'are down', 'it is down'),
            refusing('third', {'b'}),
        ]
        funnel = explanation.Funnel([host('a'), host('b')], constraints)
        self.assertEqual(
            ['no VCPU', 'it is down', None],
            [
                refusal and refusal.reason
                for _, refusal in funnel.story(funnel.hosts[0])
            ],
        )

    def test_sentence_of_the_issue(self):
        hosts = [host(f'h{i:02}') for i in range(40)]
        names = [h.name for h in hosts]
        windows = 'are isolated by aggregate windows (trait CUSTOM_WINDOWS)'
        funnel = explanation.Funnel(
            hosts,
            [
                refusing('VCPU: 4', names[:28]),
                refusing('isolation', names[28:38], windows, 'isolated'),
                refusing('ComputeFilter', names[38:], 'are down', 'down'),
            ],
        )
        self.assertEqual(
            '0 of 40 hosts: 28 lack VCPU, 10 are isolated by aggregate '
            'windows (trait CUSTOM_WINDOWS), 2 are down',
            funnel.sentence(),
        )

    def test_nothing_removed(self):
        funnel = explanation.Funnel([host('a')], [refusing('x', ())])
        self.assertEqual(
            '1 of 1 hosts: no constraint removes any', funnel.sentence()
        )
        self.assertEqual('', funnel.steps[0].why)

    def test_no_hosts(self):
        funnel = explanation.Funnel([], [refusing('x', ())])
        self.assertEqual(
            '0 of 0 hosts: no constraint removes any', funnel.sentence()
        )

    def test_many_causes_are_cut(self):
        hosts = [host(f'h{i}') for i in range(9)]
        constraint = explanation.Constraint(
            'isolation',
            'isolated aggregates',
            lambda h: explanation.Refusal(f'are in {h.name}', h.name),
        )
        funnel = explanation.Funnel(hosts, [constraint])
        self.assertEqual(
            '1: h0; 1: h1; 1: h2; 1: h3; 1: h4; 4 more causes',
            funnel.steps[0].why,
        )
        self.assertEqual(
            '0 of 9 hosts: 1 is in h0, 1 is in h1, 1 is in h2, 1 is in h3, '
            '1 is in h4, 4 are refused by other isolated aggregates',
            funnel.sentence(),
        )

    def test_frequent_causes_come_first(self):
        constraint = explanation.Constraint(
            'x', 'x', lambda h: explanation.Refusal('do', h.name[0])
        )
        funnel = explanation.Funnel(
            [host('a1'), host('b1'), host('b2')], [constraint]
        )
        self.assertEqual('2: b; 1: a', funnel.steps[0].why)

    def test_label(self):
        self.assertEqual('a', host('a').label)
        self.assertEqual(
            'a (node1)', explanation.Host('a', 'node1', 'u').label
        )

    @settings(max_examples=200, deadline=None)
    @given(
        st.integers(0, 8),
        st.lists(st.sets(st.integers(0, 8)), max_size=6),
    )
    def test_every_host_is_accounted_for_once(self, total, refused):
        hosts = [host(str(i)) for i in range(total)]
        funnel = explanation.Funnel(
            hosts,
            [
                refusing(f'c{i}', {str(n) for n in numbers})
                for i, numbers in enumerate(refused)
            ],
        )
        left = total
        for step in funnel.steps:
            left -= len(step.removed)
            self.assertEqual(left, step.left)
        self.assertEqual(
            {str(i) for i in range(total)}
            - {str(n) for numbers in refused for n in numbers},
            {h.name for h in funnel.left},
        )
        for h, step in funnel.first_refusals():
            refusals = [refusal for _, refusal in funnel.story(h)]
            self.assertEqual(step is None, not any(refusals))


class AgreeTest(unittest.TestCase):
    def test_verbs(self):
        for many, one in (
            ('lack VCPU', 'lacks VCPU'),
            ('are down', 'is down'),
            ('have the trait', 'has the trait'),
            ('do not serve', 'does not serve'),
        ):
            self.assertEqual(one, explanation.agree(many, 1))
            self.assertEqual(many, explanation.agree(many, 2))
            self.assertEqual(many, explanation.agree(many, 0))
