# SPDX-License-Identifier: Apache-2.0

"""Rows of a file, into nova's tables."""

from collections.abc import Callable
from collections.abc import Collection
import datetime
import json
import typing

from nova.db.api import models as api_models
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.saved import listed

#: What stands in a file for a text that should be JSON, and what becomes of
#: it.
NOT_JSON = False
_BROKEN = 'not JSON'

# Rows that are inserted at once.
_PAGE = 500

_LARGEST = 2**63

#: Tables whose rows belong to servers, of a cell and of the API.
OF_SERVERS = (
    'instance_extra',
    'instance_info_caches',
    'instance_metadata',
    'instance_system_metadata',
    'block_device_mapping',
    'instance_faults',
    'share_mapping',
)
OF_REQUESTS = ('build_requests', 'instance_mappings', 'request_specs')
#: Small tables that change with servers.
OF_HOSTS = ('compute_nodes', 'pci_devices')


def get_all(cell: str) -> typing.Any:
    """Return nova's tables of a cell or, without one, of its API database."""
    base = models.BASE if cell else api_models.BASE
    return base.metadata.tables


def select(
    connection: sa.engine.Connection, table: sa.Table, *where: typing.Any
) -> list[dict[str, typing.Any]]:
    """Return the rows of a table, in their order."""
    query = sa.select(table).where(*where).order_by(table.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


class Filler:
    """Fills one table.

    :param connection: of SQLite
    :param table: one of nova's
    :param known: the columns that :mod:`.listed` names
    :param names: the columns that the rows have
    :raises ValueError: one is not known
    """

    def __init__(
        self,
        connection: sa.engine.Connection,
        table: sa.Table,
        known: Collection[str],
        names: typing.Any,
    ) -> None:
        if not {*names} <= {*known} or len({*names}) != len(names):
            raise ValueError(f'columns {names} of {table.name}')
        # An older nova has fewer.
        self._checks = [
            _make_check(table, table.c[name]) if name in table.c else None
            for name in names
        ]
        kept = [name for name in names if name in table.c]
        filled = listed.FILLED.get(table.name, {})
        self._filled = tuple(filled.values())
        kept += filled
        columns = ', '.join(f'"{name}"' for name in kept)
        marks = ', '.join('?' * len(kept))
        self._statement = (
            f'INSERT INTO {table.name} ({columns}) VALUES ({marks})'
        )
        self._connection = connection
        self._rows: list[tuple[typing.Any, ...]] = []

    def add(self, row: list[typing.Any]) -> None:
        """Insert a row.

        :raises ValueError: it is not of the table's form
        """
        self._rows.append(
            tuple(
                check(value)
                for check, value in zip(self._checks, row, strict=True)
                if check is not None
            )
            + self._filled
        )
        if len(self._rows) >= _PAGE:
            self.flush()

    def flush(self) -> None:
        """Insert the rows that were added.

        :raises sa.exc.IntegrityError: a row is there, or lacks something
        """
        if self._rows:
            self._connection.exec_driver_sql(self._statement, self._rows)
            self._rows = []


def forget(
    connection: sa.engine.Connection, is_cell: bool, servers: typing.Any
) -> None:
    """Delete rows that are written again: those of servers and hosts.

    :param servers: UUIDs
    """
    uuids = [(str(uuid),) for uuid in servers]

    def delete(table: str, where: str) -> None:
        statement = f'DELETE FROM {table} WHERE {where}'
        connection.exec_driver_sql(statement, uuids)

    if not uuids:
        return
    if not is_cell:
        for table in OF_REQUESTS:
            delete(table, 'instance_uuid = ?')
        return
    delete(
        'instance_actions_events',
        'action_id IN (SELECT id FROM instance_actions WHERE '
        'instance_uuid = ?)',
    )
    for table in (*OF_SERVERS, 'instance_actions', 'migrations'):
        delete(table, 'instance_uuid = ?')
    delete('instances', 'uuid = ?')
    for table in OF_HOSTS:
        connection.exec_driver_sql(f'DELETE FROM {table}')


def _make_check(
    table: sa.Table, column: sa.Column[typing.Any]
) -> Callable[[typing.Any], typing.Any]:
    """Return a function that checks and converts a value for a column."""
    form = listed.JSON.get(f'{table.name}.{column.name}')
    if form is not None:
        return lambda value: _write_json(form, value)
    # oslo.db's type of "deleted" decorates another.
    kind = getattr(column.type, 'impl', column.type)
    checks = [
        check for type_, check in _CHECKS.items() if isinstance(kind, type_)
    ]

    def check_value(value: typing.Any) -> typing.Any:
        try:
            return None if value is None else checks[0](value)
        except ValueError as exc:
            raise ValueError(f'{table.name}.{column.name}: {exc}') from exc

    return check_value


def _write_json(form: typing.Any, value: typing.Any) -> str | None:
    if value is None:
        return None
    if value == '':
        return ''
    if value is NOT_JSON:
        return _BROKEN
    return json.dumps(listed.prune(form, value))


def _check_text(value: typing.Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f'a text, got {type(value).__name__}')
    # A lone surrogate has no UTF-8.
    value.encode()
    return value


def _check_time(value: typing.Any) -> str:
    found = datetime.datetime.fromisoformat(_check_text(value))
    if found.tzinfo:
        raise ValueError(f'a time in UTC, got {value!r}')
    # As SQLAlchemy writes it: SQLite compares texts.
    return found.isoformat(' ', 'microseconds')


def _check_integer(value: typing.Any) -> int:
    if type(value) not in (int, bool) or abs(value) >= _LARGEST:
        raise ValueError(f'a number, got {str(value)[:20]}')
    return int(value)


def _check_number(value: typing.Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f'a number, got {str(value)[:20]}')
    return float(value)


# By the type of the column; the first that fits.
_CHECKS: dict[typing.Any, Callable[[typing.Any], typing.Any]] = {
    sa.Boolean: _check_integer,
    sa.Integer: _check_integer,
    sa.Float: _check_number,
    sa.DateTime: _check_time,
    sa.String: _check_text,
}
