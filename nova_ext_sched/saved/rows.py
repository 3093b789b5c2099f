# SPDX-License-Identifier: Apache-2.0

"""Rows of nova's tables, from its databases into a file."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import datetime
import json
import typing

from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.queries import servers
from nova_ext_sched.queries import under_way
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import tables

CONF = nova.conf.CONF

# Rows in one statement.
_PAGE = 1000

# Servers that were deleted so recently are in the file: their allocations may
# be there still, and nobody's else.
_RECENTLY = datetime.timedelta(hours=1)

_WHOLE = (
    'aggregates aggregate_hosts aggregate_metadata flavors '
    'flavor_extra_specs flavor_projects host_mappings instance_groups '
    'instance_group_member instance_group_policy'.split()
)

# Free text of services, which may have a URL with a password.
_FREE = {('instance_faults', 'message'), ('services', 'disabled_reason')}


class Standing(typing.NamedTuple):
    """The host of a server, its states and its migrations."""

    host: str | None
    vm_state: str | None
    task_state: str | None
    moves: frozenset[tuple[str, str]] = frozenset()


class Rows:
    """Reads rows of a cloud, and writes the ones that :mod:`.listed` names.

    :param write: takes what is to be a line of the file
    :param advance: called for each page of rows
    :ivar hosts: the names of the only hosts whose rows are wanted; None for
        all
    :ivar images: the UUIDs of the images of servers and requests
    :ivar volumes: the UUIDs of the volumes that servers boot from
    :ivar consumers: the UUIDs of servers and migrations
    :ivar has_ports: whether a server has a port
    :ivar left_out: number of rows left out because of their key
    """

    def __init__(
        self,
        write: Callable[[container.Record], None],
        advance: Callable[..., None],
        hosts: Collection[str] | None,
    ) -> None:
        self._write, self._advance = write, advance
        self.hosts = hosts
        self.images: set[str] = set()
        self.volumes: set[str] = set()
        self.consumers: set[str] = set()
        self.has_ports = False
        self.left_out = 0

    def write_api(self, context: typing.Any, cells: Collection[int]) -> None:
        """Write nova's API database, without rows of servers."""
        mapped = api_models.HostMapping.__table__.c
        of_hosts = [mapped.cell_id.in_(cells)]
        if self.hosts is not None:
            of_hosts.append(mapped.host.in_(self.hosts))
        with api_db.context_manager.reader.using(context) as session:
            for name in _WHOLE:
                table = tables.get_all('')[name]
                where = of_hosts if name == 'host_mappings' else []
                self._write_table(session, '', table, where)

    def write_api_servers(
        self,
        context: typing.Any,
        cells: Collection[int],
        leaving: Collection[str],
        wanted: Collection[str] | None = None,
    ) -> None:
        """Write the requests and mappings of servers.

        Those of deleted ones, which nova keeps, stay out, but for the last
        mapping of each project: nova knows a project by its servers.

        :param leaving: the result of :func:`find_leaving`
        :param wanted: UUIDs of the only ones
        """
        mapped = api_models.InstanceMapping.__table__
        in_cells = mapped.c.cell_id.is_(None) | mapped.c.cell_id.in_(cells)
        is_living = mapped.c.queued_for_delete.is_not(
            sa.true()
        ) | mapped.c.instance_uuid.in_(leaving)
        last = sa.select(sa.func.max(mapped.c.id)).group_by(
            mapped.c.project_id
        )
        living = sa.select(mapped.c.instance_uuid).where(in_cells, is_living)
        requested = api_models.RequestSpec.__table__.c
        where = {
            'build_requests': [],
            'instance_mappings': [in_cells, is_living | mapped.c.id.in_(last)],
            'request_specs': [requested.instance_uuid.in_(living)],
        }
        with api_db.context_manager.reader.using(context) as session:
            for name in tables.OF_REQUESTS:
                table = tables.get_all('')[name]
                self._write_wanted(session, '', table, where[name], wanted)

    def write_cell(
        self,
        context: typing.Any,
        cell: str,
        wanted: Collection[str] | None = None,
    ) -> dict[str, Standing]:
        """Write one cell's database; return the hosts of its servers.

        :param context: a nova RequestContext of the cell
        :param cell: its UUID
        :param wanted: UUIDs of servers to write once more, with all hosts
        """
        if wanted is not None:
            self._write({'again': {'cell': cell, 'servers': sorted(wanted)}})
        with _read_cell(context) as session:
            return self._write_rows(session, cell, wanted)

    def _write_rows(
        self,
        session: typing.Any,
        cell: str,
        wanted: Collection[str] | None,
    ) -> dict[str, Standing]:
        """Write tables in one transaction, which sees one moment."""
        ours = CONF.nova_ext_sched
        standing = read_standing(session, self.hosts)
        again = wanted is not None
        for name in (
            tables.OF_HOSTS if again else ('services', *tables.OF_HOSTS)
        ):
            self._write_hosts(session, cell, tables.get_all(cell)[name])
        among = {*standing} if wanted is None else {*wanted} & {*standing}
        table = tables.get_all(cell)['instances']
        since = timeutils.utcnow() - _RECENTLY
        if wanted is None:
            recent = sa.select(table.c.uuid).where(
                table.c.deleted != 0, table.c.deleted_at > since
            )
            gone = set(session.scalars(recent))
        else:
            gone = {*wanted} - among
        uuids = among | gone
        where = [(table.c.deleted == 0) | (table.c.deleted_at > since)]
        self._write_wanted(session, cell, table, where, uuids, 'uuid')
        self.consumers |= uuids
        for name in tables.OF_SERVERS:
            table = tables.get_all(cell)[name]
            where = [table.c.deleted == 0] if 'deleted' in table.c else []
            if name == 'instance_metadata':
                # What members write there stays out, but for what counts.
                keys = [ours.left_out_property]
                if 'server' in ours.restart_priority_sources:
                    keys.append(ours.restart_priority_key)
                where.append(table.c.key.in_(filter(None, keys)))
            self._write_wanted(session, cell, table, where, among)
        self._write_migrations(session, cell, uuids)
        self._write_builds(session, cell, among)
        return standing

    def _write_hosts(
        self, session: typing.Any, cell: str, table: typing.Any
    ) -> None:
        where = [table.c.deleted == 0]
        if self.hosts is not None:
            node = models.ComputeNode.__table__.c
            of_hosts = sa.select(node.id).where(node.host.in_(self.hosts))
            where.append(
                table.c.host.in_(self.hosts)
                if 'host' in table.c
                else table.c.compute_node_id.in_(of_hosts)
            )
        self._write_table(session, cell, table, where)

    def _write_migrations(
        self, session: typing.Any, cell: str, uuids: Collection[str]
    ) -> None:
        table = tables.get_all(cell)['migrations']
        where = [table.c.deleted == 0]
        rows = self._write_wanted(session, cell, table, where, uuids)
        self.consumers.update(one for one in rows if one)

    def _write_builds(
        self, session: typing.Any, cell: str, uuids: Collection[str]
    ) -> None:
        """Write how the builds of servers went that never ran.

        nova keeps the actions of all others for years, and nobody asks.
        """
        server = models.Instance.__table__.c
        failed = [
            uuid
            for chunk in servers.in_chunks(uuids)
            for uuid in session.scalars(
                sa.select(server.uuid).where(
                    server.uuid.in_(chunk),
                    server.vm_state == vm_states.ERROR,
                    server.launched_at.is_(None),
                )
            )
        ]
        actions = tables.get_all(cell)['instance_actions']
        self._write_wanted(session, cell, actions, [], failed)
        events = tables.get_all(cell)['instance_actions_events']
        for chunk in servers.in_chunks(failed):
            of_servers = sa.select(actions.c.id).where(
                actions.c.instance_uuid.in_(chunk)
            )
            where = [events.c.action_id.in_(of_servers)]
            self._write_table(session, cell, events, where)

    def _write_wanted(
        self,
        session: typing.Any,
        cell: str,
        table: typing.Any,
        where: list[typing.Any],
        wanted: Collection[str] | None,
        key: str = 'instance_uuid',
    ) -> list[typing.Any]:
        """Write the rows of servers; return the UUIDs that rows have."""
        if wanted is None:
            return self._write_table(session, cell, table, where)
        uuids = []
        for chunk in servers.in_chunks(wanted):
            uuids += self._write_table(
                session, cell, table, [*where, table.c[key].in_(chunk)]
            )
        return uuids

    def _write_table(
        self,
        session: typing.Any,
        cell: str,
        table: typing.Any,
        where: list[typing.Any],
    ) -> list[typing.Any]:
        """Write the rows of a table by pages; return their UUIDs."""
        known = (listed.CELL if cell else listed.API)[table.name].split()
        # An older nova has fewer columns.
        names = [name for name in known if name in table.c]
        last = 0
        uuids: list[typing.Any] = []
        while True:
            query = (
                sa.select(*(table.c[name] for name in names))
                .where(*where, table.c.id > last)
                .order_by(table.c.id)
                .limit(_PAGE)
            )
            rows = session.execute(query).all()
            if rows and not last:
                self._write(
                    {'table': table.name, 'cell': cell, 'columns': names}
                )
            for row in rows:
                self._write_row(table.name, dict(zip(names, row, strict=True)))
                uuids.append(getattr(row, 'uuid', None))
            self._advance()
            if len(rows) < _PAGE:
                return uuids
            last = rows[-1].id

    def _write_row(self, table: str, row: dict[str, typing.Any]) -> None:
        if 'key' in row and not listed.keeps_key(table, row['key']):
            self.left_out += 1
            return
        encoded = {
            name: _encode(table, name, value) for name, value in row.items()
        }
        self._note(table, encoded)
        self._write([*encoded.values()])

    def _note(self, table: str, row: dict[str, typing.Any]) -> None:
        """Collect the images and volumes to ask other services about."""
        if table == 'instances':
            self.images.update(filter(None, [row['image_ref']]))
        elif table == 'request_specs' and row['spec']:
            spec = row['spec'].get(listed.DATA) or {}
            image = (spec.get('image') or {}).get(listed.DATA) or {}
            self.images.update(filter(None, [image.get('id')]))
        elif table == 'instance_info_caches':
            self.has_ports |= bool(row['network_info'])
        elif table == 'block_device_mapping' and row['boot_index'] == 0:
            self.volumes.update(filter(None, [row['volume_id']]))


