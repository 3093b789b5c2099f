# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_ext_sched.cli import topology
from nova_ext_sched.cmd.moves import maps
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cmd.moves import test_report


class MapsTestCase(testtools.TestCase):
    def test_failures(self):
        """What finds no host counts where it stands, in a domain too."""
        failures = [
            dataclasses.replace(
                test_report.make_failure(
                    'r1', 'VCPU', 'state', 'never evacuated'
                ),
                hosts=['a', 'host1'],
            ),
            dataclasses.replace(
                test_report.make_failure('r2'), hosts=['b'], room_for_last=8
            ),
            dataclasses.replace(
                test_report.make_failure('r3'), hosts=['c'], room_for_last=4
            ),
        ]
        outcome = plans.Outcome(failures, [], [], [], [])
        [stuck, _] = outcome.lost.values()
        made = maps.draw_survival(outcome, None, True)
        self.assertEqual({stuck.host: 2}, made.numbers)
        self.assertEqual(
            {stuck.host: '2', 'b': '█', 'c': '▅'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        nothing = topology.NOTHING.shown
        self.assertEqual('holds no server', made.legend[nothing])
        made = maps.draw_survival(outcome, None, False)
        self.assertEqual('not asked about', made.legend[nothing])

    def test_a_drain(self):
        """One with a server that has no place is not empty."""
        made = maps.draw_moves(test_report.FULL, {'host1', 'host9'}, [], None)
        self.assertEqual({'host2': 2}, made.numbers)
        self.assertEqual(
            {'host1': '1', 'host2': '█', 'host9': 'e'},
            {host: sign.shown for host, sign in made.signs.items()},
        )

    def test_moves_after_which_no_host_is_empty(self):
        """A host that servers leave may get others, and lack a place."""
        other = dataclasses.replace(test_report.make_move(2), host='host3')
        plan = test_report.make_plan([test_report.make_move(1), other])
        made = maps.draw_moves(plan, set(), [], None)
        self.assertEqual({'host2': 2}, made.numbers)
        self.assertEqual(
            {'host1': 'm', 'host2': '█', 'host3': 'm'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        self.assertEqual(
            [('m', 'servers move away'), ('▁-█', 'gets 1 to 2 servers')],
            sorted(made.explain(made.signs.values())),
        )

    def test_room(self):
        """A host with room for a new server, that others leave."""
        plan = plans.Room(
            moves=[test_report.make_move(1)],
            flavor='large',
            count=3,
            fit_now=1,
            room_on=['host3', 'host1', None],
        )
        made = maps.draw_room(plan, [], None)
        self.assertEqual(
            {'host1': 'n', 'host2': '█'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        self.assertIn(
            ('n', 'room for new servers then'),
            [*made.explain(made.signs.values())],
        )

    def test_rounds(self):
        found = plans.Rounds(
            [
                test_report.make_round(1),
                test_report.make_round(2, hosts=('host2', 'host3')),
            ],
            [
                plans.NotEmptied(
                    'host4',
                    [test_report.make_stuck(2), test_report.make_stuck(3)],
                ),
                plans.NotEmptied('host5', [], 'host1'),
            ],
            [],
            {},
        )
        drawn = maps.draw_rounds(found, [], None)
        self.assertEqual(
            ['host1', 'host2', 'host3', 'host4', 'host5'], [*drawn.signs]
        )
        self.assertEqual(drawn.signs['host2'], drawn.signs['host3'])
        self.assertNotEqual(drawn.signs['host1'], drawn.signs['host2'])
        self.assertEqual('2', drawn.signs['host4'].shown)
        # test_report.make_move() moves from host1.
        self.assertEqual({'host1': 2}, drawn.numbers)
