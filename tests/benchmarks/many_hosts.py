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
import sqlalchemy as sa

from tests.functional import base

SERVERS_OF_A_HOST = 3
RACKS = 100


def copies(connection, table, number, **changed):
    """Insert copies of the one row of a table; each value may be a function.

    :param changed: by column a function of the copy's number
    """
    row = connection.execute(sa.select(table)).mappings().first()
    connection.execute(
        sa.insert(table),
        [
            {
                **{key: row[key] for key in row if key != 'id'},
                **{key: change(n) for key, change in changed.items()},
            }
            for n in range(number)
        ],
    )


class ManyHostsTestCase(base.CloudTestCase):
    """Hosts copy0, copy1 and so on, in turn in aggregates rack0, rack1, ...

    :cvar hosts: how many copies there are
    :cvar weight_classes: of nova.conf
    :ivar uuids: of the copies, in order
    :ivar servers: UUIDs; the first of copy0, of copy1 and so on, then the
        second ones
    """

    weights = {'host0': 1}
    weight_classes = ('nova.scheduler.weights.all_weighers',)
    hosts = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))

    def setUp(self):
        super().setUp()
        self.boot()
        # The copies' services report nothing.
        self.flags(service_down_time=86400)
        self.flags(
            weight_classes=self.weight_classes, group='filter_scheduler'
        )
        self.flags(max_placement_results=self.hosts * 2, group='scheduler')
        self.uuids = [str(uuid.uuid4()) for _ in range(self.hosts)]
        self.servers = [
            str(uuid.uuid4()) for _ in range(self.hosts * SERVERS_OF_A_HOST)
        ]
        self._copy_host()
        for number in range(RACKS):
            name = f'rack{number}'
            self.many(
                name, range(number, self.hosts, RACKS), failure_domain=name
            )
        self.admin_api.add_host_to_aggregate(
            self.aggregate_ids['rack0'], 'host0'
        )

    def _copy_host(self):
        def name(number):
            return f'copy{number}'

        cell = self.cell_mappings['cell1']
        with context.target_cell(context.get_admin_context(), cell) as cctxt:
            manager = main_db.get_context_manager(cctxt)
            with manager.writer.get_engine().begin() as connection:
                copies(
                    connection,
                    models.ComputeNode.__table__,
                    self.hosts,
                    host=name,
                    hypervisor_hostname=name,
                    uuid=lambda n: self.uuids[n],
                )
                self._copy_services(connection, name)
                copies(
                    connection,
                    models.Instance.__table__,
                    len(self.servers),
                    host=lambda n: name(n % self.hosts),
                    node=lambda n: name(n % self.hosts),
                    uuid=lambda n: self.servers[n],
                )
        engine = api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            copies(
                connection,
                api_models.HostMapping.__table__,
                self.hosts,
                host=name,
            )
        with placement_db.get_placement_engine().begin() as connection:
            self._copy_provider(connection, name)

    def _copy_services(self, connection, name):
        table = models.Service.__table__
        [row] = connection.execute(
            sa.select(table).where(table.c.binary == 'nova-compute')
        ).mappings()
        connection.execute(
            sa.insert(table),
            [
                {
                    **{key: row[key] for key in row if key != 'id'},
                    'host': name(number),
                    'uuid': str(uuid.uuid4()),
                }
                for number in range(self.hosts)
            ],
        )

    def _copy_provider(self, connection, name):
        tables = placement_models
        provider = tables.ResourceProvider.__table__
        copies(
            connection,
            provider,
            self.hosts,
            name=name,
            uuid=lambda n: self.uuids[n],
        )
        connection.execute(
            sa.update(provider).values(root_provider_id=provider.c.id)
        )
        for table in (
            tables.Inventory.__table__,
            tables.ResourceProviderTrait.__table__,
        ):
            first = sa.select(sa.func.min(provider.c.id)).scalar_subquery()
            rows = connection.execute(
                sa.select(table).where(table.c.resource_provider_id == first)
            ).mappings()
            copied = [
                {key: row[key] for key in row if key != 'id'} for row in rows
            ]
            ids = connection.execute(sa.select(provider.c.id)).scalars().all()
            connection.execute(
                sa.insert(table),
                [
                    {**row, 'resource_provider_id': id_}
                    for id_ in sorted(ids)[1:]
                    for row in copied
                ],
            )

    def many(self, name, numbers, **metadata):
        """Create an aggregate of copies."""
        self.aggregate(name)
        engine = api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            connection.execute(
                sa.insert(api_models.AggregateHost.__table__),
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
