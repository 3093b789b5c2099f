# SPDX-License-Identifier: Apache-2.0

"""Hosts that a copied cloud is to have no more.

Their servers are placed first, by the planner that drain uses. What nova's own
claims have of the other hosts then is written into the tables of the copy, so
that each command reads the cloud as it would be.

====================================  ======================================
a server of such a host               in the copy
====================================  ======================================
that has a place                      it is there, with its allocations, NUMA
                                      nodes and devices
that has none                         it is gone with the host; the answer
                                      names it
====================================  ======================================
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import json
import typing

from nova import objects
from nova.db.api import models as api_models
from nova.db.main import models
from nova.scheduler.client import report
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.saved import emptied
from nova_ext_sched.saved import tables

_Row = typing.Any
_Connections = Mapping[str, sa.engine.Connection]

_NODES = models.ComputeNode.__table__
_SERVICES = models.Service.__table__
_DEVICES = models.PciDevice.__table__
_SERVERS = models.Instance.__table__
_EXTRA = models.InstanceExtra.__table__
_OF_API = (
    api_models.HostMapping.__table__,
    api_models.AggregateHost.__table__,
)

# The microversion of allocations with the generation of their consumer.
_VERSION = report.CONSUMER_GENERATION_VERSION


class Removal:
    """Places the servers of hosts, and then removes the hosts.

    :param hosts: names
    :ivar without_place: servers that have no place
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(self, cloud: snapshot.Snapshot, hosts: Set[str]) -> None:
        self._cloud, self._hosts = cloud, hosts
        self._nodes = {one for host in hosts for one in cloud.nodes_of(host)}
        # By UUID: the compute node of a server, what it has there, and its
        # allocations.
        self._servers: dict[str, tuple[str, claims.Taken, _Row]] = {}
        # The columns of compute nodes that change.
        self._changed: dict[str, _Row] = {}
        self._before = {
            uuid: _count(one) for uuid, one in cloud.states.items()
        }
        plan = drain.make(cloud, hosts, at_end=self._note)
        self.without_place: Sequence[plans.Stuck] = plan.without_place

    def _note(self, future: fork.Fork) -> None:
        """Note what hosts have after all moves."""
        for uuid, (node, taken) in future.placed.items():
            allocations = future.ledger.get(uuid).json()['allocations']
            self._servers[uuid] = node, taken, allocations
        for uuid in {*future.touched} - self._nodes:
            state = self._cloud.states[uuid]
            amounts = zip(_count(state), self._before[uuid], strict=True)
            memory, disk, cpus, number = (now - then for now, then in amounts)
            topology, devices = state.numa_topology, state.pci_stats
            self._changed[uuid] = {
                'free_ram_mb': memory,
                'memory_mb_used': -memory,
                'free_disk_gb': disk // 1024,
                'disk_available_least': disk // 1024,
                'local_gb_used': -disk // 1024,
                'vcpus_used': cpus,
                'running_vms': number,
                'numa_topology': topology and _dump(topology),
                'pci_stats': devices and _dump(devices.to_device_pools_obj()),
            }

    def say(self) -> Iterator[str]:
        """Yield sentences on servers that have no place."""
        by_reason = grouping.by_key(
            (
                one.reason,
                f'{one.name or one.server} on {messages.clean(one.host)}',
            )
            for one in self.without_place
        )
        for reason, names in by_reason.items():
            has = messages.agree(len(names), 'has', 'have')
            yield (
                f'{messages.first_few(names)} {has} no place, and '
                f'{messages.agree(len(names), "is", "are")} left out: '
                f'{reason.rstrip(".")}.'
            )

    def carry_out(self, connections: _Connections) -> None:
        """Change the tables of the copy.

        :param connections: as of :func:`.reading.changing`
        """
        for table in _OF_API:
            connections[''].execute(
                sa.delete(table).where(table.c.host.in_(self._hosts))
            )
        for cell in filter(None, connections):
            connection = connections[cell]
            for uuid, (node, taken, _) in self._servers.items():
                if self._cloud.nodes[node].cell_uuid == cell:
                    self._move(connection, uuid, node, taken)
            for uuid, changed in self._changed.items():
                _change(connection, uuid, changed)
            self._delete(connection)

    def _move(
        self,
        connection: sa.engine.Connection,
        uuid: str,
        node: str,
        taken: claims.Taken,
    ) -> None:
        """Put a server onto a compute node."""
        host = self._cloud.nodes[node]
        key = connection.scalar(
            sa.select(_NODES.c.id).where(_NODES.c.uuid == node)
        )
        values = {'host': host.host, 'node': host.node, 'compute_id': key}
        known = {name: values[name] for name in values if name in _SERVERS.c}
        connection.execute(
            sa.update(_SERVERS).where(_SERVERS.c.uuid == uuid).values(known)
        )
        connection.execute(
            sa.update(_EXTRA)
            .where(_EXTRA.c.instance_uuid == uuid)
            .values(numa_topology=taken.topology and _dump(taken.topology))
        )
        device = _DEVICES.c
        held = tables.select(
            connection,
            _DEVICES,
            device.instance_uuid == uuid,
            device.deleted == 0,
        )
        free = tables.select(
            connection,
            _DEVICES,
            device.compute_node_id == key,
            device.status == 'available',
            device.deleted == 0,
        )
        for old, new in zip(held, _choose(free, taken.pools), strict=False):
            connection.execute(
                sa.update(_DEVICES)
                .where(_DEVICES.c.id == new['id'])
                .values(
                    status='allocated',
                    instance_uuid=uuid,
                    request_id=old['request_id'],
                )
            )

    def _delete(self, connection: sa.engine.Connection) -> None:
        """Delete the hosts, and the servers that are on them still."""
        nodes = sa.select(_NODES.c.id).where(_NODES.c.uuid.in_(self._nodes))
        connection.execute(
            sa.delete(_DEVICES).where(_DEVICES.c.compute_node_id.in_(nodes))
        )
        connection.execute(
            sa.delete(_NODES).where(_NODES.c.uuid.in_(self._nodes))
        )
        connection.execute(
            sa.delete(_SERVICES).where(
                _SERVICES.c.host.in_(self._hosts),
                _SERVICES.c.binary == 'nova-compute',
            )
        )
        connection.execute(
            sa.update(_SERVERS)
            .where(_SERVERS.c.host.in_(self._hosts), _SERVERS.c.deleted == 0)
            .values(deleted=_SERVERS.c.id)
        )

    def carry_out_in_placement(self) -> None:
        """Change the copy's placement, which answers in this process.

        :raises exception.InvalidValue: it does not take the change
        """
        client = report.SchedulerReportClient()
        url = '/resource_providers'
        trees = [
            client.get(f'{url}?in_tree={node}', version='1.14').json()[
                'resource_providers'
            ]
            for node in sorted(self._nodes)
        ]
        gone = {one['uuid']: one for tree in trees for one in tree}
        allocations = {uuid: one[2] for uuid, one in self._servers.items()}
        for uuid in gone:
            found = client.get(f'{url}/{uuid}/allocations').json()
            for consumer in found['allocations'].keys() - allocations.keys():
                allocations[consumer] = None
        states = [self._cloud.states.get(node) for node in self._nodes]
        lost = {uuid for one in states if one for uuid in one.instances}
        lost -= self._servers.keys()
        bodies = {}
        for consumer, wanted in allocations.items():
            body = client.get(f'/allocations/{consumer}', version=_VERSION)
            bodies[consumer] = known = body.json()
            known['allocations'] = {
                uuid: {'resources': one['resources']}
                for uuid, one in (wanted or known['allocations']).items()
                if uuid not in gone and consumer not in lost
            }
        if bodies:
            _check(client.post('/allocations', bodies, version=_VERSION))
        while gone:
            parents = {one['parent_provider_uuid'] for one in gone.values()}
            for uuid in gone.keys() - parents:
                _check(client.delete(f'{url}/{uuid}'))
                del gone[uuid]


