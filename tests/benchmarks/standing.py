# SPDX-License-Identifier: Apache-2.0

"""Servers that stand on the hosts of many_hosts, with all their rows."""

import re
import typing

from oslo_utils import uuidutils
import sqlalchemy as sa

from tests.benchmarks import rows

# Of a server's extra row, those that have its UUID in their text.
_WITH_UUID = ('numa_topology', 'pci_requests')
_REQUEST = re.compile(r'"request_id": "([^"]+)"')


class Place(typing.NamedTuple):
    """Where a copy stands.

    :ivar kind: the number of the server that it is a copy of
    :ivar host: the number of its host
    :ivar group: the UUID of that one's server group, and of the copy's
    """

    kind: int
    host: int
    group: tuple[str, str] | None = None


def copy(case, kinds, places):
    """Copy the rows of servers.

    :param case: a ManyHostsTestCase
    :param kinds: UUIDs of servers that run
    :returns: UUIDs of the copies
    """

    def copies(name, key):
        return rows.Copies(case.table(name), key, kinds)

    engine, table = case.table('nova_cell1.instances')
    with engine.begin() as connection:
        # They have a row in one table alone.
        connection.execute(sa.delete(table).where(table.c.host.like('copy%')))
    instances = copies('nova_cell1.instances', 'uuid')
    specs = copies('nova_api.request_specs', 'instance_uuid')
    extras = copies('nova_cell1.instance_extra', 'instance_uuid')
    disks = copies('nova_cell1.block_device_mapping', 'instance_uuid')
    others = [
        copies(name, 'instance_uuid')
        for name in (
            'nova_cell1.instance_info_caches',
            'nova_api.instance_mappings',
        )
    ]
    consumers = copies('placement.consumers', 'uuid')
    groups = rows.read_ids(*case.table('nova_api.instance_groups'))
    providers = rows.read_ids(*case.table('placement.resource_providers'))
    held = [
        rows.read(*case.table('placement.allocations'), consumer_id=uuid)
        for uuid in kinds
    ]
    uuids, members, allocations = [], [], []
    for kind, index, group in places:
        uuid = uuidutils.generate_uuid()
        uuids.append(uuid)
        host = f'copy{index}'
        instances.add(kind, uuid=uuid, host=host, node=host)
        # Its UUID is in parts of it too.
        spec = specs.originals[kind]['spec'].replace(kinds[kind], uuid)
        extra = {
            name: value and value.replace(kinds[kind], uuid)
            for name, value in extras.originals[kind].items()
            if name in _WITH_UUID
        }
        # nova gives each request of a device another.
        for request in _REQUEST.findall(spec):
            own = uuidutils.generate_uuid()
            spec = spec.replace(request, own)
            requests = extra['pci_requests'].replace(request, own)
            extra['pci_requests'] = requests
        if group:
            if group[0] in spec:
                members.append(
                    {'instance_uuid': uuid, 'group_id': groups[group[1]]}
                )
            spec = spec.replace(*group)
        specs.add(kind, instance_uuid=uuid, spec=spec)
        extras.add(kind, instance_uuid=uuid, **extra)
        disks.add(
            kind,
            instance_uuid=uuid,
            uuid=uuidutils.generate_uuid(),
            volume_id=disks.originals[kind]['volume_id']
            and uuidutils.generate_uuid(),
        )
        for one in others:
            one.add(kind, instance_uuid=uuid)
        consumers.add(kind, uuid=uuid)
        provider = providers[case.uuids[index]]
        allocations += [
            row | {'resource_provider_id': provider, 'consumer_id': uuid}
            for row in held[kind]
        ]
    for one in (instances, specs, extras, disks, *others, consumers):
        one.insert()
    rows.insert(*case.table('nova_api.instance_group_member'), members)
    rows.insert(*case.table('placement.allocations'), allocations)
    return uuids
