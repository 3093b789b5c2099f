# SPDX-License-Identifier: Apache-2.0

"""A cloud of 10,000 hosts, on a real nova and placement.

The rows of one real host are copied in nova's and placement's databases
(SQLite). NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are.
"""

import os
import uuid

from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models

from tests.benchmarks import rows
from tests.functional import base

RACKS = 100
#: The tables of each database.
TABLES = {
    'nova_api': api_models.BASE.metadata.tables,
    'nova_cell0': models.BASE.metadata.tables,
    'nova_cell1': models.BASE.metadata.tables,
    'placement': placement_models.BASE.metadata.tables,
}


class ManyHostsTestCase(base.CloudTestCase):
    """Hosts copy0, copy1 and so on, in turn in aggregates rack0, rack1, ...

    :cvar hosts: how many copies there are
    :cvar servers_of_a_host: how many servers each has
    :cvar racks: how many aggregates
    :cvar weight_classes: of nova.conf
    :ivar uuids: of the copies, in order
    :ivar first: the UUID of the server of host0
    :ivar servers: UUIDs; the first of copy0, of copy1 and so on, then the
        second ones
    """

    weights = {'host0': 1}
    weight_classes = ('nova.scheduler.weights.all_weighers',)
    hosts = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))
    servers_of_a_host = 3
    racks = RACKS

    def setUp(self):
        super().setUp()
        self.first = self.boot()['id']
        # The copies' services report nothing.
        self.flags(service_down_time=86400)
        self.flags(
            weight_classes=self.weight_classes, group='filter_scheduler'
        )
        self.flags(max_placement_results=self.hosts * 2, group='scheduler')
        self.uuids = [str(uuid.uuid4()) for _ in range(self.hosts)]
        self.servers = [
            str(uuid.uuid4())
            for _ in range(self.hosts * self.servers_of_a_host)
        ]
        rows.copy_host(self.table, self.uuids)
        instances = self.table('nova_cell1.instances')
        [row] = rows.read(*instances)
        copies = []
        for number, server in enumerate(self.servers):
            host = f'copy{number % self.hosts}'
            copies.append(row | {'host': host, 'node': host, 'uuid': server})
        rows.insert(*instances, copies)
        mappings = self.table('nova_api.instance_mappings')
        [row] = rows.read(*mappings)
        rows.insert(
            *mappings, [row | {'instance_uuid': one} for one in self.servers]
        )
        for number in range(self.racks):
            name = f'rack{number}'
            of_rack = range(number, self.hosts, self.racks)
            self.many(name, of_rack, failure_domain=name)
        self.add_host('rack0', 'host0')

    def engine(self, name):
        """Return the engine of a database, as nova-manage names them."""
        if name == 'nova_api':
            return api_db.context_manager.writer.get_engine()
        if name == 'placement':
            return placement_db.get_placement_engine()
        mapping = self.cell_mappings[name.removeprefix('nova_')]
        with context.target_cell(context.get_admin_context(), mapping) as cell:
            return main_db.get_context_manager(cell).writer.get_engine()

    def table(self, name):
        """Return the engine and the table of a name, DATABASE.TABLE."""
        database, short = name.split('.')
        return self.engine(database), TABLES[database][short]

    def many(self, name, numbers, **metadata):
        """Create an aggregate of copies."""
        self.aggregate(name)
        rows.insert(
            *self.table('nova_api.aggregate_hosts'),
            [
                {
                    'host': f'copy{number}',
                    'aggregate_id': self.aggregate_ids[name],
                }
                for number in numbers
            ],
        )
        # nova-api tells the schedulers all of the aggregate.
        self.set_metadata(name, metadata)
