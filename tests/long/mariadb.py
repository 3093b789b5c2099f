# SPDX-License-Identifier: Apache-2.0

"""nova's databases of a functional test on MySQL or MariaDB.

nova's own fixtures make them, of SQLite.
"""

import fixtures
import nova.conf
from nova.db import migration
from nova.db.main import api as main_db
from oslo_config import fixture as config_fixture
import sqlalchemy as sa

from tests import databases

CONF = nova.conf.CONF

# The statements that make the tables of a kind of database, by kind.
_made: dict[str, list[str]] = {}


class Mariadb(databases.Database):
    """Let nova's fixtures make their databases there.

    Use before nova's own base class is set up. Skips the test where there is
    no such server.
    """

    def __init__(self):
        super().__init__('mysql')

    def _setUp(self):
        super()._setUp()
        create = main_db.create_context_manager
        config = self.useFixture(config_fixture.Config(CONF))
        config.config(group='api_database', connection=self.url)
        config.config(group='database', connection=self._make())
        for name, value in (
            (
                'nova.db.main.api.create_context_manager',
                lambda connection=None: create(connection or self._make()),
            ),
            (
                'nova.tests.fixtures.CellDatabases._cache_schema',
                lambda one, name: _fill(
                    one._ctxt_mgrs[name].writer.get_engine(), 'main'
                ),
            ),
            (
                'nova.tests.fixtures.Database._apply_schema',
                lambda one: _fill(one.get_engine(), one.database),
            ),
            # nova 31, unlike 34, fills a cell once more, from SQLite's tables.
            (
                'pymysql.connections.Connection.executescript',
                lambda connection, script: None,
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))

    def _make(self):
        return self.useFixture(databases.Database('mysql')).url


def _fill(engine, kind):
    """Make nova's tables, by its own migrations the first time."""
    assert engine.dialect.name == 'mysql', engine
    if kind not in _made:
        migration.db_sync(database=kind)
        with engine.connect() as connection:
            _made[kind] = [*_read(connection)]
        return
    with engine.begin() as connection:
        connection.exec_driver_sql('SET foreign_key_checks = 0')
        for statement in _made[kind]:
            connection.exec_driver_sql(statement)


def _read(connection):
    for table in sa.inspect(connection).get_table_names():
        # Nobody archives rows.
        if not table.startswith('shadow_'):
            shown = connection.exec_driver_sql(f'SHOW CREATE TABLE {table}')
            yield shown.one()[1].replace('%', '%%')
    version = connection.exec_driver_sql(
        'SELECT version_num FROM alembic_version'
    )
    yield f"INSERT INTO alembic_version VALUES ('{version.scalar_one()}')"
