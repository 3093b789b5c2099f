# SPDX-License-Identifier: Apache-2.0

import io
import shlex

import ddt
import testtools

from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.audit import plan_report

UUID = 'af497212-0000-4000-8000-{:012}'


def make_move(number, kind='live', room_for=None, name='web', host='host2'):
    return {
        'server': UUID.format(number),
        'name': name,
        'project': 'project',
        'from': 'host1',
        'to': host,
        'kind': kind,
        'policies': [] if room_for else ['isolation'],
        'room_for': room_for,
    }


def make_violation(number, name='db'):
    return {
        'server': UUID.format(number),
        'name': name,
        'project': 'project',
        'host': 'host1',
        'policies': ['isolation'],
    }


def make_stuck(number, name='db', reason='', cause='', helps=''):
    return {
        **make_violation(number, name),
        'reason': reason,
        'cause': cause,
        'would_help': helps,
    }


def make_plan(moves=(), without_place=(), mended=(), left_over=()):
    return {
        'moves': list(moves),
        'without_place': list(without_place),
        'mended_by_others': list(mended),
        'left_over': list(left_over),
    }


FULL = make_plan(
    [make_move(1), make_move(2, 'cold', UUID.format(3)), make_move(3)],
    [
        make_stuck(
            4,
            reason='0 of 9 hosts: 9 are full (VCPU)',
            cause='VCPU',
            helps='VCPU on 9 hosts',
        )
    ],
    [make_violation(5)],
    [make_violation(6)],
)


@ddt.ddt
class SentenceTestCase(testtools.TestCase):
    @ddt.data(
        (make_plan(), 'No server has to move.'),
        (make_plan(mended=[make_violation(1)]), 'No server has to move.'),
        (make_plan([make_move(1)]), '1 of 1 server can be moved.'),
        (
            make_plan(
                [make_move(n) for n in range(38)],
                [make_stuck(n, cause='MEMORY_MB') for n in range(2)],
            ),
            '38 of 40 servers can be moved; 2 have no place: MEMORY_MB.',
        ),
        (
            make_plan(
                [],
                [make_stuck(n, cause='a') for n in range(2)]
                + [make_stuck(3, cause='b')],
            ),
            '0 of 3 servers can be moved; 3 have no place: a 2, b 1.',
        ),
        (
            FULL,
            '2 of 4 servers can be moved; 1 has no place: VCPU. 1 other '
            'server makes room. 1 server violates nothing any more after '
            'these moves. 1 server is left (--most).',
        ),
    )
    @ddt.unpack
    def test_answer(self, found, expected):
        said = plan_report.sum_up(found)
        self.assertTrue(expected.startswith('No') or said == expected, said)
        self.assertTrue(said.startswith(expected), said)

    def test_several_are_left(self):
        found = make_plan([make_move(1)], left_over=[make_violation(2)] * 2)
        self.assertIn(' 2 servers are left', plan_report.sum_up(found))


@ddt.ddt
class TextTestCase(testtools.TestCase):
    def write(self, found, columns=80):
        stream = io.StringIO()
        plan_report.write(layout.Layout(stream, columns), found)
        lines = stream.getvalue().splitlines()
        self.assertGreaterEqual(columns, max(map(len, lines)))
        return lines

    def test_everything(self):
        lines = self.write(FULL)
        self.assertEqual(
            [
                '',
                'One after the other:',
                f'  1  {UUID.format(1)}  host1 to host2, live  web',
                f'  2  {UUID.format(2)}  host1 to host2, cold, makes room for',
                f'     {UUID.format(3)}  web',
                f'  3  {UUID.format(3)}  host1 to host2, live  web',
                '',
                'No place:',
                f'  {UUID.format(4)}  host1  db',
                '    0 of 9 hosts: 9 are full (VCPU).',
                '    What would help: VCPU on 9 hosts.',
            ],
            lines[lines.index('') :],
        )

    @ddt.data(80, 160)
    def test_many_with_long_names(self, columns):
        name = 'a very long name "of a server" ' * 8
        found = make_plan(
            [
                make_move(n, name=name, host='compute012.example.org')
                for n in range(300)
            ],
            [
                make_stuck(n, name, reason='why', cause='VCPU')
                for n in range(100)
            ],
        )
        lines = self.write(found, columns)
        self.assertGreaterEqual(100, len(lines))
        self.assertIn('  and 280 more moves (-f json lists all)', lines)
        self.assertIn('  and 90 more servers (-f json lists all)', lines)


class RowsTestCase(testtools.TestCase):
    def test_rows(self):
        rows = [
            dict(zip(plan_report.COLUMNS, row, strict=True))
            for row in plan_report.rows(FULL)
        ]
        self.assertEqual([1, 2, 3], [row['Turn'] for row in rows])
        self.assertEqual(
            [['isolation'], [], ['isolation']],
            [row['Policies'].machine_readable() for row in rows],
        )
        self.assertEqual(UUID.format(3), rows[1]['Room for'])

    def test_commands(self):
        stream = io.StringIO()
        found = make_plan(
            [
                make_move(1, name='web; $(reboot)'),
                make_move(2, 'cold', host="it's; reboot"),
            ]
        )
        plan_report.write_commands(stream, found)
        server = ['openstack', '--os-compute-api-version', '2.68', 'server']
        self.assertEqual(
            [
                [
                    *server,
                    *'migrate --live-migration --wait --host host2'.split(),
                    UUID.format(1),
                ],
                [
                    *server,
                    *'migrate --wait --host'.split(),
                    "it's; reboot",
                    UUID.format(2),
                ],
                [*server, 'resize', 'confirm', UUID.format(2)],
            ],
            list(map(shlex.split, stream.getvalue().splitlines())),
        )
