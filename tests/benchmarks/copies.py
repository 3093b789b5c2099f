# SPDX-License-Identifier: Apache-2.0

"""A large cloud as rows of databases: copies of what nova wrote.

nova runs one host and refuses two servers, one in placement and one by a host
filter. Then its services end; MariaDB and placement go on.
"""

import collections
import datetime
import json
import time
import uuid

import sqlalchemy as sa

from tests.deployment import base
from tests.deployment import stream

OPTIONS = {
    # The copies report nothing.
    ('DEFAULT', 'service_down_time'): '86400',
    # Host filters judge every host.
    ('scheduler', 'max_placement_results'): '20000',
    (
        'filter_scheduler',
        'enabled_filters',
    ): 'ComputeFilter,AggregateInstanceTypeFilter',
}
#: VCPUs and extra specs, by what refuses the flavor.
FLAVORS = {
    'placement': (99, {}),
    'filter': (1, {'aggregate_instance_extra_specs:disk': 'nvme'}),
}
#: Tables of a server that nova refused, by database.
TABLES = {
    'nova_api': ('instance_mappings', 'request_specs'),
    'nova_cell0': (
        'instances',
        'instance_extra',
        'instance_info_caches',
        'instance_actions',
        'instance_faults',
    ),
}


class Cloud(base.Deployment):
    """The databases of a large cloud.

    :ivar records: where a watcher of it writes
    """

    def _setUp(self):
        super()._setUp()
        self._engine = sa.create_engine(
            f'mysql+pymysql://root@127.0.0.1:{self.mariadb.port}/'
        )
        self.addCleanup(self._engine.dispose)
        self.records = self.folder / 'records'
        self._tables = {}
        self._servers = {}

    def execute(self, statement):
        with self._engine.begin() as connection:
            return connection.execute(sa.text(statement))

    def status(self, name):
        """Return a counter of MariaDB."""
        statement = f"SHOW GLOBAL STATUS LIKE '{name}'"
        return int(self.execute(statement).one()[1])

    def _table(self, name):
        """Return the table DATABASE.NAME."""
        if name not in self._tables:
            schema, short = name.split('.')
            self._tables[name] = sa.Table(
                short, sa.MetaData(schema=schema), autoload_with=self._engine
            )
        return self._tables[name]

    def _rows(self, name, **wanted):
        table = self._table(name)
        query = sa.select(table).where(
            *(table.c[key] == value for key, value in wanted.items())
        )
        with self._engine.connect() as connection:
            found = connection.execute(query).mappings()
            return [
                {key: value for key, value in row.items() if key != 'id'}
                for row in found
            ]

    def _insert(self, connection, name, rows):
        for start in range(0, len(rows), 1000):
            connection.execute(
                sa.insert(self._table(name)), rows[start : start + 1000]
            )

    def refuse_first(self):
        """Let nova refuse a server of each flavor, and end its services."""
        self.client(
            ['aggregate', 'all', list(self.hosts), {'disk': 'ssd'}],
            *(['flavor', name, *one, 1] for name, one in FLAVORS.items()),
        )
        with self.scheduler(OPTIONS), stream.stream(self, list(FLAVORS), 1):
            self.processes.wait(
                lambda: (
                    self.mariadb.count('nova_cell0.instance_faults')
                    >= len(FLAVORS)
                ),
                'refusal',
            )
        time.sleep(5)
        for process in self.nova.processes.values():
            self.processes.stop(process)
        found = self.execute(
            'SELECT flavor.name, MIN(instance.uuid) '
            'FROM nova_cell0.instances AS instance '
            'JOIN nova_cell0.instance_faults AS fault '
            'ON fault.instance_uuid = instance.uuid '
            'JOIN nova_api.flavors AS flavor '
            'ON flavor.id = instance.instance_type_id GROUP BY flavor.name'
        )
        for name, server in found:
            self._servers[name] = {
                f'{schema}.{short}': self._rows(
                    f'{schema}.{short}',
                    **{
                        'uuid'
                        if short == 'instances'
                        else 'instance_uuid': server
                    },
                )
                for schema, tables in TABLES.items()
                for short in tables
            }

    def copy_host(self, count):
        """Copy the one real host, its provider and inventory too."""
        names = [f'copy{number}' for number in range(count)]
        uuids = [str(uuid.uuid4()) for _ in names]
        kept = {
            name: self._rows(f'placement.{name}')
            for name in ('inventories', 'resource_provider_traits')
        }
        with self._engine.begin() as connection:
            for name, wanted, keys in (
                ('nova_cell1.services', {'binary': 'nova-compute'}, ['host']),
                (
                    'nova_cell1.compute_nodes',
                    {},
                    ['host', 'hypervisor_hostname'],
                ),
                ('nova_api.host_mappings', {}, ['host']),
                ('nova_api.aggregate_hosts', {}, ['host']),
                ('placement.resource_providers', {}, ['name']),
            ):
                [row] = self._rows(name, **wanted)
                copies = [row | dict.fromkeys(keys, one) for one in names]
                if 'uuid' in row:
                    for copy, one in zip(copies, uuids, strict=True):
                        copy['uuid'] = one
                self._insert(connection, name, copies)
            connection.execute(
                sa.text(
                    'UPDATE placement.resource_providers '
                    'SET root_provider_id = id'
                )
            )
            providers = connection.scalars(
                sa.text(
                    'SELECT id FROM placement.resource_providers ORDER BY id'
                )
            ).all()
            for name, rows in kept.items():
                self._insert(
                    connection,
                    f'placement.{name}',
                    [
                        row | {'resource_provider_id': one}
                        for one in providers[1:]
                        for row in rows
                    ],
                )

    def refuse(self, flavor, amounts):
        """Copy what nova wrote for a server that it refused.

        :param amounts: of memory, one for each server; requests for other
            amounts differ
        """
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        copies = collections.defaultdict(list)
        for memory_mb in amounts:
            server = str(uuid.uuid4())
            for name, rows in self._servers[flavor].items():
                key = (
                    'uuid' if name.endswith('.instances') else 'instance_uuid'
                )
                for row in rows:
                    copy = row | {key: server, 'created_at': now}
                    if 'spec' in row:
                        copy['spec'] = (
                            row['spec']
                            .replace(row[key], server)
                            .replace(
                                '"memory_mb": 64', f'"memory_mb": {memory_mb}'
                            )
                        )
                    copies[name].append(copy)
        with self._engine.begin() as connection:
            for name, rows in copies.items():
                self._insert(connection, name, rows)

    def read(self):
        """Return the records."""
        if not self.records.exists():
            return []
        lines = self.records.read_text().splitlines()
        return [json.loads(line) for line in lines]
