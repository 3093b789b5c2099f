# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.cmd import maintain_report
from nova_ext_sched.dryrun.plan import plans
from tests import schemas
from tests.unit.cmd import plan_cases
from tests.unit.cmd import reading


def keep(cause):
    """Return a host that a server keeps from being emptied."""
    return plans.NotEmptied('host4', [plan_cases.make_stuck(2, cause=cause)])


NONE = '0 of 1 host can be emptied; 1 cannot.'
TWO_HOSTS = plan_cases.make_round(1, 2, hosts=('host1', 'host3'))


@ddt.ddt
class RoundsTestCase(testtools.TestCase):
    def make(self, rounds=(), kept=(), deleted=(), faults=()):
        found = plans.Rounds(
            [*rounds], [*kept], [*deleted], {'host1': plan_cases.UUID}
        )
        made = maintain_report.make_rounds(found, ['Remark.'], [*faults])
        document = made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.text = reading.read(made)
        self.assertEqual(
            made.sentence, ' '.join((document['answer']['sentence'], *faults))
        )
        return made

    @ddt.data(
        ('There is no host to empty.', 0, [], []),
        ('2 of 2 hosts can be emptied, in 1 round.', 0, [TWO_HOSTS], []),
        ('1 of 2 hosts can be emptied, in 1 round; 1 cannot.', 3,
         [plan_cases.make_round(1)], [keep('VCPU')]),
        (NONE, 3, [], [plans.NotEmptied('host4', [], 'host5')]),
        (NONE, 1, [], [keep(plans.FAULT)]),
        ('0 of 1 host can be emptied; whether 1 can is not known.', 3, [],
         [keep(plans.NOT_KNOWN)]),
        ('There is no host to empty, of those read.', 1, [], [], 'Away.'),
        ('1 of 2 hosts can be emptied, of those read, in 1 round; 1 cannot.',
         1, [plan_cases.make_round(1)], [keep('VCPU')], 'Away.'),
    )  # fmt: skip
    @ddt.unpack
    def test_head_and_status(self, sentence, status, rounds, kept, *faults):
        made = self.make(rounds, kept, faults=faults)
        said = ' '.join([sentence, 'Remark.', *faults])
        self.assertEqual((said, status), (made.sentence, made.status))

    def test_text(self):
        group = plans.Group('uuid', 'web', 7, 8, 2, 2)
        weaker = plans.Group('other', 'db', 2, 3, 2, 2)
        # Not in the order in which people count them.
        kept = [
            plans.NotEmptied('host10', [], 'host5'),
            plans.NotEmptied(
                'host4', [plan_cases.make_stuck(2, 'x', 'why', 'VCPU', 'that')]
            ),
            plans.NotEmptied('host11', []),
        ]
        self.make(
            [
                plan_cases.make_round(1, 2),
                plan_cases.make_round(3, groups=[group, weaker]),
            ],
            kept,
        )
        self.assertIn(
            """
Round  Hosts  Moves  Live  Cold  Less redundancy
    1  host1      2     2     0
    2  host1      1     1     0  db is on 2 hosts instead of 3; 1 more group

Cannot be emptied:
  host4   1 server cannot be moved: VCPU
  host10  while it is empty, host5 cannot fail
  host11  what blocked it was deleted meanwhile: make a new plan
""",
            self.text,
        )

    def test_hosts_as_people_count_them(self):
        apart = [f'host{number}' for number in range(2, 80, 2)]
        rounds = [
            plan_cases.make_round(1, hosts=('host10', 'host9', 'host11')),
            plan_cases.make_round(2, hosts=('host10', 'host2')),
            plan_cases.make_round(3, hosts=reversed(apart)),
        ]
        self.make(rounds)
        for one in (
            '1  host[9-11] ',
            '2  host[2, 10] ',
            '3  host2, host4, host6 and 36 more ',
        ):
            self.assertIn(f'    {one}', self.text)
        found = plans.Rounds(rounds, [], [], {})
        made = maintain_report.make_round(2, found, [], [])
        self.assertIn('host[2, 10] are empty after round 2', made.sentence)

    def test_hosts_of_one_domain(self):
        hosts = [
            {'host': f'host{n}', 'domains': domains}
            for n, domains in enumerate(
                (['r1'], ['r1'], ['r2'], ['r2'], ['r2'], ['r1', 'r3'], [])
            )
        ]
        for named, shown in (
            ('01', 'r1: host[0-1]'),
            ('34', 'r2: host[3-4]'),
            ('234', 'r2: all 3 hosts'),
            ('3', 'host3'),
            ('13', 'host[1, 3]'),
            ('05', 'host[0, 5]'),
            ('6', 'host6'),
            ('67', 'host[6-7]'),
        ):
            one = plan_cases.make_round(1, hosts=[f'host{n}' for n in named])
            found = plans.Rounds([one], [], [], {})
            [_, table] = maintain_report.make_rounds(
                found, (), (), hosts
            ).sections
            [[_, said, *_]] = table.rows
            self.assertEqual(shown, said)

    def test_rows(self):
        made = self.make(
            [plan_cases.make_round(1), plan_cases.make_round(2, 3)],
            [keep('VCPU')],
        )
        self.assertEqual(
            # The last one cannot be moved.
            [(1, 1, ''), (2, 1, ''), (2, 2, ''), ('', '', 'VCPU')],
            [(*row[:2], row[-1]) for row in made.rows],
        )
        self.assertEqual(
            {len(maintain_report.COLUMNS)}, {*map(len, made.rows)}
        )

    def test_one_round(self):
        """It is a plan as of drain, which the same program carries out."""
        found = plans.Rounds(
            [plan_cases.make_round(1), plan_cases.make_round(2, 3)],
            [],
            [],
            {'host1': plan_cases.UUID},
        )
        made = maintain_report.make_round(2, found, ['Remark.'], [])
        document = made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(2, len(document['moves']))
        self.assertEqual(['host1'], document['to_be_empty'])
        self.assertEqual({'host1': plan_cases.UUID}, document['services'])
        self.assertEqual(
            '2 of 2 servers can be moved. host1 is empty after round 2. '
            'Remark.',
            made.sentence,
        )
        for number in (0, 3):
            self.assertRaisesRegex(
                base.UsageError,
                f'There is no round {number}, only 2 rounds.',
                maintain_report.make_round,
                number,
                found,
                [],
                [],
            )

    @ddt.data(
        ([keep('state')], 3, f'{NONE} Remark.'),
        ([], 0, 'There is no host to empty. Remark.'),
    )
    @ddt.unpack
    def test_no_round(self, kept, status, sentence):
        """What is asked for is not there, and it says why."""
        found = plans.Rounds([], kept, [], {})
        made = maintain_report.make_round(3, found, ['Remark.'], [])
        schemas.validate(made.document(), 'schemas/plan.json')
        self.assertEqual((status, sentence), (made.status, made.sentence))
        self.assertEqual(len(kept), len(made.document()['not_emptied']))


class MapTestCase(testtools.TestCase):
    def test_rounds(self):
        found = plans.Rounds(
            [
                plan_cases.make_round(1),
                plan_cases.make_round(2, hosts=('host2', 'host3')),
            ],
            [
                plans.NotEmptied(
                    'host4',
                    [plan_cases.make_stuck(2), plan_cases.make_stuck(3)],
                ),
                plans.NotEmptied('host5', [], 'host1'),
            ],
            [],
            {},
        )
        drawn = maintain_report.draw(found, [], None)
        self.assertEqual(
            ['host1', 'host2', 'host3', 'host4', 'host5'], [*drawn.signs]
        )
        self.assertEqual(drawn.signs['host2'], drawn.signs['host3'])
        self.assertNotEqual(drawn.signs['host1'], drawn.signs['host2'])
        self.assertEqual('2', drawn.signs['host4'].shown)
        # plan_cases.make_move() moves from host1.
        self.assertEqual({'host1': 2}, drawn.numbers)
