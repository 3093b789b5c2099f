# SPDX-License-Identifier: Apache-2.0

"""Rows of databases that nova and placement wrote, copied many times."""

import collections
import datetime
import uuid

import sqlalchemy as sa

#: Tables of a server that nova refused, and the columns with its UUID.
REFUSED = {
    'nova_cell0.instances': 'uuid',
    **dict.fromkeys(
        (
            'nova_api.instance_mappings',
            'nova_api.request_specs',
            'nova_cell0.instance_extra',
            'nova_cell0.instance_info_caches',
            'nova_cell0.instance_actions',
            'nova_cell0.instance_faults',
        ),
        'instance_uuid',
    ),
}


def read(engine, table, **wanted):
    """Return the rows that have these values, without the rows' IDs."""
    query = sa.select(table).where(
        *(table.c[key] == value for key, value in wanted.items())
    )
    with engine.connect() as connection:
        return [
            {key: value for key, value in row.items() if key != 'id'}
            for row in connection.execute(query).mappings()
        ]


def read_ids(engine, table):
    """Return the IDs of a table's rows by their UUIDs, the first one first."""
    query = sa.select(table.c.uuid, table.c.id).order_by(table.c.id)
    with engine.connect() as connection:
        return dict(connection.execute(query).all())


def insert(engine, table, rows):
    """Insert rows, a thousand at a time."""
    with engine.begin() as connection:
        for start in range(0, len(rows), 1000):
            connection.execute(sa.insert(table), rows[start : start + 1000])


def copy_host(find, uuids):
    """Copy the one real host, its provider and inventory too.

    :param find: returns the engine and the table of a name, DATABASE.TABLE
    :param uuids: of the copies; their names are copy0, copy1 and so on
    """
    for name, wanted, keys in (
        ('nova_cell1.services', {'binary': 'nova-compute'}, ['host']),
        ('nova_cell1.compute_nodes', {}, ['host', 'hypervisor_hostname']),
        ('nova_api.host_mappings', {}, ['host']),
        ('placement.resource_providers', {}, ['name']),
    ):
        [row] = read(*find(name), **wanted)
        copies = []
        for number, own in enumerate(uuids):
            copy = row | dict.fromkeys(keys, f'copy{number}')
            if 'uuid' in row:
                copy['uuid'] = own
            copies.append(copy)
        insert(*find(name), copies)
    engine, providers = find('placement.resource_providers')
    with engine.begin() as connection:
        connection.execute(
            sa.update(providers).values(root_provider_id=providers.c.id)
        )
    [_, *ids] = read_ids(engine, providers).values()
    for name in ('inventories', 'resource_provider_traits'):
        found = find(f'placement.{name}')
        kept = read(*found)
        copies = [
            row | {'resource_provider_id': id_} for id_ in ids for row in kept
        ]
        insert(*found, copies)


def read_refused(find, server):
    """Return what nova wrote for a server that it refused, by table.

    :param find: as of :func:`copy_host`
    """
    return {
        name: read(*find(name), **{key: server})
        for name, key in REFUSED.items()
    }


def copy_refused(find, refused, words):
    """Copy what nova wrote for a server that it refused.

    :param find: as of :func:`copy_host`
    :param refused: as :func:`read_refused` returns it
    :param words: for each copy a word of its request, and what stands for it
    """
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    copies = collections.defaultdict(list)
    for old, new in words:
        server = str(uuid.uuid4())
        for name, originals in refused.items():
            for row in originals:
                copy = row | {REFUSED[name]: server, 'created_at': now}
                if 'spec' in row:
                    spec = row['spec'].replace(row['instance_uuid'], server)
                    copy['spec'] = spec.replace(old, new)
                copies[name].append(copy)
    # The fault comes last, which a watcher looks for.
    for name in REFUSED:
        insert(*find(name), copies[name])


class Copies:
    """Rows of servers in a table, to be copied.

    :param found: the engine and the table
    :param key: the column with the server's UUID
    :param uuids: the servers whose rows are the originals
    """

    def __init__(self, found, key, uuids):
        self._found = found
        by_uuid = {row[key]: row for row in read(*found)}
        self.originals = [by_uuid[server] for server in uuids]
        self._copies = []

    def add(self, number, **changes):
        self._copies.append(self.originals[number] | changes)

    def insert(self):
        insert(*self._found, self._copies)