def _check(response: typing.Any) -> None:
    # What nova's claims have taken, placement gives as a rule.
    if response.status_code != 204:
        raise exception.InvalidValue(
            where='placement of the copied cloud',
            expected='the allocations of servers that move',
            got=response.text,
        )


def _count(state: typing.Any) -> tuple[int, int, int, int]:
    """Return the amounts of a nova HostState that servers change."""
    return (
        state.free_ram_mb,
        state.free_disk_mb,
        state.vcpus_used,
        state.num_instances,
    )


def _dump(thing: typing.Any) -> str:
    """Return a nova object as nova stores it."""
    return json.dumps(thing.obj_to_primitive())


def _change(
    connection: sa.engine.Connection, uuid: str, changed: _Row
) -> None:
    """Change a compute node, if the database has it.

    :param changed: columns; what is a number is added
    """
    for node in tables.select(connection, _NODES, _NODES.c.uuid == uuid):
        stats = json.loads(node['stats'] or '{}')
        number = int(stats.get('num_instances', 0)) + changed['running_vms']
        values = {
            name: value + node[name] if isinstance(value, int) else value
            for name, value in changed.items()
            if node[name] is not None
        }
        stats['num_instances'] = str(number)
        connection.execute(
            sa.update(_NODES)
            .where(_NODES.c.id == node['id'])
            .values({**values, 'stats': json.dumps(stats)})
        )


def _choose(
    devices: Iterable[dict[str, typing.Any]], pools: Iterable[claims.Pool]
) -> Iterator[dict[str, typing.Any]]:
    """Yield devices that are of pools, as many as these have."""
    free = [*devices]
    for pool in pools:
        wanted = objects.PciDevicePool.from_dict(pool)
        mine = [one for one in free if emptied.is_of(one, wanted)]
        for device in mine[: pool['count']]:
            free.remove(device)
            yield device
