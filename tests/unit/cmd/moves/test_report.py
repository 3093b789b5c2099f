# SPDX-License-Identifier: Apache-2.0

import dataclasses
import io
import json

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd.moves import report
from nova_ext_sched.dryrun.plan import plans
from tests import schemas

UUID = 'af497212-0000-4000-8000-{:012}'


def make_leaving(number, name='db', class_=plans.Leaving, **kwargs):
    return class_(
        UUID.format(number), name, 'project', 'host1', ['isolation'], **kwargs
    )


def make_move(number, kind='live', name='web', to='host2'):
    return make_leaving(
        number, name, plans.Move, to=to, expected='host2', method=kind
    )


def make_stuck(number, name='db', reason='', cause='', helps=''):
    return make_leaving(
        number,
        name,
        plans.Stuck,
        reason=reason,
        cause=cause,
        would_help=helps,
    )


def make_plan(moves=(), without_place=(), mended=(), groups=(), deleted=()):
    return plans.Plan(
        moves=[*moves],
        without_place=[*without_place],
        mended_by_others=[*mended],
        groups=[*groups],
        deleted_meanwhile=[*deleted],
    )


def make_failure(name, *causes, to='host2'):
    """Return a failure with one move, and a server without place by cause.

    :param causes: ``CAUSE``, ``CAUSE/NAME`` or ``state: CAUSE THEN``
    """
    return plans.Failure(
        name,
        [name],
        [make_move(1, 'evacuate', to=to)],
        [
            make_leaving(
                number,
                class_=plans.Stuck,
                reason='why',
                cause=cause.partition(': ')[0].partition('/')[0],
                would_help='',
                name_of_cause=cause.partition('/')[2],
                cause_then=cause.partition(': ')[2],
            )
            for number, cause in enumerate(causes, 2)
        ],
    )


def make_flavor(
    name, fit, spare, failure='', or_more=False, reason='', cause=''
):
    return plans.FlavorRoom(
        name, name, fit, or_more, spare, failure, reason, cause
    )


FULL = make_plan(
    [make_move(1), make_move(2, 'cold', to=None)],
    [
        make_stuck(
            4,
            reason='0 of 9 hosts can take it. 9 are full (VCPU)',
            cause='VCPU',
            helps='VCPU on 9 hosts',
        )
    ],
    [make_leaving(5)],
    [
        plans.Group('uuid', 'web', 2, 3, 2, 2),
        plans.Group('uuid', 'db', 1, 1, 1, 2),
    ],
    [make_leaving(6)],
)


@ddt.ddt
class SentenceTestCase(testtools.TestCase):
    @ddt.data(
        (make_plan(), 'No server has to move.'),
        (
            make_plan(mended=[make_leaving(1)]),
            'No server has to move. 1 more server becomes compliant through '
            'these moves.',
        ),
        (
            make_plan(
                [make_move(n) for n in range(38)],
                [make_stuck(n, cause='MEMORY_MB') for n in range(2)],
            ),
            '38 of 40 servers can be moved; 2 cannot be placed: MEMORY_MB.',
        ),
        (
            make_plan(
                [],
                [make_stuck(n, cause='a') for n in range(2)]
                + [make_stuck(3, cause='b')],
            ),
            '0 of 3 servers can be moved; 3 cannot be placed: a 2, b 1.',
        ),
        (
            FULL,
            '2 of 3 servers can be moved; 1 cannot be placed: VCPU. 1 more '
            'server becomes compliant through these moves.',
        ),
    )
    @ddt.unpack
    def test_answer(self, found, expected):
        said = report.make(found, [], []).sections[0].title
        self.assertEqual(expected, said)


