# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import ddt
import testtools

from nova_ext_sched.cmd import maintain_report
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun.plan import plans
from tests import schemas
from tests.unit.cmd import plan_cases
from tests.unit.cmd import reading

GONE = '1 server was deleted meanwhile, or is being deleted.'
MENDED = '1 more server becomes compliant through these moves.'


@ddt.ddt
class SentenceTestCase(testtools.TestCase):
    @ddt.data(
        # Moves, causes of those that stay, and servers that others mend.
        (0, '', 0, 'No server has to move.'),
        (0, '', 1, f'No server has to move. {MENDED}'),
        (38, 'MEMORY_MB MEMORY_MB', 0,
         '38 of 40 servers can be moved; 2 cannot: MEMORY_MB.'),
        (0, 'b a a', 0, '0 of 3 servers can be moved; 3 cannot: a 2, b 1.'),
        (2, 'VCPU', 1,
         f'2 of 3 servers can be moved; 1 cannot: VCPU. {MENDED}'),
    )  # fmt: skip
    @ddt.unpack
    def test_answer(self, moves, causes, mended, expected):
        plan = plan_cases.make_plan(
            [plan_cases.make_move(n) for n in range(moves)],
            [plan_cases.make_stuck(1, cause=one) for one in causes.split()],
            [plan_cases.make_leaving(1)] * mended,
        )
        said = plan_report.make(plan, [], []).sections[0].title
        self.assertEqual(expected, said)


class PausedTestCase(testtools.TestCase):
    def test_they_are_named(self):
        moves = [
            dataclasses.replace(plan_cases.make_move(n), paused=n == 1)
            for n in (1, 2)
        ]
        made = plan_report.make(plan_cases.make_plan(moves), [], [])
        said = (
            '1 moved server is paused. Resume it before another live '
            'migration, or its guest can be lost.'
        )
        self.assertIn(said, made.sentence)
        [first, second] = made.sections[-1].rows
        self.assertIn('live (paused)', str(first))
        self.assertNotIn('paused', str(second))


class CrowdedTestCase(testtools.TestCase):
    def test_they_are_named(self):
        plan = dataclasses.replace(
            plan_cases.make_plan([plan_cases.make_move(1)]),
            crowded=[
                plans.Crowded('host2', 58, 12, 'PCIWeigher'),
                plans.Crowded('host3', 12, 3, ''),
            ],
        )
        self.assertIn(
            'host2 gets 58 of the servers (PCIWeigher prefers it), the next '
            'host 12. host3 gets 12 of the servers, the next host 3.',
            plan_report.make(plan, [], []).sentence,
        )


class TimeTestCase(testtools.TestCase):
    def test_about_how_long(self):
        plan = plan_cases.make_plan([plan_cases.make_move(1)])
        self.assertNotIn('take', plan_report.make(plan, [], []).sentence)
        plan = dataclasses.replace(plan, seconds=5400)
        self.assertIn(
            'The moves take about 1 hour 30 min, one after the other (by the '
            'last migrations of this cloud).',
            plan_report.make(plan, [], []).sentence,
        )


class ProcessorsTestCase(testtools.TestCase):
    def test_they_are_named(self):
        """Of a move what the host lacks, of a round where hosts have more."""
        lacks = [f'avx{n}' for n in range(5)]
        moves = [
            dataclasses.replace(plan_cases.make_move(1), lacks=lacks),
            dataclasses.replace(plan_cases.make_move(2), newer=True),
        ]
        made = plan_report.make(plan_cases.make_plan(moves), [], [])
        said = (
            '1 move goes to a host that lacks CPU features of the source '
            'host: nova may refuse it (Unacceptable CPU info).'
        )
        self.assertIn(said, made.sentence)
        self.assertNotIn('more CPU features', made.sentence)
        [first, second] = made.sections[-1].rows
        self.assertIn('live (lacks avx0, avx1, avx2 and 2', str(first))
        self.assertIn(' of host1)', str(first))
        self.assertNotIn('lacks', str(second))
        rounds = plans.Rounds(
            [plans.Round(['host1'], one, []) for one in (moves[:1], moves)],
            [],
            [],
            {},
        )
        made = maintain_report.make_rounds(rounds, [], [])
        self.assertIn('2 moves go to a host that', made.sentence)
        said = (
            'Round 2 leaves 1 server on hosts with more CPU features: nova '
            'may refuse to live-migrate it back.'
        )
        self.assertIn(said, made.sentence)
        self.assertNotIn('Round 1', made.sentence)


