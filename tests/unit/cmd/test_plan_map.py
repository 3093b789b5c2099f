# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_ext_sched.cmd import plan_map
from tests.unit.cmd import plan_cases


class MapTestCase(testtools.TestCase):
    def test_a_drain(self):
        """One with a server that has no place is not empty."""
        made = plan_map.draw_moves(
            plan_cases.FULL, {'host1', 'host9'}, [], None
        )
        self.assertEqual({'host2': 2}, made.numbers)
        self.assertEqual(
            {'host1': '1', 'host2': '█', 'host9': 'e'},
            {host: sign.shown for host, sign in made.signs.items()},
        )

    def test_hosts_that_get_one_server_each(self):
        plan = plan_cases.make_plan([plan_cases.make_move(1)])
        made = plan_map.draw_moves(plan, set(), [], None)
        self.assertIn(
            ('▁-█', 'gets 1 server'), [*made.explain(made.signs.values())]
        )

    def test_a_failure(self):
        """Its own host fails, unless servers of it have no place."""
        for causes, shown in ((['VCPU'], '1'), ([], 'f')):
            failure = plan_cases.make_failure('host1', *causes)
            made = plan_map.draw_failure(failure, [], None)
            self.assertEqual({'host2': 1}, made.numbers)
            self.assertEqual(
                {'host1': shown, 'host2': '█'},
                {host: sign.shown for host, sign in made.signs.items()},
            )

    def test_moves_after_which_no_host_is_empty(self):
        """A host that servers leave may get others, and lack a place."""
        other = dataclasses.replace(plan_cases.make_move(2), host='host3')
        plan = plan_cases.make_plan([plan_cases.make_move(1), other])
        made = plan_map.draw_moves(plan, set(), [], None)
        self.assertEqual({'host2': 2}, made.numbers)
        self.assertEqual(
            {'host1': 'm', 'host2': '█', 'host3': 'm'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        self.assertEqual(
            [('m', 'servers move away'), ('▁-█', 'gets 1 to 2 servers')],
            sorted(made.explain(made.signs.values())),
        )
