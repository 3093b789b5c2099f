# SPDX-License-Identifier: Apache-2.0

import io
import types

import ddt
import testtools

from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd import audit_report as report
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals
from tests import schemas
from tests.unit.dryrun.audit import test_totals

PROJECT = '6f70656e737461636b20342065766572'


def uuid(number):
    return f'af497212-8ba1-4069-a420-{number:012}'


def row(number, policy, reason, host='host1', name='web', project=PROJECT):
    return report.Finding(uuid(number), name, project, host, policy, reason)


class ReportTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.totals = totals.Totals(['anti-affinity', 'isolation'])
        self.auditing = types.SimpleNamespace(totals=self.totals, faults=[])

    def count(self, *violated, judged=True):
        unjudged = [] if judged else [policies.NOT_JUDGED]
        self.totals.add(test_totals.make_server([*violated, *unjudged]))


@ddt.ddt
class TextTestCase(ReportTestCase):
    def make(self, rows):
        return report.make(self.auditing, rows, False)

    def write(self, rows, columns=80):
        stream = io.StringIO()
        cli_report.write(stream, self.make(rows).sections, columns)
        return stream.getvalue().splitlines()

    def test_totals_then_each_reason_once(self):
        for policy in ('anti-affinity', 'isolation', 'isolation'):
            self.count(policy)
        self.count(judged=False)
        self.count()
        self.auditing.faults = ['Cell a is silent.']
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
                '1 server could not be checked.',
                'Cell a is silent.',
                '',
                f'isolation, 2 servers of project {PROJECT}: aggregate',
                '  windows is isolated and the request does not require '
                'CUSTOM_WINDOWS',
                f'       host1  {uuid(5)}',
                f'  web  host2  {uuid(4)}',
                '',
                'isolation, 1 server of project other: aggregate windows is '
                'isolated and the',
                '  request does not',
                f'  web  host1  {uuid(3)}',
                '',
                f'anti-affinity, 1 server of project {PROJECT}: too many',
                f'  web  host1  {uuid(2)}',
                '',
                f'not-judged, 1 server of project {PROJECT}: no request',
                '  spec',
                f'  web  host1  {uuid(1)}',
            ],
            self.write(rows),
        )
        self.assertEqual(
            '3 of 5 servers violate a policy: isolation 2, anti-affinity 1. '
            '1 server could not be checked. Cell a is silent.',
            self.make(rows).sentence,
        )

    def test_names_in_place_of_ids(self):
        self.count('anti-affinity')
        group = uuid(9)
        rows = [
            row(number, 'anti-affinity', f'1 of group {group}, {PROJECT}')
            for number in (1, 2)
        ]
        for one in rows:
            one.server_group = report.Group(group, 'db')
        made = report.make(self.auditing, rows, False, (), {PROJECT: 'web'})
        stream = io.StringIO()
        cli_report.write(stream, made.sections, 80)
        self.assertIn(
            'anti-affinity, 2 servers of project web: 1 of group db, web\n',
            stream.getvalue(),
        )
        # Programs have IDs.
        first, _ = made.rows
        self.assertEqual((*vars(rows[0]).values(),)[:6], first)

    def test_servers_of_several_projects(self):
        """Hosts stand in the order in which people count them."""
        self.count('isolation')
        rows = [
            row(1, 'isolation', 'why', 'host10', 'web'),
            row(2, 'isolation', 'why', 'host2', 'db', 'b' * 32),
        ]
        made = report.make(self.auditing, rows, False, (), {PROJECT: 'shop'})
        stream = io.StringIO()
        cli_report.write(stream, made.sections, 80)
        self.assertEqual(
            [
                'isolation, 2 servers of 2 projects: why',
                f'  db   host2   {"b" * 32}',
                '  web  host10  shop',
            ],
            stream.getvalue().splitlines()[-3:],
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
        lines = self.write(rows)
        self.assertGreaterEqual(60, len(lines))
        seen = [line for line in lines if 'af497212' in line]
        self.assertEqual(shown * most, len(seen))
        left = 3000 // groups - most
        line = f'  and {left} more servers (--all lists all)'
        self.assertEqual(shown, lines.count(line))
        more = 'and 35 more reasons, 2625 servers '
        self.assertEqual(groups == 40, f'{more}(--all lists all)' in lines)

    def test_each_policy_is_seen(self):
        self.count('isolation')
        rows = [row(n, 'isolation', str(n)) for n in range(10)]
        rows.append(row(11, 'anti-affinity', 'few'))
        rows.append(row(12, 'not-judged', 'why'))
        lines = self.write(rows)
        heads = [line.partition(',')[0] for line in lines if 'project' in line]
        self.assertIn('and 7 more reasons, 7 servers', lines[-1])
        self.assertEqual(
            ['isolation'] * 3
            + [
                'anti-affinity',
                'not-judged',
            ],
            heads,
        )

    def test_summary(self):
        for _ in range(12):
            self.count('isolation')
        self.count('isolation', 'anti-affinity')
        made = report.make(self.auditing, [], True)
        stream = io.StringIO()
        cli_report.write(stream, made.sections, 80)
        self.assertEqual(
            [
                '13 of 13 servers violate a policy:',
                '  13  isolation',
                '   1  anti-affinity',
                '1 server violates several policies, and counts in each.',
                '',
                'Project  Servers  Policies',
                'project       13  anti-affinity 1, isolation 13',
                '',
                'Host   Servers  Policies',
                'host1       13  anti-affinity 1, isolation 13',
            ],
            stream.getvalue().splitlines(),
        )
        document = made.document()
        schemas.validate(document, 'schemas/audit.json')
        self.assertEqual(
            [('project', 'project'), ('host', 'host1')],
            [(one['by'], one['name']) for one in document['summary']],
        )
        self.assertNotIn('findings', document)
        [_, (*cells, policies)] = made.rows
        self.assertEqual(['host', 'host1', 13], cells)
        self.assertEqual(
            {'isolation': 13, 'anti-affinity': 1}, policies.machine_readable()
        )

    def test_summary_of_named_projects(self):
        for number in (2, 1, 3, 1):
            server = test_totals.make_server(['isolation'])
            server.project_id = str(number) * 32
            self.totals.add(server)
        names = {'2' * 32: 'web10', '3' * 32: 'web9'}
        made = report.make(self.auditing, [], True, (), names)
        [_, projects, _] = made.sections
        self.assertEqual(
            ['1' * 32, 'web9', 'web10'], [row[0] for row in projects.rows]
        )


class MapTestCase(ReportTestCase):
    def test_counts(self):
        """A server of two policies counts once."""
        for _ in range(12):
            self.count('isolation', 'anti-affinity')
        counts = self.auditing.totals.by_host
        self.assertEqual({'host1': 12}, counts)
        made = report.draw([], counts, None)
        self.assertEqual('9', made.signs['host1'].shown)


class DocumentTestCase(ReportTestCase):
    def document(self, rows, summary=False):
        found = report.make(self.auditing, rows, summary).document()
        schemas.validate(found, 'schemas/audit.json')
        return found

    def test_names(self):
        self.count('isolation')
        finding = row(1, 'isolation', 'why')
        finding.server_group = report.Group(uuid(9), 'db')
        for summary in (False, True):
            found = report.make(
                self.auditing, [finding], summary, (), {PROJECT: 'web'}
            ).document()
            schemas.validate(found, 'schemas/audit.json')
            if summary:
                project, host = found['summary']
                # test_totals knows another project.
                self.assertIsNone(project['project_name'])
                self.assertIsNone(host['project_name'])
            else:
                [found] = found['findings']
                self.assertEqual('web', found['project_name'])
                self.assertEqual(
                    {'id': uuid(9), 'name': 'db'}, found['server_group']
                )