def _encode(table: str, name: str, value: typing.Any) -> typing.Any:
    """Encode a value of a column for the file."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(' ', 'microseconds')
    if (table, name) in _FREE and value:
        return messages.without_secrets(value)
    form = listed.JSON.get(f'{table}.{name}')
    if form is None or not value:
        return value
    try:
        return listed.prune(form, json.loads(value))
    except (ValueError, RecursionError):
        return tables.NOT_JSON


def _read_cell(context: typing.Any) -> typing.Any:
    """Return the context manager of a session that reads a cell."""
    return main_db.get_context_manager(context).reader.using(context)


def find_standing(
    context: typing.Any, hosts: Collection[str] | None
) -> dict[str, Standing]:
    """Read the present hosts of a cell's servers.

    :param context: a nova RequestContext of the cell
    """
    with _read_cell(context) as session:
        return read_standing(session, hosts)


def find_binary(context: typing.Any, is_cell: bool) -> set[str]:
    """Return the columns of MySQL that heed case, as ``table.column``.

    :param context: a nova RequestContext, of a cell or not
    """
    query = sa.text(
        'SELECT table_name, column_name FROM information_schema.columns '
        "WHERE table_schema = DATABASE() AND collation_name LIKE '%\\_bin'"
    )
    reading = api_db.context_manager.reader.using(context)
    known = listed.API
    if is_cell:
        reading, known = _read_cell(context), listed.CELL
    with reading as session:
        found = session.execute(query).all()
    return {f'{table}.{name}' for table, name in found if table in known}


def read_standing(
    session: typing.Any, hosts: Collection[str] | None
) -> dict[str, Standing]:
    """Read the hosts of servers by UUID, also of those on no host."""
    server = models.Instance.__table__.c
    query = sa.select(
        server.uuid, server.host, server.vm_state, server.task_state
    ).where(server.deleted == 0)
    if hosts is None:
        query = servers.of_living(query)
    else:
        query = query.where(server.host.is_(None) | server.host.in_(hosts))
    standing = {
        uuid: Standing(*rest) for uuid, *rest in session.execute(query)
    }
    for move in under_way.select(session, standing):
        stands = standing[move.server]
        standing[move.server] = stands._replace(
            moves=stands.moves | {(move.uuid, move.status)}
        )
    return standing


def find_leaving(standing: Iterable[Mapping[str, Standing]]) -> list[str]:
    """Return the servers that stand, and that nova's API calls deleted.

    So it does when somebody asks for it: before nova-compute has deleted the
    server, and as long as a soft-deleted one can come back.
    """
    return sorted(
        uuid
        for found in standing
        for uuid, one in found.items()
        if one.vm_state == vm_states.SOFT_DELETED
        or one.task_state in (task_states.DELETING, task_states.SOFT_DELETING)
    )


def find_changed(
    before: dict[str, Standing], now: dict[str, Standing]
) -> set[str]:
    """Return the servers that came, went, or changed meanwhile."""
    return {
        uuid
        for uuid in before.keys() | now.keys()
        if before.get(uuid) != now.get(uuid)
    }
