# SPDX-License-Identifier: Apache-2.0

"""Hosts and amounts that a saved cloud is to have besides its own.

nova's and placement's tables get what they would have if nova-compute had
reported it, so that all of nova's and placement's code answers for it:

========================  ====================================================
supposed                  what the tables get
========================  ====================================================
a host like another one   its rows and providers once more, under new names,
                          with nothing used. It is in the same cell and
                          aggregates, but for failure domains: in the one that
                          is named, or in all of them in turn
``*_allocation_ratio``,   the amounts, in placement's inventories and in the
``reserved_host_*``       compute nodes, of all hosts but bare metal
``initial_*_ratio``       the ratio of hosts that are added
========================  ====================================================
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import math
import typing

import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import readers
from nova_ext_sched.policy import verdict
from nova_ext_sched.saved import emptied
from nova_ext_sched.saved import tables
from nova_ext_sched.saved import trees

CONF = nova.conf.CONF

_Row = dict[str, typing.Any]
_Connections = Mapping[str, sa.engine.Connection]

_NODES = models.ComputeNode.__table__
_SERVICES = models.Service.__table__
_DEVICES = models.PciDevice.__table__
_MAPPINGS = api_models.HostMapping.__table__
_MEMBERS = api_models.AggregateHost.__table__
_METADATA = api_models.AggregateMetadata.__table__

# By placement's class: the columns of a compute node that have what is used
# and free, and how many of an option's units are one.
_ROOM = {
    'VCPU': ('vcpus_used', None, 1),
    'MEMORY_MB': ('memory_mb_used', 'free_ram_mb', 1),
    'DISK_GB': ('local_gb_used', 'free_disk_gb', 1024),
}


class Added(typing.NamedTuple):
    """Hosts that there are to be.

    :ivar like: the name of the host that they are like
    :ivar domain: the failure domain of all; empty for each in turn
    """

    like: str
    number: int = 1
    domain: str = ''

    @classmethod
    def read(cls, text: str) -> 'Added':
        """Parse ``LIKE[:N][@DOMAIN]``.

        :raises exception.InvalidValue: it has another form
        """
        rest, _, domain = text.partition('@')
        like, colon, number = rest.partition(':')
        if not like or (colon and not (number.isdigit() and int(number))):
            raise exception.InvalidValue(
                where='--add-host', expected='LIKE[:N][@DOMAIN]', got=text
            )
        return cls(like, int(number or 1), domain)


@dataclasses.dataclass(frozen=True)
class Supposed:
    """A change to suppose.

    :ivar added: hosts
    :ivar options: of nova-compute, of :data:`.readers.COUNTED`
    """

    added: Collection[Added] = ()
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)


#: Nothing is.
NONE = Supposed()


@dataclasses.dataclass
class Supposing:
    """Changes tables, before placement's are filled.

    :param connections: to nova's databases by the UUID of the cell; that of
        the API is ``''``
    :param time: when the cloud was saved
    :ivar notes: what every answer says
    """

    connections: _Connections
    providers: trees.Trees
    wanted: Supposed
    time: datetime.datetime

    def __post_init__(self) -> None:
        self.notes: list[str] = []
        self._new: set[str] = set()

    def suppose(self) -> None:
        """Change what is wanted.

        :raises exception.InvalidValue: an amount has another form
        :raises exception.UnknownName: there is no such host or domain
        """
        for one in self.wanted.added:
            self._add(one)
        for name, value in self.wanted.options.items():
            self._set(name, value)

    def _add(self, added: Added) -> None:
        services = {
            row['host']: (cell, row) for cell, row in self._list_services()
        }
        like = named.find_host(added.like, services)
        cell, service = services[like]
        domains = self._list_domains(added.domain)
        names = {*services}
        for number in range(added.number):
            turn = 1
            while (name := f'{like}-new{turn}') in names:
                turn += 1
            names.add(name)
            nodes = self._copy(cell, service, name)
            self._new |= nodes
            domain = domains[number % len(domains)] if domains else None
            self._join(like, name, nodes, domain)

    def _list_services(self) -> Iterator[tuple[str, _Row]]:
        for cell in filter(None, self.connections):
            for row in tables.select(
                self.connections[cell],
                _SERVICES,
                _SERVICES.c.binary == 'nova-compute',
                _SERVICES.c.deleted == 0,
            ):
                yield cell, row

    def _copy(self, cell: str, service: _Row, name: str) -> set[str]:
        """Copy the service and compute nodes of a host, and its providers.

        :returns: the UUIDs of the new compute nodes
        """
        nodes: set[str] = set()
        connection, like = self.connections[cell], service['host']
        service_id = self._insert(
            connection,
            _SERVICES,
            service
            | {
                'host': name,
                'uuid': uuidutils.generate_uuid(),
                'disabled': False,
                'disabled_reason': None,
                'forced_down': False,
                'last_seen_up': self.time,
            },
        )
        for node in tables.select(
            connection, _NODES, _NODES.c.host == like, _NODES.c.deleted == 0
        ):
            shown = node['hypervisor_hostname']
            uuids = self.providers.copy(
                node['uuid'], lambda old: old.replace(like, name, 1)
            )
            nodes.add(uuids[node['uuid']])
            node_id = self._insert(
                connection,
                _NODES,
                emptied.empty(node)
                | {
                    'service_id': service_id,
                    'host': name,
                    'hypervisor_hostname': shown.replace(like, name, 1),
                    'uuid': uuids[node['uuid']],
                },
            )
            taken = self._copy_devices(connection, node['id'], node_id, uuids)
            pools = emptied.return_devices(node['pci_stats'], taken)
            connection.execute(
                sa.update(_NODES)
                .where(_NODES.c.id == node_id)
                .values(pci_stats=emptied.rename(pools, uuids))
            )
        return nodes

    def _copy_devices(
        self,
        connection: sa.engine.Connection,
        node: int,
        copied: int,
        uuids: Mapping[str, str],
    ) -> list[_Row]:
        """Copy the PCI devices of a compute node; all are free.

        :returns: those that servers have
        """
        devices = tables.select(
            connection,
            _DEVICES,
            _DEVICES.c.compute_node_id == node,
            _DEVICES.c.deleted == 0,
        )
        taken = [
            one for one in devices if one['status'] in ('allocated', 'claimed')
        ]
        for device in devices:
            free = {'status': 'available', 'instance_uuid': None}
            self._insert(
                connection,
                _DEVICES,
                device
                | (free if device in taken else {})
                | {
                    'uuid': uuidutils.generate_uuid(),
                    'compute_node_id': copied,
                    'request_id': None,
                    'extra_info': emptied.rename(device['extra_info'], uuids),
                },
            )
        return taken

    @staticmethod
    def _insert(
        connection: sa.engine.Connection, table: sa.Table, row: _Row
    ) -> int:
        row = {key: value for key, value in row.items() if key != 'id'}
        inserted = connection.execute(sa.insert(table).values(**row))
        return int(inserted.inserted_primary_key[0])

    def _list_domains(self, wanted: str) -> list[list[int]]:
        """Return the aggregates of each failure domain that is to be used.

        :param wanted: the only one; empty for all
        :returns: their IDs; nothing where there are no failure domains
        """
        by_domain = grouping.by_key(
            (name, id_)
            for id_, names in self._read_domains()
            for name in names
        )
        if wanted:
            if wanted not in by_domain:
                raise exception.UnknownName(
                    'failure domain', wanted, by_domain
                )
            return [by_domain[wanted]]
        return [
            by_domain[one] for one in sorted(by_domain, key=messages.in_order)
        ]

    def _read_domains(self) -> Iterator[tuple[int, list[str]]]:
        key = CONF.nova_ext_sched.failure_domain_key
        query = sa.select(_METADATA.c.aggregate_id, _METADATA.c.value)
        for id_, value in self.connections[''].execute(
            query.where(_METADATA.c.key == key)
        ):
            yield id_, verdict.split_value(value)

    def _join(
        self,
        like: str,
        name: str,
        nodes: Iterable[str],
        domain: Collection[int] | None,
    ) -> None:
        """Put a host into the aggregates of another one, in placement, too.

        :param nodes: the UUIDs of its compute nodes
        :param domain: the aggregates that it is in in place of those of the
            other's failure domain; None where there are no domains
        """
        api, table = self.connections[''], api_models.Aggregate.__table__
        query = sa.select(_MEMBERS.c.aggregate_id).where(
            _MEMBERS.c.host == like
        )
        aggregates = set(api.scalars(query))
        if domain is not None:
            aggregates -= {id_ for id_, names in self._read_domains() if names}
            aggregates |= {*domain}
        for id_ in sorted(aggregates):
            self._insert(api, _MEMBERS, {'aggregate_id': id_, 'host': name})
        for row in tables.select(api, _MAPPINGS, _MAPPINGS.c.host == like):
            self._insert(api, _MAPPINGS, row | {'host': name})
        uuids = dict(api.execute(sa.select(table.c.id, table.c.uuid)).all())
        for provider in filter(None, map(self.providers.get, nodes)):
            # Others are not nova's.
            others = {*provider['aggregates']} - {*uuids.values()}
            provider['aggregates'] = sorted(
                others | {uuids[id_] for id_ in aggregates}
            )

    def _set(self, name: str, value: str) -> None:
        """Set an amount of compute nodes as an option does."""
        amount = _read_amount(name, value)
        class_ = readers.COUNTED[name]
        used, free, unit = _ROOM[class_]
        overwritten = []
        for connection, node in self._list_nodes():
            root = self.providers.get(node['uuid'])
            is_new = node['uuid'] in self._new
            if root is None or (name in readers.INITIAL and not is_new):
                continue
            inventory = root['inventories'].get(class_, {})
            if name in readers.RESERVED:
                number = -(-int(amount) // unit)
                more = number - inventory.get('reserved', number)
                changed = {used: (node[used] or 0) + more}
                if free:
                    changed[free] = (node[free] or 0) - more
                inventory and inventory.update(reserved=number)
            else:
                column = name.removeprefix('initial_')
                if inventory and inventory['allocation_ratio'] not in (
                    node[column],
                    amount,
                ):
                    overwritten.append(node['host'])
                changed = {column: amount}
                inventory and inventory.update(allocation_ratio=amount)
            connection.execute(
                sa.update(_NODES)
                .where(_NODES.c.id == node['id'])
                .values(changed)
            )
        if overwritten:
            hosts = messages.first_few(
                sorted(overwritten, key=messages.in_order)
            )
            self.notes.append(
                f'{name} overwrites what placement has of {hosts}, where '
                f'somebody has set another ratio.'
            )

    def _list_nodes(self) -> Iterator[tuple[sa.engine.Connection, _Row]]:
        for cell in filter(None, self.connections):
            connection = self.connections[cell]
            for row in tables.select(
                connection,
                _NODES,
                _NODES.c.deleted == 0,
                _NODES.c.hypervisor_type != 'ironic',
            ):
                yield connection, row


def _read_amount(name: str, value: str) -> float:
    is_whole = name in readers.RESERVED
    try:
        amount = int(value) if is_whole else float(value)
    except ValueError:
        amount = -1
    if not math.isfinite(amount) or amount < 0 or not (is_whole or amount):
        kind = 'a whole number' if is_whole else 'a number above 0'
        raise exception.InvalidValue(
            where=f'--option {name}', expected=kind, got=value
        )
    return amount
