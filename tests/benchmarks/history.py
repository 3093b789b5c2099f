# SPDX-License-Identifier: Apache-2.0

"""Years of history in nova's databases on MySQL and PostgreSQL.

Rows of living servers are copied inside of the server, as nova leaves them:
deleted servers that nobody archived with all of their rows, migrations that
have ended, of these and of living ones, and actions with their events.
"""

import typing

from nova.db.api import models as api_models
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.queries import servers

#: How a migration ends, by its number.
_ENDS = (*servers.ENDED, servers.REVERTED)
#: Tables with rows of a server that stay, marked as deleted.
_OF_SERVERS = (
    'instance_extra',
    'instance_info_caches',
    'block_device_mapping',
    'instance_system_metadata',
    'instance_faults',
)
#: Those of the API database that stay as they are.
_OF_REQUESTS = ('instance_mappings', 'request_specs', 'instance_group_member')
#: More than there are of anything of one server.
_MOST = 1_000_000
_NUMBERS = sa.table('history_numbers', sa.column('n', sa.Integer))


class History(typing.NamedTuple):
    """How much there is of each living server.

    :ivar deleted: deleted servers
    :ivar moves: ended migrations of the living one; each deleted one has one
    :ivar actions: its actions; each deleted one has two
    """

    deleted: int
    moves: int
    actions: int


def add(api, cell, history):
    """Add the history of every server of a cell; analyze the tables.

    :param api: the engine of the API database; ``cell`` that of the cell's
    """
    for engine in (api, cell):
        _create_numbers(engine, max(history))
    with cell.begin() as connection:
        _add_servers(connection, history.deleted)
        _add_moves(connection, history.moves)
        _add_actions(connection, history.actions)
    with api.begin() as connection:
        _add_requests(connection, history.deleted)
    for engine in (api, cell):
        analyze(engine)


def analyze(engine):
    """Count the rows of all tables, as both servers do by themselves."""
    if engine.dialect.name == 'mysql':
        names = ', '.join(sa.inspect(engine).get_table_names())
        statement = f'ANALYZE TABLE {names}'
    else:
        statement = 'VACUUM ANALYZE'
    connection = engine.connect().execution_options(
        isolation_level='AUTOCOMMIT'
    )
    with connection:
        connection.execute(sa.text(statement))


def _create_numbers(engine, most):
    table = sa.Table(
        _NUMBERS.name,
        sa.MetaData(),
        sa.Column('n', sa.Integer, primary_key=True, autoincrement=False),
    )
    table.drop(engine, checkfirst=True)
    table.create(engine)
    with engine.begin() as connection:
        rows = [{'n': number} for number in range(1, most + 1)]
        connection.execute(sa.insert(table), rows)


def _make_uuid(column, number):
    """Return a UUID of its own for each number."""
    # The first 24 characters of UUIDs differ.
    text = sa.func.lpad(sa.cast(number, sa.String(12)), 12, '0')
    return sa.func.concat(sa.func.substr(column, 1, 24), text)


def _insert(connection, table, query, **changes):
    """Insert the rows of a query on the table, with changes.

    :param query: a Select, whose columns are added here
    """
    names = [one.name for one in table.c if one.name != 'id']
    columns = [changes.get(name, table.c[name]) for name in names]
    connection.execute(
        sa.insert(table).from_select(names, query.add_columns(*columns))
    )


def _pairs(table, most, *where):
    """Return a Select of nothing yet, of each row with each number."""
    return (
        sa.select()
        .select_from(table.join(_NUMBERS, _NUMBERS.c.n <= most))
        .where(*where)
    )


def _add_servers(connection, count):
    instances = models.Instance.__table__
    living = instances.c.deleted == 0
    gone = {
        'deleted': instances.c.id,
        'deleted_at': instances.c.created_at,
        'vm_state': sa.literal('deleted'),
        'power_state': sa.literal(0),
        'host': instances.c.host,
    }
    _insert(
        connection,
        instances,
        _pairs(instances, count, living),
        uuid=_make_uuid(instances.c.uuid, _NUMBERS.c.n),
        **gone,
    )
    for name in _OF_SERVERS:
        table = models.BASE.metadata.tables[name]
        _insert(
            connection,
            table,
            _pairs(table, count, table.c.deleted == 0),
            instance_uuid=_make_uuid(table.c.instance_uuid, _NUMBERS.c.n),
            deleted=table.c.id,
            **{
                one.name: sa.null()
                for one in table.c
                # Long texts would take most of the time.
                if isinstance(one.type, sa.Text) or one.name == 'uuid'
            },
        )


def _add_moves(connection, count):
    migrations, instances = (
        models.Migration.__table__,
        models.Instance.__table__,
    )
    living = instances.c.deleted == 0
    gone = sa.select().select_from(instances).where(~living)
    for number, own, pairs in (
        (_NUMBERS.c.n, _NUMBERS.c.n, _pairs(instances, count, living)),
        # Their IDs are larger than any number.
        (sa.literal(0), _MOST + instances.c.id, gone),
    ):
        ends = sa.case(
            {n: end for n, end in enumerate(_ENDS)},
            value=sa.func.mod(instances.c.id + number, len(_ENDS)),
        )
        values = {
            'created_at': instances.c.created_at,
            # With a time, plans would say how long these moves took.
            'updated_at': sa.null(),
            'deleted': instances.c.deleted,
            'uuid': _make_uuid(instances.c.uuid, own),
            'instance_uuid': instances.c.uuid,
            'source_compute': sa.literal('copy1'),
            'dest_compute': instances.c.host,
            'source_node': sa.literal('copy1'),
            'dest_node': instances.c.host,
            'status': ends,
            'migration_type': sa.literal('live-migration'),
            'hidden': sa.false(),
            'cross_cell_move': sa.false(),
        }
        connection.execute(
            sa.insert(migrations).from_select(
                [*values], pairs.add_columns(*values.values())
            )
        )


def _add_actions(connection, count):
    actions = models.InstanceAction.__table__
    events = models.InstanceActionEvent.__table__
    instances = models.Instance.__table__
    living = instances.c.deleted == 0
    for query in (
        _pairs(instances, count, living),
        _pairs(instances, 2, ~living),
    ):
        values = {
            'created_at': instances.c.created_at,
            'deleted': sa.literal(0),
            'instance_uuid': instances.c.uuid,
            'action': sa.literal('stop'),
            'request_id': sa.func.concat('req-', instances.c.uuid),
            'start_time': instances.c.created_at,
        }
        connection.execute(
            sa.insert(actions).from_select(
                [*values], query.add_columns(*values.values())
            )
        )
    values = {
        'created_at': actions.c.created_at,
        'deleted': sa.literal(0),
        'event': sa.literal('compute_stop_instance'),
        'action_id': actions.c.id,
        'start_time': actions.c.start_time,
        'result': sa.literal('Success'),
    }
    connection.execute(
        sa.insert(events).from_select(
            [*values],
            sa.select(*values.values()).where(actions.c.action == 'stop'),
        )
    )


def _add_requests(connection, count):
    for name in _OF_REQUESTS:
        table = api_models.BASE.metadata.tables[name]
        changes = {
            'instance_uuid': _make_uuid(table.c.instance_uuid, _NUMBERS.c.n)
        }
        if name == 'instance_mappings':
            changes['queued_for_delete'] = sa.true()
        if name == 'request_specs':
            changes['spec'] = sa.literal('{}')
        _insert(connection, table, _pairs(table, count), **changes)
