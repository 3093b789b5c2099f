# SPDX-License-Identifier: Apache-2.0

"""Tests of the decision of anti-affinity, and of its rules."""

import unittest

import ddt

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
        ({'max_server_per_host': ' 2 '}, ('a',), True),
        # nova-api takes any number of digits. Python reads 4,300 of them.
        ({'max_server_per_host': '9' * 4300}, ('a', 'b', 'c'), True),
        ({'max_server_per_host': '9' * 4301}, (), False),
        ({'max_server_per_host': 'two'}, (), False),
        ({'max_server_per_host': 'two'}, ('x',), True),
        ({'max_server_per_host': 0}, (), False),
        ({'max_server_per_host': True}, (), False),
        ({'max_server_per_host': None}, (), False),
        ({'max_server_per_host': 2.5}, (), False),
        ({'max_server_per_rack': 2}, (), False),
        ({'max_server_per_rack': 2}, ('x',), True),
        # One that is not known is on no host.
        ({}, ('a',), False, None),
    )
    @ddt.unpack
    def test_truth_table(self, rules, instances, passes, instance='x'):
        group = anti_affinity.Group('G', [*MEMBERS, 'x'], rules)
        host = dict.fromkeys(instances)
        self.assertEqual(passes, group.judge(host, instance).passes)

    @ddt.data(
        (('G', MEMBERS, {'max_server_per_host': 2}),
         'the host holds 2 servers of server group G and max_server_per_host '
         'is 2'),
        ((None, MEMBERS, {'max_server_per_host': 0}),
         'server group n/a cannot be read: rules.max_server_per_host: '
         'expected an integer, 1 or more, got 0'),
        (('G', None, {}),
         'server group G cannot be read: members: expected a list of UUIDs, '
         'got None'),
        (('G', MEMBERS, {'max_server_per_rack\n': 2}),
         "server group G cannot be read: rules.'max_server_per_rack\\n': "
         'expected a rule of policy anti-affinity (max_server_per_host), got '
         '2'),
    )  # fmt: skip
    @ddt.unpack
    def test_reason(self, group, expected):
        found = anti_affinity.Group(*group).judge({'a', 'b', 's'}, 'x')
        self.assertEqual((False, expected), (found.passes, found.reason))
