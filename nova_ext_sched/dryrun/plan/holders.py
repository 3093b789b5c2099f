# SPDX-License-Identifier: Apache-2.0

"""Finds servers that hold room on hosts but are on others."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import stray
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.queries import servers


class UnderWay(typing.NamedTuple):
    """A migration under way that holds a host.

    :ivar migration: nova's; its server is on another host
    :ivar node: UUID of the compute node that it holds
    :ivar down: the names of those of its hosts that are down
    """

    migration: typing.Any
    node: str
    down: Sequence[str]


class _Ended(typing.NamedTuple):
    """A migration that has ended, and its server.

    :ivar stands_on: the name of a host
    """

    uuid: str
    method: str
    status: str
    server: str
    name: str | None
    project: str
    stands_on: str | None

    def make_stuck(self, host: str) -> plans.Stuck:
        """Describe its server, which holds room on a host that it has left."""
        return plans.Stuck(
            self.server,
            messages.clean(self.name or ''),
            self.project,
            host,
            [],
            reason=f'its {self.method} is {self.status}, and nova has not '
            'freed its room',
            cause=plans.STATE,
            would_help=f'openstack resource provider allocation delete '
            f'{self.uuid}',
        )


class Holders:
    """Finds servers that hold hosts for migrations, and are on others.

    :param nodes: the compute nodes of the hosts, by UUID
    """

    def __init__(
        self, cloud: snapshot.Snapshot, nodes: Mapping[str, snapshot.Node]
    ) -> None:
        self._cloud, self._nodes = cloud, nodes

    def find(
        self,
        under_way: Collection[UnderWay],
        leaving: Collection[plans.Leaving],
    ) -> list[plans.Stuck]:
        """Return these servers, with the command that frees the hosts.

        :param leaving: the servers on the hosts
        """
        migrating = self._list_migrating(under_way) if under_way else ()
        return [*migrating, *self._list_ended(leaving)]

    def _list_ended(
        self, leaving: Collection[plans.Leaving]
    ) -> Iterator[plans.Stuck]:
        """Yield servers that left hosts but still hold room there.

        Where placement is away when a server arrives, nova keeps the
        allocation of its migration for ever. It may also be about to delete
        it.
        """
        standing = {server.server for server in leaving}
        consumers = {
            uuid: self._cloud.providers.get_allocations(uuid).keys() - standing
            for uuid in self._nodes
        }
        asked = set().union(*consumers.values())
        rows = self._cloud.ask_cells(_select_ended, asked) if asked else {}
        ended = {one.uuid: one for found in rows.values() for one in found}
        for uuid, of_node in consumers.items():
            host = self._nodes[uuid].host
            for consumer in sorted(of_node & ended.keys()):
                migration = ended[consumer]
                if migration.stands_on != host:
                    yield migration.make_stuck(host)

    def _list_migrating(
        self, under_way: Collection[UnderWay]
    ) -> Iterator[plans.Stuck]:
        """Yield servers that hold a host for a migration."""
        read = {
            uuid: self._cloud.providers.get_allocations(uuid)
            for _, uuid, _ in under_way
        }
        lost = stray.find_lost(
            self._cloud,
            {migration.instance_uuid for migration, *_ in under_way},
        )
        remedies = {
            (one.server, one.uuid): one.remedy
            for one in stray.find(self._cloud, read)
        }
        for migration, uuid, down in under_way:
            server = migration.instance_uuid
            would_help = _say_what_ends(migration, down)
            if server in lost:
                if read[uuid].keys().isdisjoint((server, migration.uuid)):
                    continue
                would_help = remedies.get((server, uuid), '')
            host = self._nodes[uuid].host
            yield plans.Stuck(
                **vars(plans.make_leaving(migration.instance, host)),
                reason=f'its {migration.migration_type} is {migration.status}',
                cause=plans.STATE,
                would_help=would_help,
            )


def name_own(
    cloud: snapshot.Snapshot, stuck: Iterable[plans.Stuck]
) -> list[plans.Stuck]:
    """Return servers without a place, with the room that they hold elsewhere.

    Where nova lost a live migration, the server itself fills the host that it
    was to go to.

    :raises placement.PlacementFailed: placement does not answer
    """
    return [_name_own(cloud, one) for one in stuck]


def _name_own(cloud: snapshot.Snapshot, stuck: plans.Stuck) -> plans.Stuck:
    is_asked = stuck.cause not in (plans.FAULT, plans.NOT_KNOWN)
    is_asked = is_asked and not stuck.is_left_out
    if stuck.is_refused or stuck.is_never_moved or not is_asked:
        return stuck
    holds = cloud.providers.get_consumer(stuck.server).get('allocations', {})
    away = {
        uuid: {stuck.server: holds[uuid]}
        for uuid in holds.keys() & cloud.nodes.keys()
        if cloud.nodes[uuid].host != stuck.host
    }
    if not away:
        return stuck
    names = messages.first_few(
        sorted({cloud.nodes[uuid].host for uuid in away})
    )
    remedies = dict.fromkeys(found.remedy for found in stray.find(cloud, away))
    return dataclasses.replace(
        stuck,
        reason=f'{stuck.reason}. It holds room on {names} itself',
        would_help='; '.join(remedies) or stuck.would_help,
    )


def _say_what_ends(migration: typing.Any, down: Sequence[str]) -> str:
    """Return the command that ends a migration.

    Where the cell's database is away while nova-compute confirms one, nova-api
    neither confirms nor reverts it any more.

    :param down: the names of those of its hosts that are down
    """
    status, ends = migration.status, 'wait until it has ended'
    if status == 'finished':
        ends = 'confirm or revert it'
    elif status in ('queued', 'preparing', 'running'):
        ends += ', or abort it (openstack server migration abort)'
    elif status == 'confirming' and timeutils.is_older_than(
        migration.updated_at or migration.created_at,
        stray.CLEARING.total_seconds(),
    ):
        host = messages.clean(migration.source_compute)
        ends = admission.say_how_to_end(f'the nova-compute log of {host}')
    if down:
        # Until it runs nothing ends the migration, and nova-api refuses some
        # of these commands.
        ends = f'start nova-compute on {messages.first_few(down)}, then {ends}'
    return ends


@main_db.pick_context_manager_reader
def _select_ended(
    context: typing.Any, consumers: Collection[str]
) -> list[_Ended]:
    """Return the migrations among consumers that have ended, in one cell.

    :param consumers: UUIDs
    """
    instance, migration = models.Instance, models.Migration
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
            migration.uuid.in_(servers.UUIDS),
            migration.deleted == 0,
            migration.status.in_(servers.ENDED),
            instance.deleted == 0,
        )
    )
    rows = servers.execute(context.session, query, consumers)
    return [_Ended(*row) for row in rows]
