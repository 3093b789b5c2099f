# SPDX-License-Identifier: Apache-2.0

import argparse
import importlib.resources
import io
import json
import types
from unittest import mock

from cliff.formatters import json_format
import ddt
import jsonschema
import testtools

from nova_ext_sched.cmd.audit import report
from nova_ext_sched.cmd.audit import totals

SCHEMA = json.loads(
    importlib.resources.files('nova_ext_sched.cmd.audit')
    .joinpath('schema.json')
    .read_text()
)
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
PROJECT = '6f70656e737461636b20342065766572'


def uuid(number):
    return f'af497212-8ba1-4069-a420-{number:012}'


def row(number, policy, reason, host='host1', name='web'):
    return uuid(number), name, PROJECT, host, policy, reason


class CellsTestCase(testtools.TestCase):
    def test_hosts(self):
        for hosts, people, programs in (
            (['a', 'b'], 'a, b', 'a b'),
            ([], 'none', 'none'),
            (None, 'unknown', 'unknown'),
            (list('abcde'), 'a, b, c and 2 more', 'a b c d e'),
        ):
            cell = report.Where(hosts)
            self.assertEqual(people, cell.human_readable())
            self.assertEqual(programs, cell.machine_readable())
            self.assertEqual(hosts, cell.hosts)

    def test_policies(self):
        cell = report.Policies({'a': 2, 'b': 1})
        self.assertEqual('a 2, b 1', cell.human_readable())
        self.assertEqual('a 2, b 1', cell.machine_readable())


class ReportTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.totals = totals.Totals(['isolation', 'anti-affinity'])
        self.auditing = types.SimpleNamespace(totals=self.totals, faults=[])

    def count(self, *policies, judged=True):
        self.totals.add(policies, judged, [])


@ddt.ddt
class TextTestCase(ReportTestCase):
    def write(self, rows, names=COLUMNS, columns=80, max_width=0):
        out = io.StringIO()
        with mock.patch.dict('os.environ', COLUMNS=str(columns)):
            text = report.Summary if 'By' in names else report.Findings
            text(self.auditing).emit_list(
                names, iter(rows), out, argparse.Namespace(max_width=max_width)
            )
        return out.getvalue().splitlines()

    def test_totals_then_each_reason_once(self):
        for policy in ('anti-affinity', 'isolation', 'isolation'):
            self.count(policy)
        self.count(judged=False)
        self.count()
        self.auditing.faults = ['Cell a is at mysql://nova:secret@db.']
        reason = 'aggregate windows is isolated and the request does not '
        rows = [
            row(1, 'not-judged', 'no request spec'),
            row(2, 'anti-affinity', 'too many'),
            row(3, 'isolation', 'another'),
            row(4, 'isolation', f'{reason} require CUSTOM_WINDOWS', 'host2'),
            row(5, 'isolation', f'{reason} require CUSTOM_WINDOWS', name=''),
        ]
        self.assertEqual(
            [
                '3 of 5 servers violate a policy:',
                '       2  isolation',
                '       1  anti-affinity',
                '       1  cannot be judged',
                'Cell a is at mysql://nova:***@db.',
                '',
                'isolation, 2 servers: aggregate windows is isolated and the '
                'request does not',
                '  require CUSTOM_WINDOWS',
                f'  {uuid(4)}  host2  web, project',
                f'      {PROJECT}',
                f'  {uuid(5)}  host1, project',
                f'      {PROJECT}',
                '',
                'isolation, 1 server: another',
                f'  {uuid(3)}  host1  web, project',
                f'      {PROJECT}',
                '',
                'anti-affinity, 1 server: too many',
                f'  {uuid(2)}  host1  web, project',
                f'      {PROJECT}',
                '',
                'not-judged, 1 server: no request spec',
                f'  {uuid(1)}  host1  web, project',
                f'      {PROJECT}',
            ],
            self.write(rows),
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

    @ddt.data((80, 2, 3), (160, 1, 2))
    @ddt.unpack
    def test_lines_of_a_finding(self, columns, plain, with_where):
        """Whatever users call their servers."""
        self.count('isolation')
        cells = row(1, 'isolation', 'why', 'compute012.example.org', 'x' * 255)
        where = report.Where(['compute013.example.org'] * 2)
        for rows, names, expected in (
            ([cells], COLUMNS, plain),
            ([(*cells, where)], (*COLUMNS, 'Where'), with_where),
        ):
            lines = self.write(rows, names, columns)
            found = lines[lines.index('isolation, 1 server: why') + 1 :]
            self.assertEqual(expected, len(found), found)
            self.assertGreaterEqual(columns, max(map(len, lines)))
            # That of the command line comes before the terminal's.
            self.assertEqual(lines, self.write(rows, names, 200, columns))
        self.assertIn(
            'could go to: compute013.example.org, compute013.example.org',
            ' '.join(' '.join(found).split()),
        )

    def test_summary(self):
        self.count('isolation')
        self.assertEqual(
            [
                '1 of 1 server violates a policy:',
                '       1  isolation',
                '',
                'By aggregate:',
                '      12  windows: isolation 11, anti-affinity 2',
                '       1  sql: isolation 1',
                '',
                'By host:',
                '       7  host1: isolation 7',
            ],
            self.write(
                [
                    (by, name, servers, report.Policies(policies))
                    for by, name, servers, policies in (
                        (
                            'aggregate',
                            'windows',
                            12,
                            {'isolation': 11, 'anti-affinity': 2},
                        ),
                        ('aggregate', 'sql', 1, {'isolation': 1}),
                        ('host', 'host1', 7, {'isolation': 7}),
                    )
                ],
                ('By', 'Name', 'Servers', 'Policies'),
            ),
        )


class DocumentTestCase(ReportTestCase):
    def write(self, names, rows, summary=False):
        out = io.StringIO()
        args = argparse.Namespace(noindent=False, summary=summary)
        document = report.Document(self.auditing, json_format.JSONFormatter())
        document.emit_list(names, iter(rows), out, args)
        found = json.loads(out.getvalue())
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