class ReportTestCase(testtools.TestCase):
    made = report.make(FULL, ['Two of three.'], ['Cell a is silent.'])

    def test_everything(self):
        stream = io.StringIO()
        cli_report.write(stream, self.made.sections, 110)
        lines = stream.getvalue().splitlines()
        self.assertEqual(
            [
                'Two of three.',
                '1 server was deleted meanwhile.',
                'Cell a is silent.',
                '',
                'Moves, in order:',
                f'  1  web  host1 to host2, live{" " * 27}{UUID.format(1)}',
                '  2  web  host1 to where nova chooses (host2 now), cold  '
                f'{UUID.format(2)}',
                '',
                'No place:',
                '  0 of 9 hosts can take it. 9 are full (VCPU).',
                '    What would help: VCPU on 9 hosts.',
                f'    db  host1  {UUID.format(4)}',
                '',
                'Closer together:',
                '  web: hosts 3 -> 2',
                '  db: hosts 1 -> 1, failure domains 2 -> 1',
            ],
            lines[lines.index('Two of three.') :],
        )
        self.assertEqual(
            [(20, 'move'), (5, 'reason'), (10, 'server group')],
            [(one.most, one.noun) for one in self.made.sections[-3:]],
        )

    def test_moves_of_several_hosts(self):
        """Of many moves each source is named once."""
        moves = [
            dataclasses.replace(make_move(n), host=f'host{n // 6}')
            for n in range(6, 18)
        ]
        made = report.make(make_plan(moves), [], [])
        cli_report.write(stream := io.StringIO(), made.sections[1:], 110)
        lines = stream.getvalue().splitlines()
        self.assertEqual(
            ['Moves, in order:', '  from host1, 6 servers:'], lines[:2]
        )
        for turn, line in enumerate(lines[2:8], 1):
            uuid = UUID.format(turn + 5)
            self.assertEqual(f'    {turn}  web  to host2, live  {uuid}', line)
        self.assertEqual('  from host2, 6 servers:', lines[8])

    def test_equal_reasons_are_told_once(self):
        """Some servers of each are seen, whichever has the most."""
        stuck = [
            *(make_stuck(n, f'web-{n}', 'a is down') for n in range(1, 9)),
            make_stuck(9, 'db', 'a is down', helps='start it'),
            make_stuck(10, 'db', 'it is in error'),
            make_stuck(11, 'web-11', 'a is down'),
        ]
        stream = io.StringIO()
        made = report.make(make_plan([], stuck), [], [])
        cli_report.write(stream, made.sections[1:], 100)
        self.assertEqual(
            [
                'No place:',
                '  a is down.',
                *(f'    web-{n}  host1  {UUID.format(n)}' for n in (1, 2, 3)),
                '    and 6 more servers (--all lists all)',
                '  a is down.',
                '    What would help: start it.',
                f'    db  host1  {UUID.format(9)}',
                '  it is in error.',
                f'    db  host1  {UUID.format(10)}',
            ],
            stream.getvalue().splitlines(),
        )

    def test_rows(self):
        self.assertEqual(
            [(1, 'host1', 'host2', 'live'), (2, 'host1', '', 'cold')],
            [(row[0], row[4], *row[6:]) for row in self.made.rows],
        )

    def test_document(self):
        document = self.made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(['Cell a is silent.'], document['faults'])
        self.assertTrue(
            document['answer']['sentence'].endswith(
                'moves. Two of three. 1 server was deleted meanwhile.'
            )
        )
        expected = dataclasses.asdict(FULL)
        self.assertEqual(
            json.loads(json.dumps(expected)),
            {key: document[key] for key in expected},
        )


