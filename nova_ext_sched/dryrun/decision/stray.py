# SPDX-License-Identifier: Apache-2.0

"""Finds allocations of servers that do not run there, and what ends them.

An allocation is not stray while nova may still work on its server. Where that
is in doubt, it counts as held:

=========================================  ================================
server                                     its allocation on another host
=========================================  ================================
built, with a task, hidden, or written     held: nova works on it
in the last ten minutes, as a migration
of it that has not ended
``migrating`` for an hour, and not yet     stray: nova-conductor lost it,
handed to nova-compute (``accepted``)      and nova aborts none of these
resized                                    held by its migration until its
                                           owner confirms the resize
evacuated, and nova-compute has not        stray: nova-compute clears it
started since                              when it starts
any other, with one where it is            stray: it is taken off that host
any other, with none where it is: its      stray: both are deleted, and nova
migration has that                         makes one where it is
on no host: shelved, or it failed          stray: deleted
on a host without a compute node           held: it may have a new name
shelved and not offloaded, or deleted      it holds room where it is, and
softly                                     does not run
of its migration, which has not ended      stray: deleted
=========================================  ================================

Of stray ones nova-compute clears those of evacuations alone, and logs the
others. ``nova-manage placement audit`` would also delete what a migration that
is under way has on its destination.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import typing

from nova.compute import task_states
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
from nova.objects import fields
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.queries import servers

#: nova writes the end of a server or migration before it clears placement.
CLEARING = datetime.timedelta(minutes=10)

# nova-conductor asks one destination after the other, and waits for each up to
# [DEFAULT] long_rpc_timeout (half an hour).
_LOST = datetime.timedelta(hours=1)

# What nova-compute looks for when it starts
# (ComputeManager._destroy_evacuated_instances).
_CLEARED_AT_START = ('accepted', 'pre-migrating', 'done')

_ENDED = (*servers.ENDED, servers.REVERTED)

_UNSET = (
    'openstack --os-placement-api-version 1.28 resource provider allocation '
    'unset'
)
_DELETE = 'openstack resource provider allocation delete'

# What ends it where a server is kept on its host and does not run, by its
# vm_state. A stopped one needs its place.
_IDLE = {
    vm_states.SHELVED: 'openstack server shelve --offload',
    vm_states.SOFT_DELETED: 'openstack server delete --force',
}

#: Allocations of providers by consumer, by the UUIDs of hosts.
Held = Mapping[str, Mapping[str, typing.Any]]


class _Server(typing.NamedTuple):
    """The server that an allocation belongs to."""

    consumer: str
    uuid: str
    host: str | None
    node: str | None
    vm_state: str
    task_state: str | None


class _Migration(typing.NamedTuple):
    uuid: str
    server: str
    kind: str
    status: str
    hosts: tuple[str | None, str | None]
    written: datetime.datetime


def find(cloud: snapshot.Snapshot, read: Held) -> Iterator[conclusion.Stray]:
    """Yield the allocations of servers that do not run there.

    Some requests to placement for each. The caller looks whether a cell is
    silent.

    :param read: what placement said before this is called
    :raises placement.PlacementFailed: placement does not answer
    """
    consumers = {consumer for found in read.values() for consumer in found}
    settled = {
        one.consumer: one for one in _ask(cloud, _select_settled, consumers)
    }
    holding = [
        (uuid, settled[consumer])
        for uuid, found in read.items()
        for consumer in sorted(found.keys() & settled.keys())
    ]
    away = [pair for pair in holding if not _stands(cloud, pair[1], pair[0])]
    migrations = _find_migrations(cloud, (one.uuid for _, one in away))
    for uuid, server in away:
        if found := _find_at(
            cloud, uuid, server, migrations.get(server.uuid, [])
        ):
            yield found
    for uuid, server in holding:
        if server.vm_state in _IDLE and (uuid, server) not in away:
            yield _tell_idle(cloud, uuid, server)


def _tell_idle(
    cloud: snapshot.Snapshot, uuid: str, server: _Server
) -> conclusion.Stray:
    """Return how to end what a server holds that is kept and does not run."""
    host = messages.clean(cloud.nodes[uuid].name)
    remedy = f'{_IDLE[server.vm_state]} {server.uuid}'
    sentence = (
        f'{host}: server {server.uuid} is kept there and does not run '
        f'({server.vm_state}): {remedy}'
    )
    return conclusion.Stray(
        host, uuid, server.consumer, server.uuid, host, remedy, sentence
    )


def find_lost(cloud: snapshot.Snapshot, uuids: Collection[str]) -> set[str]:
    """Return the servers whose migrations nova has lost.

    :param uuids: of servers that have migrations that have not ended
    """
    migrations = _find_migrations(cloud, uuids)
    return {
        server.uuid
        for server in _ask(cloud, _select_settled, uuids)
        if server.vm_state != vm_states.RESIZED
        and _is_lost(server, migrations.get(server.uuid, []))
    }


def _ask(
    cloud: snapshot.Snapshot,
    select: Callable[..., typing.Any],
    uuids: Collection[str],
) -> Iterator[typing.Any]:
    for rows in cloud.ask_cells(select, uuids).values():
        yield from rows


def _find_migrations(
    cloud: snapshot.Snapshot, uuids: Iterable[str]
) -> dict[str, list[_Migration]]:
    """Return the migrations of servers, the newest last."""
    return grouping.by_key(
        (migration.server, migration)
        for migration in _ask(cloud, _select_migrations, {*uuids})
    )


def _stands(cloud: snapshot.Snapshot, server: _Server, uuid: str) -> bool:
    """Return whether a server is on a host.

    A node of bare metal may have gone to another nova-compute; the name that
    nova-compute gives a node may change.
    """
    node = cloud.nodes[uuid]
    return bool(server.host) and (
        server.node == node.node
        or (server.host == node.host and len(cloud.nodes_of(node.host)) == 1)
    )


def _find_home(cloud: snapshot.Snapshot, server: _Server) -> str | None:
    """Return the UUID of a server's host; None if it has none."""
    nodes = cloud.nodes_of(server.host or '')
    only = nodes[0] if len(nodes) == 1 else None
    return cloud.find_node(server.host, server.node) or only


