# SPDX-License-Identifier: Apache-2.0

"""Selects the hosts and cells of servers.

nova's own instance objects have about eighty columns; the policies need only
the host. Each statement is made once: SQLAlchemy keeps what it compiles.
"""

from collections.abc import Collection
from collections.abc import Iterator
import typing

from nova.compute import task_states
from nova.compute import vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.objects import cell_mapping
import sqlalchemy as sa

from nova_ext_sched.policy import failover
from nova_ext_sched.policy import memo
from nova_ext_sched.queries import sources

# Databases limit the parameters of one statement; all take this many.
_CHUNK = 1000

#: The UUIDs that a statement is about, for :func:`execute`.
UUIDS: typing.Any = sa.bindparam('uuids', expanding=True)

#: The statuses of a migration that nova counts as ended
#: (nova.db.main.api.migration_get_in_progress_by_host_and_node), besides that
#: of a reverted one.
ENDED = (
    'confirmed',
    'error',
    'failed',
    'completed',
    'cancelled',
    'done',
)
REVERTED = 'reverted'

# nova's first migration makes it (8f2f1571d55b_initial_version).
_BY_LIVING = 'FORCE INDEX (instances_deleted_created_at_idx)'

# What a server without a host has to do where it does not get one.
_LEAVING = (None, task_states.DELETING, task_states.SOFT_DELETING)

#: Of a server that nova-compute has not claimed yet.
UNCLAIMED: sources.Places = frozenset((None,))


class Mapped(typing.NamedTuple):
    """The cell that nova has mapped a server to, or none yet.

    :ivar cell: the UUID of its cell; None if it has none yet, or has cell0,
        where servers are that found no host
    :ivar is_building: whether conductor has to create it yet
    """

    uuid: str
    cell: str | None
    is_building: bool


def in_chunks(
    uuids: Collection[str], most: int = _CHUNK
) -> Iterator[list[str]]:
    """Yield the items in chunks of as many as one statement takes."""
    wanted = sorted(uuids)
    for start in range(0, len(wanted), most):
        yield wanted[start : start + most]


def execute(
    session: typing.Any,
    statement: sa.sql.expression.SelectBase,
    uuids: Collection[str],
    most: int = _CHUNK,
) -> Iterator[typing.Any]:
    """Yield the rows of a statement about :data:`UUIDS`, chunk by chunk.

    :param most: UUIDs of a chunk
    """
    connection = session.connection()
    for chunk in in_chunks(uuids, most):
        yield from connection.execute(statement, {'uuids': chunk}).all()


def of_living(query: sa.sql.Select) -> sa.sql.Select:
    """Name to MySQL nova's index by which it finds all servers that live.

    By its estimates it would read the whole table or an index of hosts, with
    all servers that were deleted and never archived. For commands alone: where
    nothing was deleted it takes three times as long, and it fails where that
    index is gone, which no request of nova-scheduler should.

    :param query: one that selects rows of instances with ``deleted`` 0
    """
    for dialect in ('mysql', 'mariadb'):
        query = query.with_hint(models.Instance.__table__, _BY_LIVING, dialect)
    return query


_build_request = api_models.BuildRequest.__table__.c
_BUILD_REQUESTS = sa.select(_build_request.instance_uuid).where(
    _build_request.instance_uuid.in_(UUIDS)
)


@api_db.context_manager.reader
def select_build_requests(
    context: typing.Any, uuids: Collection[str]
) -> list[str]:
    """Return the UUIDs of servers that are yet to be built."""
    rows = execute(context.session, _BUILD_REQUESTS, uuids)
    return [uuid for (uuid,) in rows]


_mapping = api_models.InstanceMapping.__table__.c
_cell = api_models.CellMapping.__table__.c
_CELLS = (
    sa.select(_mapping.instance_uuid, _cell.uuid, _build_request.id)
    .select_from(api_models.InstanceMapping.__table__)
    .outerjoin(
        api_models.CellMapping.__table__,
        (_cell.id == _mapping.cell_id)
        & (_cell.uuid != cell_mapping.CellMapping.CELL0_UUID),
    )
    .outerjoin(
        api_models.BuildRequest.__table__,
        _build_request.instance_uuid == _mapping.instance_uuid,
    )
    .where(_mapping.instance_uuid.in_(UUIDS))
)


def select_cells(context: typing.Any, uuids: Collection[str]) -> list[Mapped]:
    """Return the cells of the servers with these UUIDs.

    conductor writes the cell before it deletes the build request, and this is
    one statement: a server that is in neither is gone. So is one that is not
    in the result.
    """
    if not uuids:
        return []
    with api_db.context_manager.reader.using(context) as session:
        return [
            Mapped(uuid, cell, request is not None)
            for uuid, cell, request in execute(session, _CELLS, uuids)
        ]


