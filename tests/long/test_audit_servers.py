# SPDX-License-Identifier: Apache-2.0

"""Servers of two cells, one of which does not answer."""

from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.cloud import snapshot
from tests.functional import audits
from tests.functional import base


class CellsTestCase(audits.AuditTestCase):
    NUMBER_OF_CELLS = 2
    started = ('host1', 'host2')
    cells = {'host2': 'cell2'}

    def setUp(self):
        super().setUp()
        self.aggregate('windows', ['host1', 'host2'])
        self.servers = {
            host: self.boot(host=host)['id'] for host in ('host1', 'host2')
        }
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': 'required'})

    def instances_away(self, cell_name):
        """Take the table of a cell's servers away for a while."""
        return base.table_away(self.cell_engine(cell_name), 'instances')

    def finding(self, host):
        return (self.servers[host], host, 'isolation')

    def test_cells(self):
        # A disabled cell is judged too.
        mapping = self.cell_mappings['cell2']
        mapping.disabled = True
        mapping.save()
        self.assertEqual(
            sorted([self.finding('host1'), self.finding('host2')]),
            self.found(),
        )
        # One that is down is not.
        with self.instances_away('cell1'):
            status, rows = self.audit()
        self.assertEqual(1, status)
        self.assertEqual(
            [self.finding('host2')],
            [(row['server'], row['host'], row['policy']) for row in rows],
        )

        # Nor the rest of one that fails on the way.
        auditing = auditor.Auditor(snapshot.Snapshot())
        self.assertEqual(2, auditing.count())
        with self.instances_away('cell2'):
            found = [server.host for server in auditing.judge()]
        self.assertEqual(['host1'], found)
        (fault,) = auditing.faults
        self.assertIn(
            'Cell cell2 cannot be read, and its servers are not judged',
            fault,
        )