def _is_lost(server: _Server, migrations: Sequence[_Migration]) -> bool:
    """Return whether nova has lost all migrations of a server."""
    now = timeutils.utcnow()
    open_ = [mine for mine in migrations if mine.status not in _ENDED]
    if server.task_state == task_states.MIGRATING:
        return bool(open_) and all(
            mine.status == 'accepted' and mine.written < now - _LOST
            for mine in open_
        )
    return all(mine.written <= now - CLEARING for mine in open_)


def _find_at(
    cloud: snapshot.Snapshot,
    uuid: str,
    server: _Server,
    migrations: list[_Migration],
) -> conclusion.Stray | None:
    """Return how to end the allocation of a server that is on another host.

    :returns: None where nova may still work on it
    """
    host = cloud.nodes[uuid]
    of_it = {mine.uuid: mine for mine in migrations}
    of_host = [mine for mine in migrations if host.host in mine.hosts]
    last = of_it.get(server.consumer) or (of_host[-1] if of_host else None)
    why = f'; its {last.kind} is {last.status}' if last else ''
    if last and last.status not in (*_ENDED, 'finished'):
        why += ', and nova does nothing more'
    remedy = _find_remedy(cloud, uuid, server, migrations, last)
    if remedy is None:
        return None
    name, stands_on = messages.clean(host.name), None
    if server.host:
        stands_on = messages.clean(server.host)
    sentence = (
        f'{name}: server {server.uuid} has a stale allocation there and runs '
        f'on {stands_on or "no host"}{messages.clean(why)}: {remedy}'
    )
    return conclusion.Stray(
        name, uuid, server.consumer, server.uuid, stands_on, remedy, sentence
    )


