# SPDX-License-Identifier: Apache-2.0

"""Tests of the decision of anti-affinity, and of its rules."""

import unittest

import ddt
import hypothesis
from hypothesis import strategies

from nova_ext_sched import exception
from nova_ext_sched.policy import anti_affinity

MEMBERS = ('a', 'b', 'c')


@ddt.ddt
class GroupTest(unittest.TestCase):
    # The truth table of the module: rules, instances on the host, and whether
    # the instance x may be placed there.
    @ddt.data(
        ({}, (), True),
        ({}, ('s',), True),
        ({}, ('a',), False),
        ({}, ('a', 'b'), False),
        ({}, ('a', 'x'), True),
        ({'max_server_per_host': 2}, ('a', 's'), True),
        ({'max_server_per_host': 2}, ('a', 'b'), False),
        ({'max_server_per_host': 2}, ('a', 'b', 'c'), False),
        ({'max_server_per_host': 2}, ('a', 'b', 'x'), True),
        ({'max_server_per_host': '2'}, ('a',), True),
        ({'max_server_per_host': '2'}, ('a', 'b'), False),
        # nova-api takes any number of digits. Python reads 4,300 of them.
        ({'max_server_per_host': '9' * 4300}, ('a', 'b', 'c'), True),
        ({'max_server_per_host': '9' * 4301}, (), False),
        ({'max_server_per_host': 'two'}, (), False),
        ({'max_server_per_host': 'two'}, ('x',), True),
        ({'max_server_per_host': 0}, (), False),
        ({'max_server_per_host': -1}, (), False),
        ({'max_server_per_host': True}, (), False),
        ({'max_server_per_host': None}, (), False),
        ({'max_server_per_host': 2.5}, (), False),
        ({'max_server_per_rack': 2}, (), False),
        ({'max_server_per_rack': 2}, ('x',), True),
    )
    @ddt.unpack
    def test_truth_table(self, rules, instances, passes):
        group = anti_affinity.Group('G', [*MEMBERS, 'x'], rules)
        host = dict.fromkeys(instances)
        self.assertEqual(passes, group.judge(host, 'x').passes)

    def test_reason_of_a_full_host(self):
        group = anti_affinity.Group('G', MEMBERS, {'max_server_per_host': 2})
        self.assertEqual(
            'the host holds 2 servers of server group G and '
            'max_server_per_host is 2',
            group.judge({'a', 'b', 's'}, 'x').reason,
        )

    def test_reason_of_a_bad_rule(self):
        group = anti_affinity.Group(None, MEMBERS, {'max_server_per_host': 0})
        self.assertEqual(
            'server group n/a cannot be read: rules.max_server_per_host: '
            'expected an integer, 1 or more, got 0',
            group.judge(set(), 'x').reason,
        )

    def test_members_that_are_not_known_open_no_host(self):
        group = anti_affinity.Group('G', None, {})
        self.assertEqual(
            'server group G cannot be read: members: expected a list of '
            'UUIDs, got None',
            group.judge(set(), 'x').reason,
        )

    def test_an_instance_that_is_not_known_is_on_no_host(self):
        group = anti_affinity.Group('G', MEMBERS, {})
        self.assertFalse(group.judge({'a'}, None).passes)

    @hypothesis.given(
        members=strategies.sets(strategies.integers(0, 200)),
        hosts=strategies.lists(
            strategies.sets(strategies.integers(0, 200), max_size=60),
            max_size=6,
        ),
        rules=strategies.sampled_from(
            [{}, {'max_server_per_host': 3}, {'max_server_per_host': 'x'}]
        ),
    )
    def test_the_naive_definition(self, members, hosts, rules):
        group = anti_affinity.Group('G', map(str, members), rules)
        states = [dict.fromkeys(map(str, host)) for host in hosts]
        limit = 3 if rules else 1
        for host in states:
            held = len(group.members & host.keys())
            passes = not group.fault and held < limit
            self.assertEqual(passes, group.judge(host, 'x').passes)


class ReadLimitTest(unittest.TestCase):
    def test_rule_that_does_not_exist(self):
        with self.assertRaises(exception.InvalidValue) as caught:
            anti_affinity.read_limit({'max_server_per_rack\n': 2})
        self.assertEqual(
            "rules.'max_server_per_rack\\n': expected a rule of policy "
            'anti-affinity (max_server_per_host), got 2',
            str(caught.exception),
        )
