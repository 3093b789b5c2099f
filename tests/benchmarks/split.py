# SPDX-License-Identifier: Apache-2.0

"""Shares the hosts and servers of cell1 among cells, a database each."""

import contextlib
import pathlib
import shutil
import sqlite3
import uuid

_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' "
    "AND name NOT LIKE 'sqlite_%'"
)
_OF_SERVERS = 'instance_uuid IN (SELECT uuid FROM {}.instances)'
_ADD = (
    'INSERT INTO cell_mappings (id, uuid, name, transport_url, '
    "database_connection, disabled) VALUES (?, ?, ?, 'none:///', ?, 0)"
)


def split(folder: pathlib.Path, count: int) -> None:
    """Make databases of cell1's for so many cells.

    The hosts are dealt in turn: copy70 of 70 cells is in the first one, as
    copy0 and what has no number. What belongs to no host and no server stays
    there too.

    :param folder: has the copies of databases
    """
    which = f'CAST(SUBSTR(host, 5) AS INTEGER) % {count}'
    shutil.move(folder / 'nova_cell1.db', folder / 'all.db')
    shutil.copy(folder / 'all.db', folder / 'none.db')
    columns = {}
    with _open(folder / 'none.db') as none:
        for (table,) in none.execute(_TABLES).fetchall():
            found = none.execute(f'PRAGMA table_info({table})')
            columns[table] = [name for _, name, *_ in found]
            none.execute(f'DELETE FROM {table}')
        none.execute('VACUUM')
    with _open(folder / 'nova_api.db') as api:
        [[first]] = api.execute(
            "SELECT id FROM cell_mappings WHERE name = 'cell1'"
        )
        for number in range(count):
            path = folder / f'nova_cell{number + 1}.db'
            shutil.copy(folder / 'none.db', path)
            with _open(path) as cell:
                cell.execute('ATTACH ? AS whole', (f'{folder / "all.db"}',))
                _fill(cell, columns, f'{which} = {number}', number == 0)
            api.execute('ATTACH ? AS cell', (f'{path}',))
            of_servers = _OF_SERVERS.format('cell')
            api.execute(
                f'UPDATE instance_mappings SET cell_id = ? WHERE {of_servers}',
                (first + number,),
            )
            api.execute('DETACH cell')
            if number:
                name, key = f'cell{number + 1}', str(uuid.uuid4())
                row = first + number, key, name, f'sqlite:///{path}'
                api.execute(_ADD, row)
        api.execute(f'UPDATE host_mappings SET cell_id = cell_id + {which}')


def _open(path):
    """Return a connection of a database, for one transaction a statement."""
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def _fill(cell, columns, of_hosts, has_others):
    """Copy what a cell has of all.

    :param columns: by table
    :param of_hosts: chooses its rows of tables with hosts
    :param has_others: whether it has those of other tables
    """
    cell.execute('BEGIN')
    # Servers come before what is theirs.
    for table in sorted(columns, key=lambda table: table != 'instances'):
        wanted = f'{has_others:d}'
        if 'instance_uuid' in columns[table]:
            wanted = _OF_SERVERS.format('main')
        elif 'host' in columns[table]:
            wanted = of_hosts
        cell.execute(
            f'INSERT INTO {table} SELECT * FROM whole.{table} WHERE {wanted}'
        )
    cell.execute('COMMIT')
    cell.execute('ANALYZE')
