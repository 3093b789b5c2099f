# SPDX-License-Identifier: Apache-2.0

import importlib.resources
import io
import json
import types

import ddt
import jsonschema
import testtools

from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.audit import report
from nova_ext_sched.cmd.audit import totals
from tests.unit.cmd.audit import test_totals

SCHEMA = json.loads(
    importlib.resources.files('nova_ext_sched.cmd.audit')
    .joinpath('schema.json')
    .read_text()
)
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
PROJECT = '6f70656e737461636b20342065766572'


def uuid(number):
    return f'af497212-8ba1-4069-a420-{number:012}'


def row(number, policy, reason, host='host1', name='web', project=PROJECT):
    return uuid(number), name, project, host, policy, reason


class CellsTestCase(testtools.TestCase):
    def test_hosts(self):
        for hosts, people in (
            (['a', 'b'], 'a, b'),
            ([], 'none'),
            (None, 'unknown'),
            (list('abcde'), 'a, b, c and 2 more'),
        ):
            cell = report.Where(hosts)
            self.assertEqual(people, cell.human_readable())
            self.assertEqual(hosts, cell.machine_readable())

    def test_policies(self):
        cell = report.Policies({'a': 2, 'b': 1})
        self.assertEqual('a 2, b 1', cell.human_readable())
        self.assertEqual({'a': 2, 'b': 1}, cell.machine_readable())


class ReportTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.totals = totals.Totals(['isolation', 'anti-affinity'])
        self.auditing = types.SimpleNamespace(totals=self.totals, faults=[])

    def count(self, *policies, judged=True):
        unjudged = [] if judged else [totals.NOT_JUDGED]
        self.totals.add(test_totals.make_server([*policies, *unjudged]))


@ddt.ddt
class TextTestCase(ReportTestCase):
    def write(self, rows, names=COLUMNS, columns=80):
        stream = io.StringIO()
        rows = [dict(zip(names, row, strict=True)) for row in rows]
        report.write(
            layout.Layout(stream, columns), self.auditing, rows, 'By' in names
        )
        return stream.getvalue().splitlines()

    def test_totals_then_each_reason_and_project_once(self):
        for policy in ('anti-affinity', 'isolation', 'isolation'):
            self.count(policy)
        self.count(judged=False)
        self.count()
        self.auditing.faults = ['Cell a is at mysql://nova:secret@db.']
        reason = 'aggregate windows is isolated and the request does not'
        rows = [
            row(1, 'not-judged', 'no request spec'),
            row(2, 'anti-affinity', 'too many'),
            row(3, 'isolation', reason, project='other'),
            row(4, 'isolation', f'{reason} require CUSTOM_WINDOWS', 'host2'),
            row(5, 'isolation', f'{reason} require CUSTOM_WINDOWS', name=''),
        ]
        self.assertEqual(
            [
                '3 of 5 servers violate a policy:',
                '  2  isolation',
                '  1  anti-affinity',
                '  1  cannot be judged',
                'Cell a is at mysql://nova:***@db.',
                '',
                f'isolation, 2 servers of project {PROJECT}: aggregate',
                '  windows is isolated and the request does not require '
                'CUSTOM_WINDOWS',
                f'  {uuid(4)}  host2  web',
                f'  {uuid(5)}  host1',
                '',
                'isolation, 1 server of project other: aggregate windows is '
                'isolated and the',
                '  request does not',
                f'  {uuid(3)}  host1  web',
                '',
                f'anti-affinity, 1 server of project {PROJECT}: too many',
                f'  {uuid(2)}  host1  web',
                '',
                f'not-judged, 1 server of project {PROJECT}: no request',
                '  spec',
                f'  {uuid(1)}  host1  web',
            ],
            self.write(rows),
        )

    def test_the_policy_of_most_servers_first(self):
        for policy in ('anti-affinity', 'anti-affinity', 'isolation'):
            self.count(policy)
        lines = self.write(
            [row(1, 'isolation', 'a'), row(2, 'anti-affinity', 'b')]
        )
        self.assertEqual(['  2  anti-affinity', '  1  isolation'], lines[1:3])
        self.assertIn('anti-affinity, 1', lines[4])
        self.assertEqual(
            '3 of 3 servers violate a policy: anti-affinity 2, isolation 1.',
            self.totals.sentence,
        )

    def test_nothing_found(self):
        self.count()
        self.assertEqual(
            [
                '0 of 1 server violates a policy (judged by isolation, '
                'anti-affinity).'
            ],
            self.write([]),
        )

    def test_nothing_found_and_nothing_sure(self):
        self.count(judged=False)
        lines = self.write([row(1, 'not-judged', 'why')])
        self.assertIn('cannot be judged.', ' '.join(lines))

    @ddt.data(80, 160)
    def test_a_line_for_each_server(self, columns):
        """Whatever users call it."""
        self.count('isolation')
        host = 'compute012.example.org'
        rows = [
            row(number, 'isolation', 'why', host, name)
            for number, name in enumerate(
                ('x' * 255, 'x' * (columns - 64), 'a\nb' * 80, 'ab ' * 80)
            )
        ]
        lines = self.write(rows, columns=columns)
        self.assertEqual(4, len(lines[lines.index('') + 2 :]), lines)
        self.assertGreaterEqual(columns, max(map(len, lines)))
        self.assertIn('x' * (columns - 64), lines[-3])

    def test_where_they_could_go(self):
        self.count('isolation')
        where = report.Where([f'compute{n:03}' for n in range(5)])
        lines = self.write(
            [(*row(1, 'isolation', 'why'), where)], (*COLUMNS, 'Where')
        )
        self.assertIn(
            'could go to: compute000, compute001, compute002 and 2 more',
            ' '.join(' '.join(lines).split()),
        )

    @ddt.data(
        # Groups; those that are seen, and servers of each.
        (1, 1, 20),
        (2, 2, 10),
        (5, 5, 4),
        (40, 5, 4),
    )
    @ddt.unpack
    def test_many_are_folded(self, groups, shown, most):
        rows = [
            row(number, 'isolation', f'{"reason " * 24}{number % groups}')
            for number in range(3000)
        ]
        for _ in rows:
            self.count('isolation')
        for columns in (80, 160):
            lines = self.write(rows, columns=columns)
            self.assertGreaterEqual(60, len(lines))
            seen = [line for line in lines if 'af497212' in line]
            self.assertEqual(shown * most, len(seen))
            left = 3000 // groups - most
            line = f'  and {left} more servers (-f csv lists all)'
            self.assertEqual(shown, lines.count(line))
            more = 'and 35 more groups of reason and project, 2625 servers '
            self.assertEqual(
                groups == 40, f'{more}(-f csv lists all)' in lines
            )

    def test_each_policy_is_seen(self):
        self.count('isolation')
        rows = [row(n, 'isolation', str(n)) for n in range(10)]
        rows.append(row(11, 'anti-affinity', 'few'))
        rows.append(row(12, 'not-judged', 'why'))
        lines = self.write(rows)
        heads = [line.partition(',')[0] for line in lines if 'project' in line]
        self.assertEqual(
            ['isolation'] * 3
            + [
                'anti-affinity',
                'not-judged',
                'and 7 more groups of reason and project',
            ],
            heads,
        )

    def test_summary(self):
        self.count('isolation')
        both = {'isolation': 11, 'anti-affinity': 2}
        rows = [
            ('aggregate', 'windows', 12, report.Policies(both)),
            ('aggregate', 'sql', 1, report.Policies({'isolation': 1})),
            *(
                ('host', f'host{n}', 7, report.Policies({'isolation': 7}))
                for n in range(12)
            ),
        ]
        lines = self.write(rows, ('By', 'Name', 'Servers', 'Policies'))
        self.assertEqual(
            [
                '1 of 1 server violates a policy:',
                '  1  isolation',
                '',
                'By aggregate:',
                '  12  windows: isolation 11, anti-affinity 2',
                '   1  sql: isolation 1',
                '',
                'By host:',
                *(f'  7  host{n}: isolation 7' for n in range(10)),
                '  and 2 more hosts (-f csv lists all)',
            ],
            lines,
        )


