# SPDX-License-Identifier: Apache-2.0

"""Where hosts stand, as documents have it, and the map that is drawn of it."""

import json
import pathlib
import re

import fixtures

from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import explain as explain_command
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests import schemas
from tests.functional import audits
from tests.functional import explain


class TopologyTestCase(audits.AuditTestCase):
    weights = {f'host{number}': 1 for number in (10, 9, 3, 2, 1)}
    NUMBER_OF_CELLS = 2
    cells = {'host10': 'cell2'}

    def test_documents_and_maps(self):
        self.boot(az='nova:host1')
        self.isolate('windows', ['host1', 'host3'], 'CUSTOM_WINDOWS')
        self.aggregate(
            'lease', ['host2'], metadata={'reservation:lease': 'true'}
        )
        self.aggregate('row10', ['host9', 'host10'], failure_domain='r10, x')
        self.aggregate('row9', ['host9', 'host1'], failure_domain='r9')
        self.aggregate('far', ['host9'], zone='far')
        self.set_service('host3', status='disabled')
        self.lose('host10')
        expected = [
            ('host1', 'cell1', 'nova', ['row9', 'windows'], ['r9'], 'up')
            + ('isolated',),
            ('host2', 'cell1', 'nova', ['lease'], [], 'up', 'reserved'),
            ('host3', 'cell1', 'nova', ['windows'], [], 'disabled')
            + ('isolated',),
            (
                *('host9', 'cell1', 'far', ['far', 'row9', 'row10']),
                *(['r9', 'r10', 'x'], 'up', ''),
            ),
            ('host10', 'cell2', 'nova', ['row10'], ['r10', 'x'], 'down', ''),
        ]
        flavor = ['--flavor', self.plain_flavor]
        for kind, name, schema, argv in (
            (audit.Audit, 'audit', 'schemas/audit.json', []),
            (audit.Audit, 'audit', 'schemas/audit.json', ['--summary']),
            (capacity.Capacity, 'capacity', 'schemas/capacity.json', flavor),
            (survive.Survive, 'survive', 'schemas/plan.json', []),
            (drain.Drain, 'drain', 'schemas/plan.json', ['host1']),
            (mend.Mend, 'mend', 'schemas/plan.json', []),
            (explain_command.Explain, 'explain', 'schemas/explain.json',
             flavor),
        ):  # fmt: skip
            text, err, _ = explain.ask(kind, name, *argv)
            document = json.loads(text)
            schemas.validate(document, schema)
            self.assertEqual(
                expected,
                [tuple(one.values()) for one in document['topology']],
                err,
            )
        page = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a.html')
        for kind, name, argv, row in (
            (audit.Audit, 'audit', [], 'r9 1· 1'),
            (capacity.Capacity, 'capacity', flavor, 'r9 i█ 40'),
            (survive.Survive, 'survive', [], 'r9 f█ 1'),
            (drain.Drain, 'drain', ['host1'], 'r9 e█ 1'),
            (mend.Mend, 'mend', [], 'r9 m█ 1'),
        ):
            argv += ['--map', '--html-add', str(page)]
            text, *_ = explain.call(kind, name, *argv)
            rows = [line.split()[:3] for line in text.splitlines()]
            self.assertIn(row.split(), rows, text)
        text = re.sub('<[^>]+>', '', page.read_text())
        for name in ('audit', 'capacity', 'survive', 'drain', 'mend'):
            self.assertIn(f'nova-ext-sched {name}\n', text)
        for row in ('r91·1', 'r9i█40', 'r9f█1', 'r9e█1', 'r9m█1'):
            self.assertIn(row, text)

    def test_where_the_policies_are_off(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        self.aggregate('lease', ['host2'], metadata={'reservation:a': 'true'})
        self.flags(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=False,
            placement_req_required_member_prefix=[],
            placement_req_default_forbidden_member_prefix=[],
        )
        text, *_ = explain.ask(audit.Audit, 'audit')
        self.assertEqual(
            {''}, {one['closed'] for one in json.loads(text)['topology']}
        )