_instance = models.Instance.__table__.c
_migration = models.Migration.__table__.c
_PLACES = (
    sa.select(
        _instance.uuid,
        _instance.host,
        _instance.vm_state,
        _instance.task_state,
        _instance.hidden,
        _migration.status,
        _migration.source_compute,
        _migration.dest_compute,
    )
    .select_from(models.Instance.__table__)
    .outerjoin(
        models.Migration.__table__,
        (_migration.instance_uuid == _instance.uuid)
        & (_migration.deleted == 0)
        & _migration.status.not_in(ENDED)
        # A server may have thousands that were reverted long ago.
        & (
            (_migration.status != REVERTED)
            | (_instance.task_state == task_states.RESIZE_REVERTING)
        ),
    )
    .where(_instance.uuid.in_(UUIDS), _instance.deleted == 0)
    # Of those that were reverted the newest one counts.
    .order_by(_migration.id)
)


@main_db.pick_context_manager_reader
def select_places(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, sources.Places]:
    """Return the hosts of servers of one cell, by UUID.

    What nova 31 to 34 write while a server has no host, or is about to change
    it:

    ==================================  =====================================
    instance and its migrations         places
    ==================================  =====================================
    a host                              it
    no host: ``building``               None: conductor or nova-compute works
                                        on it, or tries the next host
    no host, in error, any task         not in the result: it failed, and an
                                        unshelving that did keeps its task
    no host, a task (``unshelving``;    None. nova-compute says ``spawning``
    ``spawning``)                       long before it claims an unshelved
                                        server, while it attaches volumes
    no host, a task that deletes        nothing
    no host, no task                    nothing: it is shelved
    a migration that has not ended      its ends too: a move, a resize, an
                                        evacuation; None where conductor has
                                        no destination yet
    ``resize_reverting``, and the       its ends too: the destination ends
    newest migration is reverted        the migration before the source has
                                        the server back
    hidden (the other copy of a resize  the ends of such migrations. With
    to another cell)                    none, not in the result
    deleted                             not in the result
    ==================================  =====================================

    One statement, because nova writes the new host of a server and then ends
    its migration: of two, the second could miss a move that ends meanwhile.
    """
    moves: dict[str, sources.Places] = {}
    reverted: dict[str, sources.Places] = {}
    servers = {}
    places: dict[str, sources.Places] = {}
    on_host = memo.Memo(lambda host: frozenset((host,)))
    for uuid, host, vm_state, task_state, hidden, status, *ends in execute(
        context.session, _PLACES, uuids
    ):
        if host and not hidden and not status:
            # Most just stand there, many on one host.
            places[uuid] = on_host[host]
            continue
        servers[uuid] = host, vm_state, task_state, hidden
        if status == REVERTED:
            # The newest one is the last.
            reverted[uuid] = frozenset(ends)
        elif status:
            moves[uuid] = moves.get(uuid, frozenset()).union(ends)
    for uuid, (host, vm_state, task_state, hidden) in servers.items():
        on = moves.get(uuid, frozenset()) | reverted.get(uuid, frozenset())
        failed = vm_state == vm_states.ERROR
        if hidden:
            pass
        elif host:
            on |= {host}
        elif vm_state == vm_states.BUILDING or not (
            failed or task_state in _LEAVING
        ):
            on |= UNCLAIMED
        if on or not (hidden or failed):
            places[uuid] = on
    return places


_later = models.Migration.__table__.alias()
_service = models.Service.__table__.c
_MOVES = (
    sa.select(
        _instance.uuid,
        _instance.task_state,
        _migration.migration_type,
        _migration.status,
        _migration.source_compute,
        _migration.dest_compute,
        sa.exists(
            sa.select(_service.id).where(
                _service.host == _migration.source_compute,
                _service.binary == 'nova-compute',
                _service.deleted == 0,
            )
        ),
        _migration.created_at,
        _instance.created_at,
    )
    .select_from(models.Instance.__table__)
    .outerjoin(
        models.Migration.__table__,
        _migration.id
        == sa.select(sa.func.max(_later.c.id))
        .where(_later.c.instance_uuid == _instance.uuid, _later.c.deleted == 0)
        .scalar_subquery(),
    )
    .where(_instance.uuid.in_(UUIDS), _instance.deleted == 0)
)


@main_db.pick_context_manager_reader
def select_moves(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, failover.Move]:
    """Return the task and the newest migration, if any, of a cell's servers.

    One statement, because nova ends a task and its migration one after the
    other.
    """
    return {
        uuid: failover.Move(*row)
        for uuid, *row in execute(context.session, _MOVES, uuids)
    }


_node = models.ComputeNode.__table__.c
_COMPUTE_HOSTS = sa.select(_node.uuid, _node.host).where(
    _node.uuid.in_(UUIDS), _node.deleted == 0
)


@main_db.pick_context_manager_reader
def select_compute_hosts(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, str]:
    """Return the hosts of the compute nodes with these UUIDs."""
    rows = execute(context.session, _COMPUTE_HOSTS, uuids)
    return {uuid: host for uuid, host in rows if host}