def _find_remedy(
    cloud: snapshot.Snapshot,
    uuid: str,
    server: _Server,
    migrations: Sequence[_Migration],
    last: _Migration | None,
) -> str | None:
    """Return the commands to run, by the module's table; None if it is held.

    :param uuid: of the host that is held; the others as of :func:`_find_at`
    :param last: the migration that holds it, or the last of this host
    """
    if server.vm_state == vm_states.RESIZED:
        if (
            server.consumer == server.uuid
            or not last
            or last.status != 'finished'
        ):
            return None
        return f'confirm it (openstack server resize confirm {server.uuid})'
    if not _is_lost(server, migrations):
        return None
    home = _find_home(cloud, server)
    if server.host and home is None:
        # Its host may have another name now.
        return None
    if server.consumer != server.uuid or home is None:
        return f'{_DELETE} {server.consumer}'
    of_its_own = {one.uuid for one in migrations}
    remedy = _take_off(cloud, uuid, server, home, of_its_own)
    if (
        last
        and last.kind == fields.MigrationType.EVACUATION
        and last.status in _CLEARED_AT_START
    ):
        return f'restart nova-compute there, which clears it; or {remedy}'
    return remedy


def _take_off(
    cloud: snapshot.Snapshot,
    uuid: str,
    server: _Server,
    home: str,
    migrations: Collection[str],
) -> str:
    """Return the commands that remove a server's allocation on one host.

    :param home: UUID of the host where it is
    :param migrations: UUIDs of its own
    """
    holds = cloud.providers.get_consumer(server.uuid).get('allocations', {})
    if home in holds:
        tree = cloud.providers.get_tree(uuid)
        here = ' '.join(f'--provider {one}' for one in holds if one in tree)
        return f'{_UNSET} {here} {server.uuid}'
    at_home = cloud.providers.get_allocations(home)
    instead = sorted(at_home.keys() & {*migrations})
    return '; '.join(
        [
            *[f'openstack server set --state active {server.uuid}']
            * bool(server.task_state),
            *(f'{_DELETE} {consumer}' for consumer in (*instead, server.uuid)),
            f'nova-manage placement heal_allocations --instance {server.uuid}',
        ]
    )


@main_db.pick_context_manager_reader
def _select_settled(
    context: typing.Any, consumers: Collection[str]
) -> list[_Server]:
    """Select the owners of allocations in one cell that nova may be done with.

    :param consumers: UUIDs of servers and migrations
    """
    instance, migration = models.Instance, models.Migration
    since = timeutils.utcnow() - CLEARING
    columns = (
        instance.uuid,
        instance.host,
        instance.node,
        instance.vm_state,
        instance.task_state,
    )
    settled = (
        (instance.deleted == 0)
        & (instance.hidden == sa.false())
        & (instance.vm_state != vm_states.BUILDING)
        & (
            instance.task_state.is_(None)
            | (instance.task_state == task_states.MIGRATING)
        )
        & (_written(instance) <= since)
    )
    own = sa.select(instance.uuid, *columns).where(
        instance.uuid.in_(servers.UUIDS), settled
    )
    of_migration = (
        sa.select(migration.uuid, *columns)
        .join(instance, instance.uuid == migration.instance_uuid)
        .where(
            migration.uuid.in_(servers.UUIDS),
            migration.deleted == 0,
            migration.status.not_in(_ENDED),
            _written(migration) <= since,
            settled,
        )
    )
    return [
        _Server(*row)
        for query in (own, of_migration)
        for row in servers.execute(context.session, query, consumers)
    ]


@main_db.pick_context_manager_reader
def _select_migrations(
    context: typing.Any, uuids: Collection[str]
) -> list[_Migration]:
    """Select the migrations of servers of one cell, the newest last."""
    migration = models.Migration
    query = (
        sa.select(
            migration.uuid,
            migration.instance_uuid,
            migration.migration_type,
            migration.status,
            migration.source_compute,
            migration.dest_compute,
            _written(migration),
        )
        .where(
            migration.instance_uuid.in_(servers.UUIDS), migration.deleted == 0
        )
        .order_by(migration.id)
    )
    rows = servers.execute(context.session, query, uuids)
    return [
        _Migration(uuid, server, kind, status, (source, dest), written)
        for uuid, server, kind, status, source, dest, written in rows
    ]


def _written(model: typing.Any) -> typing.Any:
    return sa.func.coalesce(model.updated_at, model.created_at)
