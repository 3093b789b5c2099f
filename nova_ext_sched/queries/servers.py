# SPDX-License-Identifier: Apache-2.0

"""Where servers stand, and in which cells: the selects.

nova's own instance objects have about eighty columns; the policies need only
the host. To make a statement takes longer than to execute it, so each is made
once for so many UUIDs.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import functools
import typing

from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.policy import memo
from nova_ext_sched.queries import sources

# Databases limit the parameters of one statement; all take this many.
_CHUNK = 1000

# What a statement is made of: parameters, one for each UUID.
_Uuids = list[sa.BindParameter[str]]
_Make = Callable[[_Uuids], sa.Select]

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

# What a server without a host has to do where it does not get one.
_LEAVING = (None, task_states.DELETING, task_states.SOFT_DELETING)

#: Of a server that nova-compute has not claimed yet.
UNCLAIMED: sources.Places = frozenset((None,))


class Mapped(typing.NamedTuple):
    """Where nova looks for a server.

    :ivar cell: the UUID of its cell; None if it has none yet, or has cell0,
        where servers are that found no host
    :ivar is_building: whether conductor has to create it yet
    """

    uuid: str
    cell: str | None
    is_building: bool


def in_chunks(uuids: Collection[str]) -> Iterator[list[str]]:
    """Yield as many as one statement takes, in their order, till all are."""
    wanted = sorted(uuids)
    for start in range(0, len(wanted), _CHUNK):
        yield wanted[start : start + _CHUNK]


def _execute(
    session: typing.Any, make: _Make, uuids: Collection[str]
) -> Iterator[typing.Any]:
    connection = session.connection()
    for chunk in in_chunks(uuids):
        # Few sizes, so that few statements are made.
        size = min(_CHUNK, 1 << (len(chunk) - 1).bit_length())
        statement = _compile(make, connection.dialect, size)
        padded = chunk + chunk[-1:] * (size - len(chunk))
        yield from connection.exec_driver_sql(
            statement.text, statement.fill(padded)
        ).all()


class _Statement(typing.NamedTuple):
    # As the driver takes it. SQLAlchemy writes each list of an IN anew, which
    # takes longer than to execute it.
    text: str
    constants: Mapping[str, typing.Any]
    names: list[str]
    #: The names of all parameters; None if the driver takes them by name.
    order: list[str] | None

    def fill(
        self, uuids: list[str]
    ) -> tuple[typing.Any, ...] | dict[str, typing.Any]:
        values = dict(zip(self.names, uuids, strict=True))
        values.update(self.constants)
        if self.order is None:
            return values
        return tuple([values[name] for name in self.order])


# By the makers, the sizes and the dialects of nova's databases.
@functools.lru_cache(maxsize=128)
def _compile(make: _Make, dialect: sa.Dialect, size: int) -> _Statement:
    uuids = [
        sa.bindparam(f'of_{number}', '', sa.String()) for number in range(size)
    ]
    names = [one.key for one in uuids]
    compiled = make(uuids).compile(
        dialect=dialect, compile_kwargs={'render_postcompile': True}
    )
    constants = dict(compiled.params)
    for name in names:
        del constants[name]
    order = compiled.positiontup if dialect.positional else None
    return _Statement(str(compiled), constants, names, order)


@api_db.context_manager.reader
def select_build_requests(
    context: typing.Any, uuids: Collection[str]
) -> list[str]:
    """Return which of the servers with these UUIDs are yet to be built."""
    rows = _execute(context.session, _build_requests_query, uuids)
    return [uuid for (uuid,) in rows]


def _build_requests_query(uuids: _Uuids) -> sa.Select:
    uuid = api_models.BuildRequest.__table__.c.instance_uuid
    return sa.select(uuid).where(uuid.in_(uuids))


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
            for uuid, cell, request in _execute(session, _cells_query, uuids)
        ]


def _cells_query(uuids: _Uuids) -> sa.Select:
    mapping = api_models.InstanceMapping.__table__
    cell = api_models.CellMapping.__table__
    request = api_models.BuildRequest.__table__
    uuid = mapping.c.instance_uuid
    cell0 = objects.CellMapping.CELL0_UUID
    return (
        sa.select(uuid, cell.c.uuid, request.c.id)
        .select_from(mapping)
        .outerjoin(
            cell, (cell.c.id == mapping.c.cell_id) & (cell.c.uuid != cell0)
        )
        .outerjoin(request, request.c.instance_uuid == uuid)
        .where(uuid.in_(uuids))
    )


@main_db.pick_context_manager_reader
def select_places(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, sources.Places]:
    """Return where servers of one cell stand, by UUID.

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
    for uuid, host, vm_state, task_state, hidden, status, *ends in _execute(
        context.session, _places_query, uuids
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
        on = moves.get(uuid, frozenset())
        if task_state == task_states.RESIZE_REVERTING:
            on |= reverted.get(uuid, frozenset())
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


def _places_query(uuids: _Uuids) -> sa.Select:
    instance = models.Instance.__table__
    migration = models.Migration.__table__
    return (
        sa.select(
            instance.c.uuid,
            instance.c.host,
            instance.c.vm_state,
            instance.c.task_state,
            instance.c.hidden,
            migration.c.status,
            migration.c.source_compute,
            migration.c.dest_compute,
        )
        .select_from(instance)
        .outerjoin(
            migration,
            (migration.c.instance_uuid == instance.c.uuid)
            & (migration.c.deleted == 0)
            & migration.c.status.not_in(ENDED),
        )
        .where(instance.c.uuid.in_(uuids), instance.c.deleted == 0)
        .order_by(migration.c.id)
    )


@main_db.pick_context_manager_reader
def select_compute_hosts(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, str]:
    """Return the hosts of the compute nodes with these UUIDs."""
    rows = _execute(context.session, _compute_hosts_query, uuids)
    return {uuid: host for uuid, host in rows if host}


def _compute_hosts_query(uuids: _Uuids) -> sa.Select:
    node = models.ComputeNode.__table__.c
    return sa.select(node.uuid, node.host).where(
        node.uuid.in_(uuids), node.deleted == 0
    )