@ddt.ddt
class SurvivalTestCase(testtools.TestCase):
    def tell(
        self,
        failures,
        lose='host',
        remarks=(),
        faults=(),
        flavors=(),
        deleted=(),
        all_=False,
    ):
        rest = map(list, (flavors, deleted, remarks, faults))
        outcome = plans.Outcome(failures, *rest)
        self.made = report.make_survival(outcome, lose, all_=all_)
        stream = io.StringIO()
        cli_report.write(stream, self.made.sections, 80)
        return stream.getvalue().splitlines()

    def test_the_first_lines(self):
        lines = self.tell(
            [
                make_failure('gpu-01', *['PCI_DEVICE'] * 3),
                make_failure('a', to=None),
                make_failure('compute-09', 'isolation/windows', 'MEMORY_MB'),
            ],
            remarks=['More.'],
            faults=['Cell a is silent.'],
        )
        self.assertEqual(
            [
                '1 of 3 hosts can fail, one at a time; 2 cannot:',
                '  gpu-01      3 of 4 servers find no host: PCI_DEVICE',
                '  compute-09  2 of 3: isolation (windows) 1, MEMORY_MB 1',
                'More.',
                'Cell a is silent.',
                '',
                'Host        Servers  Placed  Choices for last server',
                'gpu-01            4       1                        -',
                'compute-09        3       1                        -',
                'a                 1       1                        -',
                '',
                'No host for these of gpu-01, compute-09:',
                '  why.',
            ],
            lines[:13],
        )
        self.assertEqual(1, self.made.status)
        self.assertNotIn('Moves, in order:', lines)
        document = self.made.document()
        schemas.validate(document, 'schemas/plan.json')
        rows = list(self.made.rows)
        self.assertEqual(8, len(rows))
        self.assertEqual(
            ['host2', '', 'host2'], [row[-2] for row in rows if row[1] == 1]
        )

    def test_servers_that_nova_would_not_evacuate_as_they_are(self):
        """A host can fail where there is room; both are said."""
        failures = [
            make_failure('a', 'state'),
            make_failure('b', 'state: VCPU', 'VCPU'),
        ]
        lines = self.tell(failures)
        self.assertEqual(
            [
                '1 of 2 hosts can fail, one at a time; 1 cannot:',
                '  b  2 of 3 servers find no host: VCPU',
                'nova would not evacuate 1 server as it is.',
                '',
                'Host  Servers  Placed  Choices for last server',
            ],
            lines[:5],
        )
        self.assertNotIn('There is a host for these', str(lines))
        schemas.validate(self.made.document(), 'schemas/plan.json')
        self.assertIn('state, VCPU', [row[-1] for row in self.made.rows])
        lines = self.tell(failures[:1])
        self.assertEqual(
            [
                '1 of 1 host can fail, one at a time.',
                'nova would not evacuate 1 server as it is.',
            ],
            lines[:2],
        )
        self.assertIn(
            'There is a host for these, once nova evacuates them:', lines
        )

    def test_servers_that_nova_never_evacuates(self):
        """Their host is not safe, whatever room there is."""
        lines = self.tell(
            [
                make_failure('a', 'state'),
                make_failure('b', 'state', 'state', 'never evacuated', 'VCPU'),
            ]
        )
        self.assertEqual(
            [
                '1 of 2 hosts can fail, one at a time; 1 cannot:',
                '  b  2 of 5 servers find no host: never evacuated 1, VCPU 1',
                'nova would not evacuate 2 servers as they are.',
                'nova never evacuates 1 server, whatever the state.',
                '',
                'Host  Servers  Placed  Choices for last server',
            ],
            lines[:6],
        )
        schemas.validate(self.made.document(), 'schemas/plan.json')

    @ddt.data(
        (3, 'VCPU', []),
        (3, 'state', []),
        (3, 'never evacuated', []),
        (1, plans.FAULT, []),
        (1, f'state: {plans.FAULT}', []),
        (1, 'VCPU', ['Down.']),
    )
    @ddt.unpack
    def test_exit_status(self, status, cause, faults):
        self.tell([make_failure('host1', cause)], faults=faults)
        self.assertEqual(status, self.made.status)

    def test_all_can(self):
        self.assertEqual(
            '2 of 2 failure domains can fail, one at a time.',
            self.tell([make_failure('a'), make_failure('b')], 'domain')[0],
        )
        self.assertEqual(0, self.made.status)

    def test_all_well_is_two_lines(self):
        """A table of hosts that can all fail is for those who ask for it."""
        failures = [
            dataclasses.replace(make_failure(name), room_for_last=left)
            for name, left in (('a', 60), ('b', 1))
        ]
        first = '2 of 2 hosts can fail, one at a time.'
        self.assertEqual(
            [
                first,
                'The tightest is b: 1 choice for its last server (--all lists '
                'every host).',
            ],
            self.tell(failures),
        )
        lines = self.tell(failures, all_=True)
        self.assertEqual([first, ''], lines[:2])
        self.assertEqual(
            ['Host', 'b', 'a'], [line.split()[0] for line in lines[2:]]
        )

    def test_the_tightest(self):
        """Those that cost servers, then by room, then as people count."""
        failures = [
            dataclasses.replace(
                make_failure(f'host{number}'), room_for_last=left
            )
            for number, left in enumerate([9, 8, 7, *[60] * 8, 4])
        ]
        failures.append(
            dataclasses.replace(make_failure('bad', 'VCPU'), room_for_last=30)
        )
        self.assertEqual(
            [
                'The tightest of 13 hosts:',
                'Host    Servers  Placed  Choices for last server',
                'bad           2       1                       30  '
                f'{"█" * 15}',
                f'host11        1       1                        4  {"█" * 2}',
                f'host2         1       1                        7  {"█" * 4}',
                f'host1         1       1                        8  {"█" * 4}',
                f'host0         1       1                        9  {"█" * 4}',
                *(
                    f'host{number}         1       1{" " * 23}60  {"█" * 30}'
                    for number in range(3, 8)
                ),
                '  and 3 more hosts (--all lists all)',
            ],
            self.tell(failures)[3:16],
        )
        schemas.validate(self.made.document(), 'schemas/plan.json')

    def test_nothing_to_lose(self):
        self.assertEqual(['No host holds a server.'], self.tell([]))

    def test_servers_that_were_deleted(self):
        deleted = [make_leaving(number) for number in (1, 2)]
        lines = self.tell([], remarks=['More.'], deleted=deleted)
        said = ['No host holds a server.', 'More.']
        said.append('2 servers were deleted meanwhile.')
        self.assertEqual(said, lines)
        self.assertEqual(0, self.made.status)
        document = self.made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(' '.join(said), document['answer']['sentence'])
        self.assertEqual(
            [dataclasses.asdict(one) for one in deleted],
            document['deleted_meanwhile'],
        )

    def test_flavors(self):
        flavors = [
            make_flavor('small', 40, 31, 'host3'),
            make_flavor('m', 2, 2, or_more=True),
            make_flavor('xl', 0, 0, '', False, '0 of 2 hosts', 'VCPU'),
        ]
        lines = self.tell(
            [make_failure('a'), make_failure('b')], flavors=flavors
        )
        self.assertEqual(
            [
                'Room for more servers, while any one host can still fail '
                'safely:',
                '  small  31 of 40 that fit now; one more would strand a '
                'server of host3',
                '  m      2 of at least 2 that fit now',
                '  xl     0 of 0 that fit now',
                '    0 of 2 hosts.',
            ],
            lines[3:],
        )
        self.assertEqual(3, self.made.status)
        columns = report.SURVIVAL_COLUMNS + report.FLAVOR_COLUMNS
        rows = [dict(zip(columns, row, strict=True)) for row in self.made.rows]
        self.assertEqual(
            [
                ('a', 1, 'host2', '', '', '', ''),
                ('b', 1, 'host2', '', '', '', ''),
                ('host3', '', '', '', 'small', 40, 31),
                ('', '', '', '', 'm', 2, 2),
                ('', '', '', 'VCPU', 'xl', 0, 0),
            ],
            [
                (row['Failure'], row['Turn'], row['To'], row['Cause'])
                + tuple(map(row.get, report.FLAVOR_COLUMNS))
                for row in rows
            ],
        )
        document = self.made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(
            [*map(dataclasses.asdict, flavors)], document['flavors']
        )

    def test_a_flavor_of_which_none_may_come(self):
        none = [make_flavor('small', 9, 0, 'b')]
        self.tell([make_failure('a', 'VCPU')], flavors=none)
        self.assertEqual(3, self.made.status)
        self.tell([], flavors=none)
        self.assertEqual(3, self.made.status)
        self.tell([], flavors=none, faults=['Cell a is silent.'])
        self.assertEqual(1, self.made.status)