@ddt.ddt
class ShutDownTestCase(testtools.TestCase):
    @ddt.data(
        # Why moves are cold, servers that stay, and what follows the answer.
        ('stopped', '', ''),
        ('device', '',
         '; 1 running server is shut down for it (it has a device)'),
        ('device stopped device', 'VCPU',
         '. 2 running servers are shut down for it (they have a device)'),
        ('refused device device', '',
         '; 3 running servers are shut down for it (2 have a device, '
         '1 cannot be live-migrated)'),
    )  # fmt: skip
    @ddt.unpack
    def test_answer(self, whys, causes, expected):
        moves = [
            plan_cases.make_move(turn, 'cold', why=why)
            for turn, why in enumerate(whys.split())
        ]
        stuck = [plan_cases.make_stuck(9, cause=one) for one in causes.split()]
        made = plan_report.make(plan_cases.make_plan(moves, stuck), [], [])
        self.assertTrue(
            made.sentence.endswith(
                (f' moved{expected}.', f': {causes}{expected}.')
            ),
            made.sentence,
        )
        self.assertEqual(
            [move.server for move in moves if move.why_cold != 'stopped'],
            made.document()['shut_down'],
        )

    def test_listed_first_with_the_reason(self):
        made = plan_report.make(
            plan_cases.make_plan(
                [
                    plan_cases.make_move(1),
                    plan_cases.make_move(2, 'cold', 'db', to=None),
                ]
            ),
            [],
            [],
        )
        uuid = plan_cases.UUID.format(2)
        self.assertEqual(
            [
                'Running servers that are shut down:',
                '  2  db  host1 to a host that nova chooses (host2 now): it '
                f'has a device  {uuid}',
            ],
            reading.read_lines(made.sections[1:], 120)[:2],
        )
        self.assertEqual(['', 'has a device'], [row[8] for row in made.rows])

    def test_of_rounds(self):
        """Each round has turns of its own."""
        rounds = [
            plans.Round([host], [plan_cases.make_move(n, 'cold')], [])
            for n, host in enumerate(('host1', 'host3'), 1)
        ]
        found = plan_report._list_shut_down(
            [*plan_report._number_shut_down(plans.Rounds(rounds, [], [], {}))]
        )
        text = ' '.join(reading.read_lines(found, 120))
        for said in ('web  round 1: host1 to', 'web  round 2: host1 to'):
            self.assertIn(said, text)


class StuckTestCase(testtools.TestCase):
    def test_of_the_first_hosts(self):
        stuck = {
            f'host{number}': [plan_cases.make_stuck(number, reason='why')]
            for number in range(1, 5)
        }
        made = plan_report.list_first_stuck(
            'Left on', stuck, plan_report.NO_NAMES
        )
        self.assertEqual('Left on host1, host2, host3:', made.title)
        [line] = made.rows
        self.assertEqual(3, len(line.below.rows))


