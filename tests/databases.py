# SPDX-License-Identifier: Apache-2.0

"""Database servers for tests: SQLite always, others where they answer."""

import functools
import os
import uuid

import fixtures
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
import testtools

#: URLs of an account that may create databases.
SERVERS = {
    'sqlite': 'sqlite://',
    'mysql': os.environ.get(
        'NOVA_EXT_SCHED_TEST_MYSQL', 'mysql+pymysql://root@127.0.0.1/'
    ),
    'postgresql': os.environ.get(
        'NOVA_EXT_SCHED_TEST_POSTGRESQL',
        'postgresql+psycopg2://postgres@127.0.0.1/postgres',
    ),
}
#: Characters of columns in an index of MySQL, as nova's migrations have it;
#: its models do not say it.
LENGTHS = {
    'migrations_by_host_nodes_and_status_idx': dict.fromkeys(
        ('source_compute', 'dest_compute', 'source_node', 'dest_node'), 100
    ),
}


class Database(fixtures.Fixture):
    """An empty database; ``url`` is where it is.

    Skips the test, with the reason, where the server cannot be reached.

    :param backend: a key of ``SERVERS``
    """

    def __init__(self, backend):
        super().__init__()
        self._backend = backend

    @functools.cached_property
    def engine(self):
        """An engine of the database; it keeps no connection to a server."""
        pool = sa.pool.NullPool
        if self._backend == 'sqlite':
            pool = sa.pool.StaticPool
        return sa.create_engine(self.url, poolclass=pool)

    def create(self, metadata, tables=None):
        """Create tables with nova's indices; return an engine."""
        for table in metadata.tables.values():
            for index in table.indexes:
                index.dialect_options['mysql']['length'] = LENGTHS.get(
                    index.name
                )
        engine = self.engine
        metadata.create_all(engine, tables)
        return engine

    def fill(self, source, metadata):
        """Create tables with nova's indices, and copy their rows.

        :param source: the engine of a database that has them
        :param metadata: the sqlalchemy MetaData of the tables
        """
        engine = self.create(metadata)
        with source.connect() as old, engine.begin() as new:
            if self._backend == 'mysql':
                # placement has a resource class of the number 0.
                mode = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"
                new.execute(sa.text(mode))
            there = sa.inspect(old).get_table_names()
            for table in metadata.sorted_tables:
                if table.name not in there:
                    continue
                rows = old.execute(sa.select(table)).mappings().all()
                for start in range(0, len(rows), 1000):
                    values = [dict(row) for row in rows[start : start + 1000]]
                    new.execute(sa.insert(table), values)
            self._number(new, metadata)

    def _number(self, connection, metadata):
        """Let PostgreSQL number new rows after those that were copied."""
        if self._backend != 'postgresql':
            return
        for table in metadata.sorted_tables:
            key = table.autoincrement_column
            if key is None:
                continue
            name = f"pg_get_serial_sequence('{table.name}', '{key.name}')"
            last = f'SELECT COALESCE(MAX({key.name}), 0) + 1 FROM {table.name}'
            connection.execute(
                sa.text(f'SELECT setval({name}, ({last}), false)')
            )

    def setUp(self):
        try:
            super().setUp()
        except fixtures.MultipleExceptions as exc:
            # Beside the reason is a SetupError, and with that a test that
            # has to be skipped would count as failed.
            _kind, reason, _traceback = exc.args[0]
            if isinstance(reason, testtools.TestCase.skipException):
                raise reason from None
            raise

    def _setUp(self):
        url = sa.engine.make_url(SERVERS[self._backend])
        if self._backend != 'sqlite':
            url = self._create(url)
        self.url = url.render_as_string(hide_password=False)

    def replace(self, context_manager):
        """Put the database in the place of one of nova's; return its engine.

        :param context_manager: of nova.db.api.api or nova.db.main.api
        """
        facade = enginefacade.transaction_context()
        facade.configure(connection=self.url)
        engine = facade.writer.get_engine()
        self.addCleanup(engine.dispose)
        self.addCleanup(context_manager.patch_factory(facade))
        return engine

    def _create(self, url):
        name = f'nova_ext_sched_{uuid.uuid4().hex}'
        server = sa.create_engine(url, isolation_level='AUTOCOMMIT')
        self.addCleanup(server.dispose)
        try:
            with server.connect() as connection:
                # As nova's documentation has it; an index of nova's is too
                # long in more.
                more = ' CHARACTER SET utf8mb3' * (self._backend == 'mysql')
                connection.execute(sa.text(f'CREATE DATABASE {name}{more}'))
        except (sa.exc.DBAPIError, ImportError) as exc:
            raise testtools.TestCase.skipException(
                f'no {self._backend} server: {exc}'
            ) from exc
        self.addCleanup(self._drop, server, name)
        return url.set(database=name)

    def _drop(self, server, name):
        with server.connect() as connection:
            connection.execute(sa.text(f'DROP DATABASE {name}'))
