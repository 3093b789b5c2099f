# SPDX-License-Identifier: Apache-2.0

"""What people read of the capacity, from a document alone."""

import io

import testtools

from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.capacity import answer


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


def document(*flavors, remarks=()):
    return {'hosts': 9, 'flavors': list(flavors), 'remarks': list(remarks)}


class AnswerTestCase(testtools.TestCase):
    def text(self, found, by_host=False):
        out = io.StringIO()
        answer.write(layout.Layout(out, 80), found, by_host)
        return out.getvalue()

    def test_one_flavor(self):
        for servers, sentence in (
            (0, '0 more servers of flavor f fit, on 0 of 9 hosts.'),
            (1, '1 more server of flavor f fits, on 1 of 9 hosts.'),
            (2, '2 more servers of flavor f fit, on 2 of 9 hosts.'),
        ):
            found = document(flavor('f', servers, servers))
            self.assertEqual(sentence, answer.sum_up(found))

    def test_several_flavors(self):
        self.assertEqual(
            '2 of 3 flavors have room on 9 hosts. Each number is what fits if '
            'nothing else is created. A cell is silent. bad could not be '
            'counted: MyFilter: expected an answer, got X.',
            answer.sum_up(
                document(
                    UNLIMITED,
                    SMALL,
                    FULL,
                    FAULTY,
                    remarks=['A cell is silent'],
                )
            ),
        )

    def test_rows(self):
        self.assertEqual(
            [
                ('any', 'unlimited', 1, []),
                ('small', 5, 2, ['VCPU on 1 host', 'isolation on 3 hosts']),
                ('large', 0, 0, ['2 are isolated', '1 has no VGPU']),
                ('gpu', 0, 0, ['reserved_aggregates ends the request: no']),
                ('bad', '-', '-', []),
            ],
            [
                (*cells, ends.machine_readable())
                for *cells, ends in answer.rows(
                    document(UNLIMITED, SMALL, FULL, ENDED, FAULTY)
                )
            ],
        )

    def test_a_table(self):
        lines = self.text(document(SMALL, FULL)).splitlines()
        self.assertEqual(
            [
                '1 of 2 flavors has room on 9 hosts. Each number is what fits '
                'if nothing else is',
                'created.',
                '',
                'Flavor  Servers  Hosts  Ends with',
                'small         5      2  VCPU on 1 host; isolation on 3 hosts',
                'large         0      0  2 are isolated; 1 has no VGPU',
            ],
            lines,
        )

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
            [
                (*cells, ends.machine_readable())
                for *cells, ends in answer.host_rows(found)
            ],
        )
        self.assertEqual(
            [
                '5 more servers of flavor small fit, on 2 of 9 hosts.',
                '',
                'small: 5; VCPU on 1 host; isolation on 3 hosts',
                'Host    Servers  Ends with',
                'a     unlimited',
                'b             4  VCPU',
                'c             0  isolation, MEMORY_MB',
            ],
            self.text(found, by_host=True).splitlines(),
        )

    def test_many_hosts_are_folded(self):
        rooms = [room(f'h{number}', 1) for number in range(25)]
        found = document({**SMALL, 'rooms': rooms})
        self.assertIn(
            'and 5 more hosts (-f csv lists all)',
            self.text(found, by_host=True),
        )
        self.assertEqual(25, len(answer.host_rows(found)))