class DocumentTestCase(ReportTestCase):
    def write(self, names, rows, summary=False):
        rows = [dict(zip(names, row, strict=True)) for row in rows]
        name = 'summary' if summary else 'findings'
        found = report.make_document(
            self.auditing, **{name: report.list_rows(rows)}
        )
        jsonschema.Draft202012Validator(SCHEMA).validate(found)
        return found

    def test_findings(self):
        self.count('isolation')
        self.count(judged=False)
        self.auditing.faults = ['mysql://nova:secret@db']
        names = ('Server', 'Policy', 'Where')
        document = self.write(
            names,
            [
                ('1', 'isolation', report.Where(list('abcdefghijkl'))),
                ('2', 'not-judged', report.Where(None)),
            ],
        )
        self.assertRegex(
            document.pop('time'), r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$'
        )
        self.assertEqual(
            {'nova-ext-sched', 'nova'}, {*document.pop('versions')}
        )
        self.assertEqual(
            {
                'format': 1,
                'answer': {
                    'sentence': '1 of 2 servers violates a policy: isolation '
                    '1. 1 server cannot be judged.',
                    'servers': 2,
                    'violating': 1,
                    'not_judged': 1,
                    'policies': {'isolation': 1, 'anti-affinity': 0},
                },
                'findings': [
                    {
                        'server': '1',
                        'policy': 'isolation',
                        'where': list('abcdefghijkl'),
                    },
                    {'server': '2', 'policy': 'not-judged', 'where': None},
                ],
                'faults': ['mysql://nova:***@db'],
            },
            document,
        )

    def test_summary(self):
        document = self.write(
            ('By', 'Name', 'Servers', 'Policies'),
            [('host', 'host1', 2, report.Policies({'isolation': 2}))],
            summary=True,
        )
        self.assertEqual(
            [
                {
                    'by': 'host',
                    'name': 'host1',
                    'servers': 2,
                    'policies': {'isolation': 2},
                }
            ],
            document['summary'],
        )
        self.assertNotIn('findings', document)
