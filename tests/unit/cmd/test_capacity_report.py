# SPDX-License-Identifier: Apache-2.0

"""What people read of the capacity, from a document alone."""

import testtools

from nova_ext_sched.cmd import capacity_report as report
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.fit import answer
from tests import schemas
from tests.unit.cmd import reading


def flavor(name='small', servers=5, hosts=2, ends=(), refused=(), **fields):
    return answer.RoomForFlavor(
        **dict(id=name, name=name, vcpus=1, memory_mb=1, root_gb=1),
        **dict(ephemeral_gb=0, servers=servers, hosts=hosts),
        ends=[answer.RoomEnd(*one) for one in ends],
        refused=[
            refusals.Reason(reason, 'c', 'c', number, [], [])
            for reason, number in refused
        ],
        **{'unlimited': False, **fields},
    )


def room(host, servers, *ends, unlimited=None):
    if unlimited is None:
        unlimited = servers is None
    return answer.RoomOnHost(host, 'uuid', servers, unlimited, [*ends])


ENDS = (('VCPU', 1), ('isolation', 3))
UNLIMITED = flavor('any', None, 1, unlimited=True)
FULL = flavor(
    'large', 0, 0, refused=[('are isolated', 2), ('have no VGPU', 1)]
)
ENDED = flavor('gpu', 0, 0, end='reserved_aggregates ends the request: no')
FAULTY = flavor('bad', None, 0, fault='MyFilter: expected an answer, got X')
SMALL = flavor(ends=ENDS)


def tally(*flavors, remarks=(), by=None):
    asked = answer.Wanted(None, {}, False, None, None, None, [])
    return answer.Tally(asked, 9, by, [*flavors], [*remarks])


