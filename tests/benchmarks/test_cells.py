# SPDX-License-Identifier: Apache-2.0

"""explain of a new server on 10,000 hosts in 70 cells, a database each.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are.
"""

import contextlib
import json
import shutil
import sqlite3
import sys
import uuid

from tests.benchmarks import many_hosts
from tests.benchmarks import process

CELLS = 70
TABLES = ('services', 'compute_nodes', 'instances')
# copy70 is in the first cell, as copy0 and what has no number.
CELL = f'CAST(SUBSTR(host, 5) AS INTEGER) % {CELLS}'


class CellsBenchmark(many_hosts.ManyHostsTestCase):
    servers_of_a_host = 20

    def setUp(self):
        super().setUp()
        self.processes = self.useFixture(process.Processes(self))
        self._split()

    def _open(self, name):
        """Return a connection of a database, for one transaction."""
        path = self.processes.folder / f'{name}.db'
        connection = sqlite3.connect(path, isolation_level=None)
        return contextlib.closing(connection)

    def _split(self):
        """Share the hosts and servers of cell1 among cells."""
        folder = self.processes.folder
        shutil.move(folder / 'nova_cell1.db', folder / 'all.db')
        shutil.copy(folder / 'all.db', folder / 'none.db')
        with self._open('none') as none:
            for table in TABLES:
                none.execute(f'DELETE FROM {table}')
            none.execute('VACUUM')
        for number in range(CELLS):
            name = f'nova_cell{number + 1}'
            shutil.copy(folder / 'none.db', folder / f'{name}.db')
            with self._open(name) as cell:
                cell.execute('ATTACH ? AS whole', (f'{folder / "all.db"}',))
                for table in TABLES:
                    cell.execute(
                        f'INSERT INTO {table} SELECT * FROM whole.{table} '
                        f'WHERE {CELL} = ?',
                        (number,),
                    )
                cell.execute('ANALYZE')
        with self._open('nova_api') as api:
            [[first]] = api.execute(
                "SELECT id FROM cell_mappings WHERE name = 'cell1'"
            )
            api.executemany(
                'INSERT INTO cell_mappings (id, uuid, name, transport_url, '
                "database_connection, disabled) VALUES (?, ?, ?, 'none:///', "
                '?, 0)',
                [
                    (
                        first + number,
                        str(uuid.uuid4()),
                        f'cell{number + 1}',
                        f'sqlite:///{folder}/nova_cell{number + 1}.db',
                    )
                    for number in range(1, CELLS)
                ],
            )
            api.execute(f'UPDATE host_mappings SET cell_id = cell_id + {CELL}')

    def test_explain(self):
        answer = self.processes.run(
            *('explain', '--flavor', self.plain_flavor, '-f', 'json')
        )
        self.assertEqual(0, answer.status, answer.err)
        document = json.loads(answer.out)
        print(
            f'\nexplain: {document["answer"]["sentence"]} {self.hosts} hosts '
            f'in {CELLS} cells, {len(self.servers)} servers: {answer}',
            file=sys.stderr,
        )
        self.assertEqual([], document['faults'])
        self.assertEqual(self.hosts + 1, len(document['order']))
