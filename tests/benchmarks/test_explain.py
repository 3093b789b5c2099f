# SPDX-License-Identifier: Apache-2.0

"""explain in a cloud of 10,000 hosts: time and peak memory.

The rows of one real host are copied in nova's and placement's databases
(SQLite). NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are. The time of
placement, and that of the databases, is told apart.
"""

import logging
import os
import resource
import time
import uuid

import fixtures
from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models
import sqlalchemy as sa

from nova_ext_sched.cmd import nova_scheduler as scheduler
from tests.functional import base
from tests.functional import explain

HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))
SERVERS_OF_A_HOST = 3
AGGREGATES = 100


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
    weights = {'host0': 1}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
    }

    def setUp(self):
        super().setUp()
        self.boot()
        # The copies' services report nothing.
        self.flags(service_down_time=86400)
        self.flags(
            weight_classes=['nova.scheduler.weights.all_weighers'],
            group='filter_scheduler',
        )
        self.uuids = [str(uuid.uuid4()) for _ in range(HOSTS)]
        self._copy_host()
        for number in range(AGGREGATES):
            hosts = range(number, HOSTS, AGGREGATES)
            self._aggregate(f'rack{number}', hosts)

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
                    HOSTS,
                    host=name,
                    hypervisor_hostname=name,
                    uuid=lambda n: self.uuids[n],
                )
                self._copy_services(connection, name)
                copies(
                    connection,
                    models.Instance.__table__,
                    HOSTS * SERVERS_OF_A_HOST,
                    host=lambda n: name(n % HOSTS),
                    node=lambda n: name(n % HOSTS),
                    uuid=lambda n: str(uuid.uuid4()),
                )
        engine = api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            copies(
                connection,
                api_models.HostMapping.__table__,
                HOSTS,
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
                for number in range(HOSTS)
            ],
        )

    def _copy_provider(self, connection, name):
        tables = placement_models
        provider = tables.ResourceProvider.__table__
        copies(
            connection,
            provider,
            HOSTS,
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

    def _aggregate(self, name, hosts):
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
                    for number in hosts
                ],
            )

    def test_many_hosts(self):
        spent = {'placement': 0.0, 'databases': 0.0}
        get = scheduler.ReportClient.get

        def timed_get(client, *args, **kwargs):
            begin = time.monotonic()
            try:
                return get(client, *args, **kwargs)
            finally:
                spent['placement'] += time.monotonic() - begin

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.nova_scheduler.ReportClient.get', timed_get
            )
        )
        self._time_databases(spent)
        # As the command does in a process of its own.
        logging.getLogger('nova').setLevel(logging.ERROR)
        self.flags(max_placement_results=HOSTS * 2, group='scheduler')
        flavor = self.flavor()
        large = self._create_flavor(vcpu=99, memory_mb=64, disk=0)
        for kind, args in (
            ('every host is left', ['--flavor', flavor, '-f', 'csv']),
            ('no host is left', ['--flavor', large, '-f', 'csv']),
            ('of each host', ['--flavor', flavor, '--hosts', '-f', 'csv']),
            ('the document', ['--flavor', large, '-f', 'json']),
        ):
            spent.update(placement=0.0, databases=0.0)
            begin = time.monotonic()
            cpu = time.process_time()
            answer = explain.run(*args)
            total = time.monotonic() - begin
            print(
                f'EXPLAIN {HOSTS} hosts, {kind}: {total:.1f} s, of these '
                f'placement {spent["placement"]:.1f} s and databases '
                f'{spent["databases"]:.1f} s; '
                f'{time.process_time() - cpu:.1f} s of CPU; peak '
                f'{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}'
                f' MiB. {answer.err.strip()}'
            )
            self.assertIn(f'{HOSTS + 1} hosts', answer.err + answer.out)

    def _time_databases(self, spent):
        def before(conn, *_):
            conn.info['begin'] = time.monotonic()

        def after(conn, *_):
            spent['databases'] += time.monotonic() - conn.info['begin']

        # Those of nova; placement's is within the time of placement.
        for name, listener in (
            ('before_cursor_execute', before),
            ('after_cursor_execute', after),
        ):
            sa.event.listen(sa.engine.Engine, name, listener)
            self.addCleanup(sa.event.remove, sa.engine.Engine, name, listener)
