# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cli import names
from nova_ext_sched.cmd import hold_report
from nova_ext_sched.dryrun.plan import plans
from tests import schemas
from tests.unit.cmd import plan_cases
from tests.unit.cmd import reading


def make_hold(marked=(), held=(), alone=(), not_saved=(), hold='full', **more):
    fields = {
        name: [] for name in ('not_emptied', 'kinds', 'price', 'commands')
    }
    return plans.Hold(
        **{'moves': [], **fields, **more},
        hold=hold,
        mark=[plans.Held(host, 1, 2, False) for host in marked],
        held=[*held],
        alone=[plans.Alone(host, host, 'why') for host in alone],
        not_saved=[*not_saved],
    )


@ddt.ddt
class HoldReportTestCase(testtools.TestCase):
    def tell(self, hold, lose='host'):
        made = hold_report.make(hold, lose, names.Names(), [], [])
        schemas.validate(made.document(), 'schemas/plan.json')
        return made

    @ddt.unpack
    @ddt.data(
        (
            {'held': 'ab'},
            '2 failover hosts are enough: any one host can fail, however full '
            'it is.',
            0,
        ),
        (
            {'held': 'a', 'hold': 'now'},
            '1 failover host is enough: any one host can fail.',
            0,
        ),
        ({}, 'No failover host is needed: any one host can fail, howev', 0),
        (
            {'marked': 'ab'},
            'Keep 2 hosts free so that any one host can fail, however full it '
            'is: a, b.',
            3,
        ),
        (
            {'marked': 'a', 'held': 'b', 'hold': 'now'},
            'Keep 1 more host free so that any one host can fail: a.',
            3,
        ),
        (
            {'held': 'a', 'alone': 'b'},
            '1 failover host is enough: any one host that has a replacement '
            'can fail, however full it is. 1 host has no replacement.',
            3,
        ),
        (
            {'alone': 'b'},
            'No host can be kept free to replace one that fails. 1 host has ',
            3,
        ),
        (
            {'not_saved': [plan_cases.make_stuck(1)], 'hold': 'now'},
            'No host can be kept free to replace one that fails. 1 server '
            'would be lost all the same.',
            3,
        ),
    )
    def test_first_lines(self, case, expected, status):
        made = self.tell(make_hold(**case))
        self.assertEqual(expected, made.sentence[: len(expected)])
        self.assertEqual(status, made.status)

    def test_failure_domains(self):
        made = self.tell(make_hold(held='a', alone='b'), 'domain')
        self.assertIn(
            'any one failure domain whose hosts have replacements can fail,',
            made.sentence,
        )

    def test_order(self):
        """The remarks follow the answer; the lists follow the remarks."""
        made = self.tell(
            make_hold(
                'a',
                alone='b',
                price=[plans.Price('1', 'small', 9)],
                moves=[plan_cases.make_move(1)],
                kinds=[plans.NotSaved('state', 'paused')],
            )
        )
        wanted = (
            'Keep 1 host free so that any one host that has a replacement',
            'Keeping them free takes the room of 9 servers of flavor small.',
            '1 host has no replacement.',
            'Mark the hosts first, then move 1 server off them.',
            'Keep free: a can replace 2 hosts; 1 server must leave',
            'No host can replace these once they are full: b why',
            'Never saved by a host that is kept free: state paused',
            'Moves, in order:',
        )
        text = reading.read_flat(made, 200)
        places = [text.find(one) for one in wanted]
        self.assertEqual(sorted(places), places, text)
        self.assertEqual(0, places[0], text)

    def test_metric(self):
        self.assertIn(
            'Further hosts to keep free so that any one host',
            hold_report.measure(1).meaning,
        )