class AnswerTestCase(testtools.TestCase):
    def text(self, found, by_host=False, **kwargs):
        made = report.make(found, [], by_host, **kwargs)
        schemas.validate(made.document(), 'schemas/capacity.json')
        return reading.read_lines(made)

    def rows(self, found, by_host=False):
        return [
            (*cells, ends.machine_readable())
            for *cells, ends in report.make(found, [], by_host).rows
        ]

    def test_several_flavors(self):
        found = tally(
            UNLIMITED, SMALL, FULL, FAULTY, remarks=['A cell is silent']
        )
        lines = [
            '2 of 3 flavors have room on 9 hosts. Each number assumes that '
            'nothing else is created.',
            'A cell is silent.',
            'bad could not be counted: MyFilter: expected an answer, got X.',
        ]
        made = report.make(found, [], False)
        self.assertEqual(' '.join(lines), made.sentence)
        self.assertEqual(lines, [one.title for one in made.sections[:3]])
        answer = made.document()['answer']
        self.assertEqual({'sentence': made.sentence}, answer)

    def test_rows(self):
        self.assertEqual(
            [
                ('any', 'unlimited', 1, []),
                ('small', 5, 2, ['VCPU on 1 host', 'isolation on 3 hosts']),
                ('large', 0, 0, ['2 are isolated', '1 has no VGPU']),
                ('gpu', 0, 0, ['reserved_aggregates ends the request: no']),
                ('bad', '-', '-', []),
            ],
            self.rows(tally(UNLIMITED, SMALL, FULL, ENDED, FAULTY)),
        )

    def test_what_limits_each(self):
        """What ends the room of most hosts, or refuses most; all, if long."""
        found = tally(UNLIMITED, flavor('half', 2), SMALL, FULL, ENDED, FAULTY)
        section = report.make(found, [], False).sections[-1]
        self.assertEqual('Limited by', section.columns[-1])
        self.assertEqual(
            [
                ('any', 'unlimited', ''),
                ('half', 2, ''),
                ('small', 5, 'isolation'),
                ('large', 0, '2 are isolated'),
                ('gpu', 0, 'reserved_aggregates ends the request: no'),
                ('bad', '-', 'could not be counted'),
            ],
            [(*row[:2], row[-1]) for row in section.rows],
        )
        self.assertEqual(
            ['', 0.4, 1.0, 0.0, 0.0, ''],
            [
                bar and bar.parts[0] / bar.whole
                for _, _, bar, *_ in section.rows
            ],
        )
        text = '\n'.join(self.text(found, is_long=True))
        self.assertIn('VCPU on 1 host; isolation on 3 hosts\n', text)
        self.assertIn('2 are isolated; 1 has no VGPU\n', text)
        # One alone has all, and nothing to be compared with.
        text = '\n'.join(self.text(tally(FULL)))
        self.assertIn('Hosts  Limiting factors\n', text)
        self.assertNotIn('█', text)

    def test_rooms(self):
        rooms = [
            room('a', None),
            room('b', 4, 'VCPU'),
            room('c', 0, 'isolation', 'MEMORY_MB'),
        ]
        found = tally(flavor(ends=ENDS, rooms=rooms))
        self.assertEqual(
            [
                ('small', 'a', 'unlimited', []),
                ('small', 'b', 4, ['VCPU']),
                ('small', 'c', 0, ['isolation', 'MEMORY_MB']),
            ],
            self.rows(found, by_host=True),
        )
        self.assertIn('a     unlimited', self.text(found, by_host=True))

    def test_groups(self):
        def group(name, servers, *ends):
            ends = [answer.RoomEnd(one, 2) for one in ends]
            return answer.RoomInGroup(name, servers, servers is None, 2, ends)

        groups = [
            group('gpu', None),
            group('', 4, 'VCPU', 'isolation and MEMORY_MB'),
        ]
        several = answer.RoomSum(3, False)
        counted = flavor(groups=groups, in_several=several)
        found = tally(counted, FAULTY, by='domain')
        self.assertEqual(
            [
                ('small', 'gpu', 'unlimited', 2, []),
                (
                    *('small', '(none)', 4, 2),
                    ['VCPU on 2 hosts', 'isolation and MEMORY_MB on 2 hosts'],
                ),
            ],
            self.rows(found),
        )
        lines = self.text(found)
        for said in (
            'small: 5 servers',
            'Failure domain    Servers  Hosts  Limiting factors',
            'gpu             unlimited      2',
            '3 of these would be on hosts in several failure domains, and '
            'count in each.',
            'bad: -',
        ):
            self.assertIn(said, lines)
        # Nobody knows how many, or they are none.
        for servers in (None, 0):
            counted.in_several = answer.RoomSum(servers, False)
            self.assertNotIn('in several', '\n'.join(self.text(found)))
        counted.in_several = answer.RoomSum(None, True)
        text = '\n'.join(self.text(found))
        self.assertIn('Some of these would be on hosts in several', text)

    def test_map(self):
        """Of each flavor; a host that takes any number adds nothing."""
        rooms = [room('a', None), room('b', 4), room('c', 1), room('d', 0)]
        # The scheduler's order decides.
        rooms.append(room('e', None, unlimited=False))
        found = tally(flavor(ends=ENDS, rooms=rooms), FAULTY)
        first, faulty = report.draw(found, [], 'zone')
        self.assertEqual(
            {'a': '█', 'b': '█', 'c': '▃', 'e': '?'},
            {host: sign.shown for host, sign in first.signs.items()},
        )
        self.assertEqual({'b': 4, 'c': 1, 'd': 0}, first.numbers)
        self.assertEqual(({}, {}), (faulty.signs, faulty.numbers))

    def test_many_hosts_are_folded(self):
        rooms = [room(f'h{number}', 1) for number in range(25)]
        made = report.make(tally(flavor(ends=ENDS, rooms=rooms)), [], True)
        self.assertEqual(
            (20, 'host'), (made.sections[-1].most, made.sections[-1].noun)
        )
        self.assertEqual(25, len(made.rows))
