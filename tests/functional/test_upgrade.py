# SPDX-License-Identifier: Apache-2.0

"""What was written under nova 29 means the same under each later nova.

``written_under_29.json`` has rows of nova 29's API database, a record of
watch, and what they meant there. With NOVA_EXT_SCHED_TEST_WRITE=1 nova 29
writes it anew.
"""

import json
import os
import pathlib

from nova import context
from nova import objects
from nova.cmd import manage
from nova.db.api import models
from nova.scheduler import request_filter
from oslo_serialization import jsonutils
import sqlalchemy as sa

from tests import releases
from tests.functional import explain
from tests.functional import reservations
from tests.functional import test_watch

FILE = pathlib.Path(__file__).with_name('written_under_29.json')
ROWS = [
    table
    for table in models.BASE.metadata.sorted_tables
    if table.name.startswith(('aggregate', 'instance_group'))
    or table.name == 'request_specs'
]
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class UpgradeTest(test_watch.WatchTestCase):
    """Aggregates, a group with a rule, a refused request, its record."""

    weights = {'host1': 3, 'host2': 2, 'host3': 1}
    options = explain.OPTIONS

    def test_it_means_the_same(self):
        if releases.NOVA == 29 and 'NOVA_EXT_SCHED_TEST_WRITE' in os.environ:
            self.write()
            FILE.write_text(jsonutils.dumps(self.written, indent=1) + '\n')
        self.written = json.loads(FILE.read_text())
        self.load()
        self.assertEqual(self.written['means'], self.read_meaning())

    def write(self):
        """Create what is written, and what it means."""
        self.isolate('windows', ['host1'], WINDOWS)
        project = {'filter_tenant_id': reservations.OTHER_PROJECT}
        self.aggregate(
            'lease', ['host2'], metadata={'reservation:a': 'yes', **project}
        )
        group = self.create_group(limit=2)
        hints = {'group': group, 'reservation': 'a'}
        server = self.boot(
            hints=hints, expected_state='ERROR', flavor=self.flavor(vcpu=500)
        )
        [record] = self.recorded()
        with self.api_engine().connect() as connection:
            rows = {
                table.name: [
                    dict(row._mapping)
                    for row in connection.execute(sa.select(table))
                ]
                for table in ROWS
            }
        self.written = {
            'server': server['id'],
            'group': group,
            'rows': jsonutils.to_primitive(rows),
            'record': record,
        }
        self.written['means'] = self.read_meaning()

    def load(self):
        """Put the rows into the database of this nova."""
        with self.api_engine().begin() as connection:
            for table in reversed(ROWS):
                connection.execute(sa.delete(table))
            for table in ROWS:
                for row in self.written['rows'][table.name]:
                    row.update(created_at=None, updated_at=None)
                    connection.execute(sa.insert(table).values(**row))
        manage.PlacementCommands().sync_aggregates()
        self.records.write_text(json.dumps(self.written['record']) + '\n')

    def read_meaning(self):
        """Return what this nova and the package make of what is written."""
        admin = context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(
            admin, self.written['server']
        )
        request_filter.process_reqspec(admin, spec)
        wanted = spec.requested_destination
        group = objects.InstanceGroup.get_by_uuid(admin, self.written['group'])
        plain = explain.read('--flavor', self.flavor())
        return {
            'member of': wanted.aggregates,
            'not member of': sorted(wanted.forbidden_aggregates),
            'group': [group.policy, group.rules],
            'order': plain.order,
            'causes': sorted(
                one['cause'] for one in plain.document['answer']['reasons']
            ),
            'record': explain.read(
                *('--recorded', self.written['record']['request_id']),
                *('--records', str(self.records)),
            ).sentence,
        }
