# SPDX-License-Identifier: Apache-2.0

"""A large cloud as rows of databases: copies of what nova wrote.

nova runs one host and refuses two servers, one in placement and one by a host
filter. Then its services end; MariaDB and placement go on.
"""

import json
import time
import uuid

import sqlalchemy as sa

from tests.benchmarks import rows
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
        self._refused = {}

    def execute(self, statement):
        with self._engine.begin() as connection:
            return connection.execute(sa.text(statement))

    def status(self, name):
        """Return a counter of MariaDB."""
        statement = f"SHOW GLOBAL STATUS LIKE '{name}'"
        return int(self.execute(statement).one()[1])

    def table(self, name):
        """Return the engine and the table of a name, DATABASE.TABLE."""
        if name not in self._tables:
            schema, short = name.split('.')
            self._tables[name] = sa.Table(
                short, sa.MetaData(schema=schema), autoload_with=self._engine
            )
        return self._engine, self._tables[name]

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
            self._refused[name] = rows.read_refused(self.table, server)

    def copy_host(self, count):
        """Copy the one real host, in its aggregate too."""
        rows.copy_host(self.table, [str(uuid.uuid4()) for _ in range(count)])
        hosts = self.table('nova_api.aggregate_hosts')
        [row] = rows.read(*hosts)
        copies = [row | {'host': f'copy{number}'} for number in range(count)]
        rows.insert(*hosts, copies)

    def refuse(self, flavor, amounts):
        """Copy what nova wrote for a server that it refused.

        :param amounts: of memory, one for each server; requests for other
            amounts differ
        """
        rows.copy_refused(
            self.table,
            self._refused[flavor],
            [
                ('"memory_mb": 64', f'"memory_mb": {memory_mb}')
                for memory_mb in amounts
            ],
        )

    def read(self):
        """Return the records."""
        if not self.records.exists():
            return []
        lines = self.records.read_text().splitlines()
        return [json.loads(line) for line in lines]