def make_round(*numbers, hosts=('host1',), groups=()):
    return plans.Round(
        [*hosts], [make_move(number) for number in numbers], [*groups]
    )


@ddt.ddt
class RoundsTestCase(testtools.TestCase):
    def make(self, rounds=(), kept=(), deleted=(), faults=()):
        found = plans.Rounds([*rounds], [*kept], [*deleted], {'host1': UUID})
        made = report.make_rounds(found, ['Remark.'], [*faults])
        document = made.document()
        schemas.validate(document, 'schemas/plan.json')
        out = io.StringIO()
        cli_report.write(out, made.sections, 80)
        self.text = out.getvalue()
        self.assertEqual(
            made.sentence,
            ' '.join((document['answer']['sentence'], *faults)),
        )
        return made

    @ddt.data(
        ('There is no host to empty. Remark.', 0, [], []),
        (
            '2 of 2 hosts can be emptied, in 1 round. Remark.',
            0,
            [make_round(1, 2, hosts=('host1', 'host3'))],
            [],
        ),
        (
            '1 of 2 hosts can be emptied, in 1 round; 1 cannot. Remark.',
            3,
            [make_round(1)],
            [plans.NotEmptied('host4', [make_stuck(2, cause='VCPU')])],
        ),
        (
            '0 of 1 host can be emptied; 1 cannot. Remark.',
            3,
            [],
            [plans.NotEmptied('host4', [], 'host5')],
        ),
        (
            '0 of 1 host can be emptied; 1 cannot. Remark.',
            1,
            [],
            [plans.NotEmptied('host4', [make_stuck(2, cause=plans.FAULT)])],
        ),
    )
    @ddt.unpack
    def test_head_and_status(self, sentence, status, rounds, kept):
        made = self.make(rounds, kept)
        self.assertEqual((sentence, status), (made.sentence, made.status))

    def test_text(self):
        group = plans.Group('uuid', 'web', 7, 8, 2, 2)
        weaker = plans.Group('other', 'db', 2, 3, 2, 2)
        kept = [
            plans.NotEmptied(
                'host4', [make_stuck(2, 'x', 'why', 'VCPU', 'that')]
            ),
            plans.NotEmptied('host10', [], 'host5'),
            plans.NotEmptied('host11', []),
        ]
        self.make(
            [make_round(1, 2), make_round(3, groups=[group, weaker])], kept
        )
        self.assertEqual(
            """\
2 of 5 hosts can be emptied, in 2 rounds; 3 cannot.
Remark.

Round  Hosts  Moves  Live  Cold  Closer together
    1  host1      2     2     0
    2  host1      1     1     0  db: hosts 3 -> 2; 1 more group

Cannot be emptied:
  host4   1 server has no place: VCPU
  host10  while it is empty, host5 cannot fail
  host11  what kept it was deleted meanwhile: make the plan again

No place for these of host4:
  why.
    What would help: that.
    x  host1  af497212-0000-4000-8000-000000000002
""",
            self.text,
        )

    def test_hosts_as_people_count_them(self):
        apart = [f'host{number}' for number in range(2, 80, 2)]
        rounds = [
            make_round(1, hosts=('host10', 'host9', 'host11')),
            make_round(2, hosts=('host10', 'host2')),
            make_round(3, hosts=reversed(apart)),
        ]
        self.make(rounds)
        for one in (
            '1  host[9-11] ',
            '2  host[2, 10] ',
            '3  host2, host4, host6 and 36 more ',
        ):
            self.assertIn(f'    {one}', self.text)
        found = plans.Rounds(rounds, [], [], {})
        made = report.make_round(2, found, [], [])
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
            one = make_round(1, hosts=[f'host{n}' for n in named])
            found = plans.Rounds([one], [], [], {})
            [_, table] = report.make_rounds(found, (), (), hosts).sections
            [[_, said, *_]] = table.rows
            self.assertEqual(shown, said)

    def test_several_groups_get_closer(self):
        groups = [
            plans.Group('uuid', name, number, 9, 1, 1)
            for name, number in (('a', 8), ('b', 3), ('c', 4))
        ]
        self.make([make_round(1, groups=groups)])
        self.assertIn(' b: hosts 9 -> 3; 2 more groups\n', self.text)

    def test_what_cannot_be_emptied_is_in_order(self):
        kept = [plans.NotEmptied(f'host{n}', [], 'x') for n in (10, 9)]
        self.make(kept=kept)
        self.assertLess(
            self.text.index('  host9 '), self.text.index('  host10 ')
        )

    def test_rows(self):
        made = self.make([make_round(1), make_round(2, 3)])
        self.assertEqual(
            [(1, 1), (2, 1), (2, 2)], [row[:2] for row in made.rows]
        )
        self.assertEqual({len(report.ROUND_COLUMNS)}, {*map(len, made.rows)})

    def test_one_round(self):
        """It is a plan as of drain, which the same program carries out."""
        found = plans.Rounds(
            [make_round(1), make_round(2, 3)], [], [], {'host1': UUID}
        )
        made = report.make_round(2, found, ['Remark.'], [])
        document = made.document()
        schemas.validate(document, 'schemas/plan.json')
        self.assertEqual(2, len(document['moves']))
        self.assertEqual(['host1'], document['to_be_empty'])
        self.assertEqual({'host1': UUID}, document['services'])
        self.assertEqual(
            '2 of 2 servers can be moved. host1 is empty after round 2. '
            'Remark.',
            made.sentence,
        )
        for number in (0, 3):
            self.assertRaisesRegex(
                exception.InvalidValue,
                f'expected 1 to 2, the rounds that there are, got .{number}',
                report.make_round,
                number,
                found,
                [],
                [],
            )
        self.assertRaisesRegex(
            exception.InvalidValue,
            'expected none: there is no round',
            report.make_round,
            1,
            plans.Rounds([], [], [], {}),
            [],
            [],
        )


