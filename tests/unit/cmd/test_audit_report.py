# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched.cmd import audit_report as report
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals
from tests import schemas
from tests.unit.cmd import reading
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

    def count(self, *violated, judged=True, times=1):
        unjudged = [] if judged else [policies.NOT_JUDGED]
        for _ in range(times):
            self.totals.add(test_totals.make_server([*violated, *unjudged]))

    def make(self, rows=(), summary=False, names=()):
        """Return a report; its document is valid."""
        made = report.make(self.auditing, rows, summary, (), dict(names))
        schemas.validate(made.document(), 'schemas/audit.json')
        return made


@ddt.ddt
class TextTestCase(ReportTestCase):
    def test_totals_then_each_reason_once(self):
        for policy in ('anti-affinity', 'isolation', 'isolation'):
            self.count(policy)
        self.count(judged=False)
        self.count()
        self.auditing.faults = ['Cell a is silent.']
        reason = 'the request is not allowed in windows: it does not'
        rows = [
            row(1, 'not-judged', 'no request spec'),
            row(2, 'anti-affinity', 'too many'),
            row(3, 'isolation', reason, project='other'),
            row(4, 'isolation', f'{reason} require CUSTOM_WINDOWS', 'host2'),
            row(5, 'isolation', f'{reason} require CUSTOM_WINDOWS', name=''),
        ]
        made = self.make(rows)
        lines = reading.read_lines(made)
        self.assertEqual(
            [
                '3 of 5 servers violate a policy:',
                '  2  isolation',
                '  1  anti-affinity',
                '1 server could not be checked.',
                'Cell a is silent.',
                '',
            ],
            lines[:6],
        )
        # The longer reason has more servers; one of them has no name.
        self.assertEqual(
            [
                f'isolation, 2 servers of project {PROJECT}',
                'isolation, 1 server of project other',
                f'anti-affinity, 1 server of project {PROJECT}',
                f'not-judged, 1 server of project {PROJECT}',
            ],
            [line.partition(':')[0] for line in lines if ' project ' in line],
        )
        self.assertIn(f'       host1  {uuid(5)}', lines)
        self.assertEqual(
            '3 of 5 servers violate a policy: isolation 2, anti-affinity 1. '
            '1 server could not be checked. Cell a is silent.',
            made.sentence,
        )
        self.assertEqual(1, made.status)

    def test_names_in_place_of_ids(self):
        self.count('anti-affinity')
        group = uuid(9)
        rows = [
            row(number, 'anti-affinity', f'1 of group {group}, {PROJECT}')
            for number in (1, 2)
        ]
        for one in rows:
            one.server_group = report.Group(group, 'db')
        made = self.make(rows, names={PROJECT: 'web'})
        self.assertIn(
            'anti-affinity, 2 servers of project web: 1 of group db, web',
            reading.read_lines(made),
        )
        # Programs have IDs; the document has names too.
        first, _ = made.rows
        self.assertEqual((*vars(rows[0]).values(),)[:6], first)
        found = made.document()['findings'][0]
        self.assertEqual('web', found['project_name'])
        self.assertEqual({'id': group, 'name': 'db'}, found['server_group'])

    def test_servers_of_several_projects(self):
        """Hosts stand in the order in which people count them."""
        self.count('isolation')
        rows = [
            row(1, 'isolation', 'why', 'host10', 'web'),
            row(2, 'isolation', 'why', 'host2', 'db', 'b' * 32),
        ]
        made = self.make(rows, names={PROJECT: 'shop'})
        self.assertEqual(
            [
                'isolation, 2 servers of 2 projects: why',
                f'  db   host2   {"b" * 32}',
                '  web  host10  shop',
            ],
            reading.read_lines(made)[-3:],
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
        self.count('isolation', times=len(rows))
        lines = reading.read_lines(self.make(rows))
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
        lines = reading.read_lines(self.make(rows))
        heads = [line.partition(',')[0] for line in lines if 'project' in line]
        self.assertIn('and 7 more reasons, 7 servers', lines[-1])
        self.assertEqual(
            ['isolation'] * 3 + ['anti-affinity', 'not-judged'], heads
        )

    def test_summary(self):
        self.count('isolation', times=12)
        self.count('isolation', 'anti-affinity')
        made = self.make(summary=True, names={'host1': 'no project'})
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
            reading.read_lines(made),
        )
        document = made.document()
        self.assertEqual(
            [('project', 'project', None), ('host', 'host1', None)],
            [
                (one['by'], one['name'], one['project_name'])
                for one in document['summary']
            ],
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
        [_, projects, _] = self.make(summary=True, names=names).sections
        self.assertEqual(
            ['1' * 32, 'web9', 'web10'], [row[0] for row in projects.rows]
        )


class MapTestCase(ReportTestCase):
    def test_counts(self):
        """A server of two policies counts once."""
        self.count('isolation', 'anti-affinity', times=12)
        counts = self.auditing.totals.by_host
        self.assertEqual({'host1': 12}, counts)
        made = report.draw([], counts, None)
        self.assertEqual('+', made.signs['host1'].shown)
