# SPDX-License-Identifier: Apache-2.0

"""What people read of the capacity, from a document alone."""

import io

import testtools

from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd import capacity_report as report


def flavor(name='small', servers=5, hosts=2, **fields):
    return {
        'name': name,
        'servers': servers,
        'unlimited': False,
        'hosts': hosts,
        'ends': [],
        'refused': [],
        'end': '',
        'fault': '',
        'rooms': None,
        'groups': None,
        'in_several': None,
        **fields,
    }


def room(host, servers, *ends):
    return {
        'host': host,
        'servers': servers,
        'unlimited': servers is None,
        'ends': list(ends),
    }


UNLIMITED = flavor('any', None, 1, unlimited=True)
FULL = flavor(
    'large',
    0,
    0,
    refused=[
        {'reason': 'are isolated', 'hosts': 2},
        {'reason': 'have no VGPU', 'hosts': 1},
    ],
)
ENDED = flavor('gpu', 0, 0, end='reserved_aggregates ends the request: no')
FAULTY = flavor('bad', None, 0, fault='MyFilter: expected an answer, got X')
SMALL = flavor(
    ends=[{'ends': 'VCPU', 'hosts': 1}, {'ends': 'isolation', 'hosts': 3}]
)


def document(*flavors, remarks=(), by=None):
    return {
        'hosts': 9,
        'by': by,
        'flavors': list(flavors),
        'remarks': list(remarks),
    }


class AnswerTestCase(testtools.TestCase):
    def text(self, found, by_host=False, **kwargs):
        out = io.StringIO()
        made = report.make(found, by_host, **kwargs)
        cli_report.write(out, made.sections, 80)
        return out.getvalue().splitlines()

    def rows(self, found, by_host=False):
        return [
            (*cells, ends.machine_readable())
            for *cells, ends in report.make(found, by_host).rows
        ]

    def test_one_flavor(self):
        for servers, sentence in (
            (0, 'No more servers of flavor f fit.'),
            (1, '1 more server of flavor f fits, on 1 of 9 hosts.'),
            (2, '2 more servers of flavor f fit, on 2 of 9 hosts.'),
        ):
            found = document(flavor('f', servers, servers))
            self.assertEqual(sentence, report.make(found, False).sentence)

    def test_several_flavors(self):
        found = document(
            UNLIMITED, SMALL, FULL, FAULTY, remarks=['A cell is silent']
        )
        lines = [
            '2 of 3 flavors have room on 9 hosts. Each number assumes that '
            'nothing else is created.',
            'A cell is silent.',
            'bad could not be counted: MyFilter: expected an answer, got X.',
        ]
        made = report.make(found, False)
        self.assertEqual(' '.join(lines), made.sentence)
        self.assertEqual(lines, [one.title for one in made.sections[:3]])

    def test_rows(self):
        self.assertEqual(
            [
                ('any', 'unlimited', 1, []),
                ('small', 5, 2, ['VCPU on 1 host', 'isolation on 3 hosts']),
                ('large', 0, 0, ['2 are isolated', '1 has no VGPU']),
                ('gpu', 0, 0, ['reserved_aggregates ends the request: no']),
                ('bad', '-', '-', []),
            ],
            self.rows(document(UNLIMITED, SMALL, FULL, ENDED, FAULTY)),
        )

    def test_what_limits_each(self):
        """What ends the room of most hosts, or refuses most; all, if long."""
        found = document(
            UNLIMITED, flavor('half', 2), SMALL, FULL, ENDED, FAULTY
        )
        section = report.make(found, False).sections[-1]
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
        text = '\n'.join(self.text(document(FULL)))
        self.assertIn('Hosts  Limiting factors\n', text)
        self.assertNotIn('█', text)

    def test_rooms(self):
        rooms = [
            room('a', None),
            room('b', 4, 'VCPU'),
            room('c', 0, 'isolation', 'MEMORY_MB'),
        ]
        found = document({**SMALL, 'rooms': rooms})
        self.assertEqual(
            [
                ('small', 'a', 'unlimited', []),
                ('small', 'b', 4, ['VCPU']),
                ('small', 'c', 0, ['isolation', 'MEMORY_MB']),
            ],
            self.rows(found, by_host=True),
        )
        self.assertEqual(
            [
                '5 more servers of flavor small fit, on 2 of 9 hosts.',
                '',
                'small: 5 servers, limited by VCPU on 1 host; isolation on 3 '
                'hosts',
                'Host    Servers  Limiting factors',
                'a     unlimited',
                'b             4  VCPU',
                'c             0  isolation, MEMORY_MB',
            ],
            self.text(found, by_host=True),
        )

    def test_groups(self):
        def group(name, servers, *ends):
            ends = [{'ends': one, 'hosts': 2} for one in ends]
            return {**room(name, servers), 'name': name, 'hosts': 2} | {
                'ends': ends
            }

        groups = [
            group('gpu', None),
            group('', 4, 'VCPU', 'isolation and MEMORY_MB'),
        ]
        several = {'servers': 3, 'unlimited': False}
        counted = flavor(groups=groups, in_several=several)
        found = document(counted, FAULTY, by='domain')
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
        self.assertEqual(
            [
                'small: 5 servers',
                'Failure domain    Servers  Hosts  Limiting factors',
                'gpu             unlimited      2',
                '(none)                  4      2  VCPU on 2 hosts; isolation '
                'and MEMORY_MB on 2',
                '                                  hosts',
                '3 of these would be on hosts in several failure domains, and '
                'count in each.',
                '',
                'bad: -',
            ],
            self.text(found)[-8:],
        )
        # Nobody knows how many, or they are none.
        for servers in (None, 0):
            several['servers'] = servers
            self.assertNotIn('in several', '\n'.join(self.text(found)))
        counted['in_several'] = {'servers': None, 'unlimited': True}
        text = '\n'.join(self.text(found))
        self.assertIn('Some of these would be on hosts in several', text)

    def test_map(self):
        """Of each flavor; a host that takes any number adds nothing."""
        rooms = [room('a', None), room('b', 4), room('c', 1), room('d', 0)]
        # The scheduler's order decides.
        rooms.append(room('e', None) | {'unlimited': False})
        found = document({**SMALL, 'rooms': rooms}, FAULTY) | {'topology': []}
        first, faulty = report.draw(found, 'zone')
        self.assertEqual(
            {'a': '█', 'b': '█', 'c': '▃', 'e': '?'},
            {host: sign.shown for host, sign in first.signs.items()},
        )
        self.assertEqual({'b': 4, 'c': 1, 'd': 0}, first.numbers)
        self.assertEqual(({}, {}), (faulty.signs, faulty.numbers))

    def test_many_hosts_are_folded(self):
        rooms = [room(f'h{number}', 1) for number in range(25)]
        made = report.make(document({**SMALL, 'rooms': rooms}), True)
        self.assertEqual(
            (20, 'host'), (made.sections[-1].most, made.sections[-1].noun)
        )
        self.assertEqual(25, len(made.rows))