@ddt.ddt
class RoomTestCase(testtools.TestCase):
    @ddt.data(
        (5, 5, 5, 0, '5 of 5 fit now, and no server has to move.', 0),
        (
            5,
            3,
            5,
            4,
            '3 of 5 fit now. 4 moves make room for the other 2, on h4 and h5. '
            'The 3 that fit now are placed first, so that no move spends that '
            'room. Nothing keeps the room: ',
            0,
        ),
        (
            5,
            1,
            2,
            1,
            '1 of 5 fits now. 1 move makes room for 1 more, on h2. For 3 no '
            'moves were found. Why. The one that fits now is placed first',
            3,
        ),
        (5, 0, 0, 0, '0 of 5 fit now. For 5 no moves were found. Why.', 3),
    )
    @ddt.unpack
    def test_first_lines(self, count, now, room, moves, said, status):
        found = plans.Room(
            moves=[make_move(number) for number in range(moves)],
            flavor='large',
            count=count,
            fit_now=now,
            room_on=[f'h{number}' for number in range(1, room + 1)],
            in_the_way=['Why.'] * (room < count),
        )
        made = report.make_room(found, [])
        self.assertIn(said, made.sentence)
        self.assertEqual(status, made.status)
        document = made.document()
        self.assertEqual(
            (found.room_on, count, now),
            tuple(document[name] for name in ('room_on', 'count', 'fit_now')),
        )
        self.assertEqual(1, report.make_room(found, ['Cell a.']).status)
