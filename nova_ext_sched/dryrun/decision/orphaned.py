# SPDX-License-Identifier: Apache-2.0

"""Finds allocations on full hosts without a server or migration.

The remedy is to delete them, so one that may still be somebody's counts as
held:

=============================================  ============================
consumer                                       it is
=============================================  ============================
a server of a cell, or one that is being made  held
a migration that has not ended                 held: see :mod:`.stray`
ended or deleted in the last ten minutes       held: nova is about to clear
a migration that ended, and its server stands  held: it may stand for the
on the source                                  server's own
of another service: it has a type, and nova    held
gives its own none
anything else                                  orphaned. Where a cell
                                               is silent, nothing is
=============================================  ============================

nova-compute removes what a deleted server leaves while nova has its row, and
never what a migration leaves. A server in cell0 is on no host and has none.
"""

import collections
import itertools
import typing

from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import stray
from nova_ext_sched.queries import servers

#: The amounts of resource classes that a host lacks, by its UUID.
Lacking = dict[str, dict[str, int]]

# The most hosts whose allocations are read, one by one, and the most consumers
# whose type is read. Allocations of further consumers count as held.
_MOST = 50
_MOST_NAMES = 5
# Each takes a read, and some lines in a record.
_MOST_STRAY = 20

_OTHERS = (
    '. On providers below a host, or shared by hosts, "openstack resource '
    'provider allocation delete" deletes them, with everything else that the '
    'consumer has'
)

# The types that nova's consumers may have. nova itself writes none.
_OF_NOVA = ('unknown', 'INSTANCE', 'MIGRATION')


def find_full(judged: matrix.Matrix) -> Lacking:
    """Return the full hosts, first those that nothing else refuses.

    :param judged: all constraints are in
    """
    lacking: Lacking = {}
    for one, column in zip(judged.constraints, judged.columns, strict=True):
        for uuid in column.refused.keys() & column.free.keys():
            if one.capacity and column.refused[uuid][0].lifts:
                missing = one.capacity.requested - column.free[uuid]
                lacking.setdefault(uuid, {})[one.capacity.resource] = missing
    return {
        uuid: lacking[uuid]
        for _, _, uuid in sorted(
            (
                not judged.causes[uuid] <= missing.keys(),
                judged.names[uuid],
                uuid,
            )
            for uuid, missing in lacking.items()
        )
    }


def find(
    cloud: snapshot.Snapshot, lacking: Lacking
) -> tuple[conclusion.Unheld | None, list[conclusion.Stray]]:
    """Find full hosts with leaked allocations, or of servers elsewhere.

    A request to placement for each of the first fifty, and of the fifty first
    consumers that nova does not know; three selects in each cell.

    :param lacking: the result of :func:`find_full`
    :returns: what the document has of the first (``unheld``), None where
        there are none; and the others. Neither where a cell is silent
    :raises placement.PlacementFailed: placement does not answer
    """
    if not lacking:
        return None, []
    get_type = cloud.providers.get_consumer_type
    # Placement first, nova's tables then: so what nova creates in between is
    # not taken for orphaned.
    asked = list(lacking)[:_MOST]
    read = {uuid: cloud.providers.get_held(uuid) for uuid in asked}
    shared = {uuid: cloud.providers.get_shared(uuid) for uuid in asked}
    consumers = {
        one for found in (*read.values(), *shared.values()) for one in found
    }
    ctxt = nova_context.get_admin_context()
    known = set(servers.select_build_requests(ctxt, consumers))
    known.update(*cloud.ask_cells(_select_held, consumers).values())
    elsewhere = [*itertools.islice(stray.find(cloud, read), _MOST_STRAY)]
    if cloud.silent_cells:
        return None, []
    orphaned = {
        consumer
        for consumer in sorted(consumers - known)[:_MOST]
        if get_type(consumer) in _OF_NOVA
    }
    hosts, others = [], False
    for uuid in asked:
        allocations = shared[uuid] | read[uuid]
        if here := sorted(orphaned.intersection(allocations)):
            sums: collections.Counter[str] = collections.Counter()
            for consumer in here:
                body = allocations[consumer]['allocations']
                others |= body.keys() != {uuid}
                for its in body.values():
                    sums.update(its['resources'])
            freed = all(
                missing <= sums[name]
                for name, missing in lacking[uuid].items()
            )
            host = messages.clean(cloud.nodes[uuid].name)
            hosts.append(conclusion.LeakingHost(host, uuid, freed, here))
    if not hosts:
        return None, elsewhere
    sentence = _say(hosts, len(read), others)
    return conclusion.Unheld(sentence, len(read), hosts), elsewhere


def _say(hosts: list[conclusion.LeakingHost], asked: int, others: bool) -> str:
    have = messages.part(len(hosts), asked, 'full host', 'holds', 'hold')
    names = messages.first_few([one.host for one in hosts], _MOST_NAMES)
    full = [one.host for one in hosts if one.freed]
    alone = messages.first_few(full, _MOST_NAMES) or 'none'
    return (
        f'{have} leaked allocations, of no server or migration: {names}. Full '
        f'only because of them: {len(full)} ({alone}). "nova-manage placement '
        'audit --delete --resource_provider" with the UUID of a host deletes '
        'them there, as long as no server moves; "heal_allocations" then '
        'restores what servers lack' + others * _OTHERS
    )


@main_db.pick_context_manager_reader
def _select_held(context: typing.Any, consumers: set[str]) -> set[str]:
    """Return the consumers that a server or migration of one cell holds."""
    instance, migration = models.Instance, models.Migration
    since = timeutils.utcnow() - stray.CLEARING
    lives = instance.deleted == 0
    standing = sa.select(instance.uuid).where(
        instance.uuid.in_(servers.UUIDS),
        lives | (instance.deleted_at > since),
    )
    migrations = (
        sa.select(migration.uuid)
        .outerjoin(instance, instance.uuid == migration.instance_uuid)
        .where(
            migration.uuid.in_(servers.UUIDS),
            migration.deleted == 0,
            migration.status.not_in(servers.ENDED)
            | (migration.updated_at > since)
            | (lives & (instance.host == migration.source_compute)),
        )
    )
    query = standing.union(migrations)
    rows = servers.execute(context.session, query, consumers)
    return {uuid for (uuid,) in rows}
