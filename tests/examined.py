# SPDX-License-Identifier: Apache-2.0

"""The rows that a database server examines, by its own counters."""

import collections
import contextlib
import re
import time

import sqlalchemy as sa

# Values of a statement, and lists of them.
_VALUES = re.compile(r"'(?:[^'\\]|\\.|'')*'|\b\d+(?:\.\d+)?\b")
_LISTS = re.compile(r'\(\?(?:, \?)*\)')
_SETTINGS = {
    'log_output': "'TABLE'",
    'long_query_time': '0',
    'min_examined_row_limit': '0',
    'slow_query_log': '1',
}
# Rows by sequential scans and by index, and entries of each index.
_OF_TABLES = """
SELECT relname, seq_tup_read + COALESCE(idx_tup_fetch, 0)
FROM pg_stat_user_tables
UNION ALL SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes
"""


class Rows(collections.Counter):
    """Rows by database and statement, table or index.

    :ivar longest: seconds of the statement that took longest, and the
        statement; on MySQL alone
    :ivar connections: the most that were open at one time; on MySQL alone
    """

    longest = (0.0, '')
    connections = 0


@contextlib.contextmanager
def count(engines):
    """Count the rows that are examined while the block runs.

    On MySQL the slow log has them by statement, which needs an administrator's
    account; on PostgreSQL the statistics by table and by index. Connections
    that are open already are not counted there.

    :param engines: of the databases, by name, all of one server
    :returns: Rows, which are filled when the block ends
    """
    rows = Rows()
    [kind] = {engine.dialect.name for engine in engines.values()}
    if kind == 'postgresql':
        before = _read_statistics(engines)
        yield rows
        rows.update(_read_statistics(engines))
        rows.subtract(before)
        return
    with next(iter(engines.values())).connect() as connection:
        names = {engine.url.database: name for name, engine in engines.items()}
        with _slow_log(connection):
            connection.execute(sa.text('FLUSH STATUS'))
            yield rows
            # One is this.
            rows.connections = _read_most_connections(connection) - 1
            for statement, name, examined, seconds in _read_slow_log(
                connection, names
            ):
                rows[name, statement] += examined
                rows.longest = max(rows.longest, (seconds, statement))


def find_grown(before, after, slack):
    """Return what examined more rows than before, with both numbers.

    :param slack: rows that may be more, of each
    """
    return {
        key: (before[key], rows)
        for key, rows in after.items()
        if rows > before[key] + slack
    }


def _read_statistics(engines):
    # A session that ends writes its own down, a moment later.
    time.sleep(1)
    found = collections.Counter()
    for name, engine in engines.items():
        with engine.connect() as connection:
            for table, rows in connection.execute(sa.text(_OF_TABLES)):
                found[name, table] = rows
    return found


@contextlib.contextmanager
def _slow_log(connection):
    before = {
        name: connection.execute(sa.text(f'SELECT @@GLOBAL.{name}')).scalar()
        for name in _SETTINGS
    }
    try:
        for name, value in _SETTINGS.items():
            connection.execute(sa.text(f'SET GLOBAL {name} = {value}'))
        connection.execute(sa.text('SET SESSION slow_query_log = 0'))
        connection.execute(sa.text('TRUNCATE mysql.slow_log'))
        yield
    finally:
        for name, value in before.items():
            connection.execute(
                sa.text(f'SET GLOBAL {name} = :value'), {'value': value}
            )


def _read_most_connections(connection):
    found = connection.execute(
        sa.text("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")
    )
    return int(found.one()[1])


def _read_slow_log(connection, names):
    query = sa.text(
        'SELECT db, rows_examined, query_time, sql_text FROM mysql.slow_log'
    )
    for database, examined, taken, statement in connection.execute(query):
        if database in names:
            if isinstance(statement, bytes):
                statement = statement.decode(errors='replace')
            short = _LISTS.sub('(...)', _VALUES.sub('?', statement))
            yield short, names[database], examined, taken.total_seconds()
