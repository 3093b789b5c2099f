# SPDX-License-Identifier: Apache-2.0

"""Moves after which hosts are empty."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import functools
import typing

from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import stray
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.queries import servers


def make(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
) -> plans.Plan:
    """Return the moves after which hosts are empty.

    None goes to one of them. A server that holds one for a migration, and
    stands elsewhere, has no place until that has ended.

    :param hosts: names
    :param advance: called after each server
    :param not_to: names of other hosts that get no server
    :raises placement.PlacementFailed: placement does not answer
    """
    found = read(cloud, hosts)
    goal = planner.Goal(
        leaving=found.leaving,
        barred=hosts | not_to,
        never_given_up=policies.Policies(cloud).on,
        to_be_empty=hosts,
        held=found.held,
    )
    places = destinations.Destinations(cloud)
    advance(total=len(found.leaving))
    prepare = functools.partial(departures.prepare, places)
    return planner.plan(places, goal, prepare, advance)


class Servers(typing.NamedTuple):
    """The servers of hosts.

    :ivar leaving: those on them
    :ivar held: those elsewhere, for which a migration holds one, or held one
        that nova does not give back
    """

    leaving: list[plans.Leaving]
    held: list[plans.Stuck]


def read(cloud: snapshot.Snapshot, hosts: Set[str]) -> Servers:
    """Return the servers of hosts.

    :param hosts: names
    """
    nodes = {
        uuid: one for uuid, one in cloud.hosts.items() if one.host in hosts
    }
    found = cloud.ask_cells(_select, sorted(hosts), nodes)
    leaving, under_way = [], []
    for standing, migrations in found.values():
        leaving += standing
        under_way += migrations
    held = _list_held(cloud, under_way) if under_way else []
    return Servers(leaving, [*held, *_list_kept(cloud, nodes, leaving)])


class _Ended(typing.NamedTuple):
    """A migration that has ended, and its server.

    :ivar stands_on: the name of a host
    """

    uuid: str
    kind: str
    status: str
    server: str
    name: str | None
    project: str
    stands_on: str | None


def _list_kept(
    cloud: snapshot.Snapshot,
    nodes: Mapping[str, snapshot.Node],
    leaving: Collection[plans.Leaving],
) -> Iterator[plans.Stuck]:
    """Yield servers that left hosts whose room nova does not give back.

    Where placement is away when a server arrives, nova keeps the allocation
    of its migration for ever. It may also be about to delete it.

    :param nodes: of the hosts, by UUID
    :param leaving: the servers that stand there
    """
    standing = {one.server for one in leaving}
    held = {
        uuid: cloud.providers.get_allocations(uuid).keys() - standing
        for uuid in nodes
    }
    consumers = set().union(*held.values())
    rows = cloud.ask_cells(_select_ended, consumers) if consumers else {}
    ended = {one.uuid: one for found in rows.values() for one in found}
    for uuid, of_host in held.items():
        host = nodes[uuid].host
        for consumer in sorted(of_host & ended.keys()):
            one = ended[consumer]
            if one.stands_on == host:
                continue
            yield plans.Stuck(
                one.server,
                messages.clean(one.name or ''),
                one.project,
                host,
                [],
                reason=f'its {one.kind} is {one.status}, and nova has not '
                'freed its room',
                cause=plans.STATE,
                would_help=f'openstack resource provider allocation delete '
                f'{one.uuid}',
            )


@main_db.pick_context_manager_reader
def _select_ended(
    context: typing.Any, consumers: Collection[str]
) -> list[_Ended]:
    """Return the migrations among consumers that have ended, in one cell.

    :param consumers: UUIDs
    """
    instance, migration = models.Instance, models.Migration
    found: list[_Ended] = []
    for chunk in servers.in_chunks(consumers):
        query = (
            sa.select(
                migration.uuid,
                migration.migration_type,
                migration.status,
                instance.uuid,
                instance.display_name,
                instance.project_id,
                instance.host,
            )
            .join(instance, instance.uuid == migration.instance_uuid)
            .where(
                migration.uuid.in_(chunk),
                migration.deleted == 0,
                migration.status.in_(servers.ENDED),
                instance.deleted == 0,
            )
        )
        found += [_Ended(*row) for row in context.session.execute(query)]
    return found


def _list_held(
    cloud: snapshot.Snapshot,
    migrations: Collection[tuple[typing.Any, str, Sequence[str]]],
) -> list[plans.Stuck]:
    """Return servers that hold a host for a migration, and what would end it.

    :param migrations: nova Migrations that have not ended, the UUIDs of
        compute nodes where their servers do not stand, and which of their
        hosts are down
    """
    held = {
        uuid: cloud.providers.get_allocations(uuid)
        for _, uuid, _ in migrations
    }
    lost = stray.find_lost(
        cloud, {one.instance_uuid for one, *_ in migrations}
    )
    strays = {
        (one.server, one.uuid): one.remedy for one in stray.find(cloud, held)
    }
    found = []
    for one, uuid, down in migrations:
        server = one.instance_uuid
        would_help = 'wait until it has ended'
        if one.status == 'finished':
            would_help = 'confirm or revert it'
        elif one.status in ('queued', 'preparing', 'running'):
            would_help += ', or abort it (openstack server migration abort)'
        if down:
            # Until then nothing ends it, and nova-api refuses some of these.
            names = messages.first_few(down)
            would_help = f'start nova-compute on {names}, then {would_help}'
        if server in lost:
            if held[uuid].keys().isdisjoint((server, one.uuid)):
                continue
            would_help = strays.get((server, uuid), '')
        found.append(
            plans.Stuck(
                **vars(plans.describe(one.instance, cloud.hosts[uuid].host)),
                reason=f'its {one.migration_type} is {one.status}',
                cause=plans.STATE,
                would_help=would_help,
            )
        )
    return found


def find_unread(cloud: snapshot.Snapshot, hosts: Set[str]) -> Set[str]:
    """Return the hosts of which nobody knows what stands there.

    :param hosts: names
    """
    silent = cloud.silent_cells
    nodes = cloud.hosts.values()
    read = {one.host for one in nodes if one.cell_uuid not in silent}
    return hosts - read if silent else frozenset()


def describe(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    plan: plans.Plan,
    unread: Set[str],
) -> Iterator[str]:
    """Yield sentences on hosts that are to be empty.

    :param hosts: names
    :param plan: what :func:`make` returned
    :param unread: what :func:`find_unread` returned
    """
    empty = hosts - unread - {one.host for one in plan.without_place}
    some = messages.part(len(empty), len(hosts), 'host', 'is', 'are')
    if len(hosts) > 1:
        yield f'{some} empty after these moves.'
    elif not unread:
        yield f'The host will {"" if empty else "not "}be empty.'
    yield from describe_unread(unread)
    open_ = {
        messages.clean(state.host)
        for state in cloud.states.values()
        if state.host in hosts and not state.service.get('disabled')
    }
    if open_:
        names = messages.first_few(sorted(open_, key=messages.in_order))
        verb = messages.agree(len(open_), 'is', 'are')
        yield f'{names} {verb} still enabled and can get new servers.'


def describe_unread(unread: Set[str]) -> Iterator[str]:
    """Yield a sentence on hosts of which nobody knows what runs there."""
    if unread:
        names = messages.first_few(sorted(unread, key=messages.in_order))
        yield f'What runs on {names} is not known.'


def _select(
    cctxt: typing.Any,
    hosts: Collection[str],
    nodes: Mapping[str, snapshot.Node],
) -> tuple[list[plans.Leaving], list[tuple[typing.Any, str, Sequence[str]]]]:
    """Return the servers on hosts, and nova Migrations of others.

    :returns: the migrations with the node, and which of their hosts are down
    """
    leaving = [
        plans.describe(one, one.host)
        for host in hosts
        for one in objects.InstanceList.get_by_host(cctxt, host, [])
    ]
    migrations: list[tuple[typing.Any, str, Sequence[str]]] = []
    of = objects.MigrationList.get_in_progress_by_host_and_node
    for uuid, node in nodes.items():
        for one in of(cctxt, node.host, node.node):
            # A server may be gone; else it is loaded from the cell.
            with contextlib.suppress(nova_exception.InstanceNotFound):
                if one.instance.host != node.host:
                    ends = (one.source_compute, one.dest_compute)
                    down = [
                        host
                        for host in dict.fromkeys(filter(None, ends))
                        if not _is_up(cctxt, host)
                    ]
                    migrations.append((one, uuid, down))
    return leaving, migrations


def _is_up(cctxt: typing.Any, host: str) -> bool:
    try:
        service = objects.Service.get_by_compute_host(cctxt, host)
    except nova_exception.ComputeHostNotFound:
        # Of another cell, or without a record.
        return True
    return bool(servicegroup.API().service_is_up(service))