class ReportTestCase(testtools.TestCase):
    made = plan_report.make(
        plan_cases.FULL, ['Two of three.'], ['Cell a is silent.']
    )

    def test_everything(self):
        lines = reading.read_lines(self.made, 110)
        for said in (
            ['Two of three.', GONE]
            + ['Cell a is silent.', '', 'Running servers that are shut down:'],
            [
                '  2  web  host1 to a host that nova chooses (host2 now), '
                f'cold  {plan_cases.UUID.format(2)}'
            ],
            [
                '  web is on 2 hosts instead of 3',
                '  db is in 1 failure domain instead of 2',
            ],
        ):
            place = lines.index(said[0])
            self.assertEqual(said, lines[place : place + len(said)])
        self.assertEqual(
            [(20, 'move'), (5, 'reason'), (10, 'server group')],
            [(one.most, one.noun) for one in self.made.sections[-3:]],
        )

    def test_moves_of_several_hosts(self):
        """Of many moves each source is named once."""
        moves = [
            dataclasses.replace(plan_cases.make_move(n), host=f'host{n // 6}')
            for n in range(6, 18)
        ]
        made = plan_report.make(plan_cases.make_plan(moves), [], [])
        lines = reading.read_lines(made.sections[1:], 110)
        self.assertEqual(
            ['Moves, in order:', '  from host1, 6 servers:'], lines[:2]
        )
        for turn, line in enumerate(lines[2:8], 1):
            uuid = plan_cases.UUID.format(turn + 5)
            self.assertEqual(f'    {turn}  web  to host2, live  {uuid}', line)
        self.assertEqual('  from host2, 6 servers:', lines[8])

    def test_many_moves(self):
        """A table says where they go, before the first of them."""
        moves = [
            dataclasses.replace(
                plan_cases.make_move(turn, 'cold' if turn > 18 else 'live'),
                expected='host10' if turn % 3 else 'host9',
            )
            for turn in range(21)
        ]
        made = plan_report.make(plan_cases.make_plan(moves), [], [])
        lines = reading.read_lines(made.sections[-2:], 110)
        self.assertEqual(
            [
                'To      Servers  Live  Cold',
                'host10       14    12     2',
                'host9         7     7     0',
                '',
                'Moves, in order:',
            ],
            lines[:5],
        )

    def test_equal_reasons_are_told_once(self):
        """Some servers of each are seen, whichever has the most."""
        stuck = [
            *(
                plan_cases.make_stuck(n, f'web-{n}', 'a is down')
                for n in range(1, 9)
            ),
            plan_cases.make_stuck(9, 'db', 'a is down', helps='start it'),
            plan_cases.make_stuck(10, 'db', 'it is in error'),
            plan_cases.make_stuck(11, 'web-11', 'a is down'),
        ]
        made = plan_report.make(plan_cases.make_plan([], stuck), [], [])
        self.assertEqual(
            [
                'Cannot be moved:',
                '  a is down.',
                *(
                    f'    web-{n}  host1  {plan_cases.UUID.format(n)}'
                    for n in (1, 2, 3)
                ),
                '    and 6 more servers (--all lists all)',
                '  a is down.',
                '    Fix: start it.',
                f'    db  host1  {plan_cases.UUID.format(9)}',
                '  it is in error.',
                f'    db  host1  {plan_cases.UUID.format(10)}',
            ],
            reading.read_lines(made.sections[1:], 100),
        )

    def test_rows(self):
        self.assertEqual(
            [
                (1, 'host1', 'host2', 'live', ''),
                (2, 'host1', '', 'cold', ''),
                # One that cannot be moved.
                ('', 'host1', '', '', 'VCPU'),
            ],
            [(row[0], row[4], *row[6:8], row[9]) for row in self.made.rows],
        )

    def test_document(self):
        document = self.made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(['Cell a is silent.'], document['faults'])
        self.assertTrue(
            document['answer']['sentence'].endswith(
                f'(it has a device). Two of three. {GONE}'
            )
        )
        expected = dataclasses.asdict(plan_cases.FULL)
        for turn, move in enumerate(expected['moves'], 1):
            move['turn'] = turn
        self.assertEqual(
            json.loads(json.dumps(expected)),
            {key: document[key] for key in expected},
        )
