# SPDX-License-Identifier: Apache-2.0

"""watch beside a cloud of 10,000 hosts, as a process, on MariaDB.

``python -m tests.benchmarks.watch [HOSTS]`` prints what doc/source/tools/
watch.rst says; it needs MariaDB and RabbitMQ and takes some ten minutes. nova
refuses one server. The rows of that server, and those of the one real host,
are then copied, and nova's services are stopped: what is measured is the
watcher, placement and the databases.
"""

import json
import signal
import sys
import time
import uuid

import psutil
import sqlalchemy as sa

from tests.deployment import base
from tests.deployment import stream

HOSTS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
INTERVAL = 1
OPTIONS = {
    # The copies report nothing.
    ('DEFAULT', 'service_down_time'): '86400',
    ('scheduler', 'max_placement_results'): str(HOSTS * 2),
}
#: Tables of a server that nova refused, by database.
OF_A_SERVER = {
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
    """The databases of a large cloud, and the watcher."""

    def _setUp(self):
        super()._setUp()
        self.engine = sa.create_engine(
            f'mysql+pymysql://root@127.0.0.1:{self.mariadb.port}/'
        )
        self.addCleanup(self.engine.dispose)
        self.records = self.folder / 'records'
        self.tables = {}

    def table(self, name):
        """Return a table DATABASE.NAME."""
        if name not in self.tables:
            schema, short = name.split('.')
            self.tables[name] = sa.Table(
                short, sa.MetaData(schema=schema), autoload_with=self.engine
            )
        return self.tables[name]

    def rows(self, name, **wanted):
        table = self.table(name)
        query = sa.select(table).where(
            *(table.c[key] == value for key, value in wanted.items())
        )
        with self.engine.connect() as connection:
            found = connection.execute(query.order_by(table.c.id)).mappings()
            return [
                {key: value for key, value in row.items() if key != 'id'}
                for row in found
            ]

    def insert(self, connection, name, rows):
        for start in range(0, len(rows), 1000):
            connection.execute(
                sa.insert(self.table(name)), rows[start : start + 1000]
            )

    def copy_hosts(self):
        """Copy the one real host; its provider and inventory too."""
        names = [f'copy{number}' for number in range(HOSTS)]
        uuids = [str(uuid.uuid4()) for _ in names]
        [node] = self.rows('nova_cell1.compute_nodes')
        [service] = self.rows('nova_cell1.services', binary='nova-compute')
        [mapping] = self.rows('nova_api.host_mappings')
        [provider] = self.rows('placement.resource_providers')
        with self.engine.begin() as connection:
            for name, row, keys in (
                ('nova_cell1.services', service, ('host',)),
                (
                    'nova_cell1.compute_nodes',
                    node,
                    ('host', 'hypervisor_hostname'),
                ),
                ('nova_api.host_mappings', mapping, ('host',)),
                ('placement.resource_providers', provider, ('name',)),
            ):
                copies = [
                    {**row, **dict.fromkeys(keys, name)} for name in names
                ]
                for copy, one in zip(copies, uuids, strict=True):
                    if 'uuid' in copy:
                        copy['uuid'] = one
                self.insert(connection, name, copies)
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
            for name in ('inventories', 'resource_provider_traits'):
                name = f'placement.{name}'
                key = 'resource_provider_id'
                kept = self.rows(name)
                self.insert(
                    connection,
                    name,
                    [
                        {**row, key: one}
                        for one in providers[1:]
                        for row in kept
                    ],
                )

    def refuse(self, count, kinds=1):
        """Copy what nova wrote for the server that it refused.

        :param count: of servers
        :param kinds: of requests that differ
        :returns: their UUIDs
        """
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        with self.engine.begin() as connection:
            for schema, tables in OF_A_SERVER.items():
                for short in tables:
                    name = f'{schema}.{short}'
                    if name not in self.server:
                        self.server[name] = self.rows(name)
                    copies = []
                    for number, one in enumerate(uuids):
                        for row in self.server[name]:
                            key = (
                                'uuid'
                                if 'uuid' in row and short == 'instances'
                                else 'instance_uuid'
                            )
                            copy = {**row, key: one}
                            if short == 'request_specs':
                                text = row['spec'].replace(row[key], one)
                                wanted = 99 + number % kinds
                                copy['spec'] = text.replace(
                                    '"vcpus": 99', f'"vcpus": {wanted}'
                                )
                            copies.append(copy)
                    self.insert(connection, name, copies)
                    if short in ('instance_faults', 'instance_actions'):
                        connection.execute(
                            sa.text(
                                f'UPDATE {name} SET created_at = '
                                'UTC_TIMESTAMP() WHERE instance_uuid '
                                'IN :uuids'
                            ).bindparams(
                                sa.bindparam('uuids', expanding=True)
                            ),
                            {'uuids': uuids},
                        )
        return uuids

    server: dict = {}

    def watch(self):
        process = self.processes.start(
            'watch',
            [
                self.nova.program('nova-ext-sched'),
                'watch',
                '--config-file',
                self.nova.scheduler_conf,
                f'--interval={INTERVAL}',
                f'--records={self.records}',
            ],
        )
        state = self.records.with_name('records.state')
        before = state.exists() and state.stat().st_mtime_ns
        self.processes.wait(
            lambda: state.exists() and state.stat().st_mtime_ns != before,
            'watch',
        )
        return psutil.Process(process.pid), process

    def recorded(self):
        if not self.records.exists():
            return 0
        return self.records.read_bytes().count(b'\n')

    def wait_for(self, count):
        while self.recorded() < count:
            time.sleep(0.05)

    def selects(self):
        with self.engine.connect() as connection:
            return int(
                connection.execute(
                    sa.text("SHOW GLOBAL STATUS LIKE 'Com_select'")
                ).one()[1]
            )


def say(text):
    print(text, flush=True)


def cpu(process):
    spent = process.cpu_times()
    return spent.user + spent.system


def mebibytes(process):
    return process.memory_info().rss >> 20


def main():
    with Cloud(hosts=('host1',)) as cloud:
        cloud.client(['flavor', 'large', 99, {}, 1])
        with cloud.scheduler(OPTIONS):
            with stream.stream(cloud, ['large'], 3600):
                cloud.processes.wait(
                    lambda: cloud.mariadb.count('nova_cell0.instance_faults'),
                    'refusal',
                )
                time.sleep(2)
        for process in cloud.nova.processes.values():
            cloud.processes.stop(process)
        cloud.copy_hosts()
        process, child = cloud.watch()
        time.sleep(5)

        before, spent, begin = cloud.selects(), cpu(process), time.monotonic()
        time.sleep(30)
        seconds = time.monotonic() - begin
        say(
            f'idle: {(cloud.selects() - before) / seconds * INTERVAL:.2f} '
            f'selects of two cells in an interval, '
            f'{(cpu(process) - spent) / seconds:.1%} of a CPU, '
            f'{mebibytes(process)} MiB'
        )

        for kind in range(3):
            count, spent = cloud.recorded(), cpu(process)
            # Of a kind that was not explained yet.
            cloud.refuse(10 + kind, 10 + kind)
            begin = time.monotonic()
            cloud.wait_for(count + 1)
            first = time.monotonic() - begin
            cloud.wait_for(count + 10 + kind)
            say(
                f'{10 + kind} different requests at {HOSTS} hosts: '
                f'{first:.1f} s to the first record, '
                f'{time.monotonic() - begin:.1f} s to the last, '
                f'{cpu(process) - spent:.1f} s of CPU'
            )
        count, spent, begin = cloud.recorded(), cpu(process), time.monotonic()
        for _ in range(12):
            cloud.refuse(1000 // 12, 20)
            time.sleep(max(0, 5 - time.monotonic() % 5))
        burst = 1000 // 12 * 12
        cloud.wait_for(count + burst)
        say(
            f'{burst} refusals of 20 kinds in a minute: recorded after '
            f'{time.monotonic() - begin:.0f} s, '
            f'{cpu(process) - spent:.1f} s of CPU, '
            f'{mebibytes(process)} MiB after {cloud.recorded()} records'
        )
        while cloud.recorded() < 10_000:
            begin, count = time.monotonic(), cloud.recorded()
            cloud.refuse(1000)
            cloud.wait_for(count + 1000)
            say(
                f'1000 equal refusals at once: '
                f'{time.monotonic() - begin:.1f} s; {mebibytes(process)} MiB '
                f'after {cloud.recorded()} records'
            )
        lines = [
            json.loads(line) for line in cloud.records.read_text().splitlines()
        ]
        faults = cloud.mariadb.count('nova_cell0.instance_faults') - 1
        say(
            f'{faults} refusals, {len({line["id"] for line in lines})} '
            f'records; {sum(not one["explanation"] for one in lines)} without '
            f'an explanation; {cloud.records.stat().st_size >> 20} MiB'
        )
        for share in (0.2, 0.5, 0.8):
            time.sleep(61)
            count = cloud.recorded()
            cloud.refuse(1, 1)
            time.sleep(INTERVAL + share * first)
            begin = time.monotonic()
            child.send_signal(signal.SIGTERM)
            status = child.wait()
            say(
                f'SIGTERM in an explanation: {time.monotonic() - begin:.2f} '
                f's, status {status}, {cloud.recorded() - count} records'
            )
            process, child = cloud.watch()
        cloud.wait_for(faults + 3)


if __name__ == '__main__':
    main()
