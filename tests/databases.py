# SPDX-License-Identifier: Apache-2.0

"""Database servers for tests: SQLite always, others where they answer."""

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


class Database(fixtures.Fixture):
    """An empty database; ``url`` is where it is.

    Skips the test, with the reason, where the server cannot be reached.

    :param backend: a key of ``SERVERS``
    """

    def __init__(self, backend):
        super().__init__()
        self._backend = backend

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
                connection.execute(sa.text(f'CREATE DATABASE {name}'))
        except (sa.exc.DBAPIError, ImportError) as exc:
            raise testtools.TestCase.skipException(
                f'no {self._backend} server: {exc}'
            ) from exc
        self.addCleanup(self._drop, server, name)
        return url.set(database=name)

    def _drop(self, server, name):
        with server.connect() as connection:
            connection.execute(sa.text(f'DROP DATABASE {name}'))
