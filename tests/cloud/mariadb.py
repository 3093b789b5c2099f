# SPDX-License-Identifier: Apache-2.0

"""A MariaDB server of the cloud's own.

Its account is ``root`` without a password, from the loopback address only.
"""

import contextlib
import getpass
import os
import shutil

import sqlalchemy as sa

from tests.cloud import processes
from tests.cloud import service


class MariaDB(service.Service):
    """The server; needs the programs of Debian's mariadb-server."""

    name = 'mariadb'
    machine_programs = (
        'mariadb',
        'mariadb-dump',
        'mariadb-install-db',
        'mariadbd',
    )

    def start(self):
        # mariadbd does not run as root unless it is told so.
        self._user = f'--user={getpass.getuser()}'
        self._data = self.folder / 'data'
        self._data.mkdir()
        self.cloud.processes.run(
            [
                self.cloud.system_program('mariadb-install-db'),
                '--no-defaults',
                self._user,
                f'--datadir={self._data}',
                # In /tmp two servers take each other's temporary tables.
                f'--tmpdir={self.folder}',
                '--auth-root-authentication-method=normal',
                '--skip-test-db',
                '--innodb-log-file-size=16M',
            ]
        )
        self.port = processes.free_port()
        self.run()

    def run(self):
        """Start the server on its data and port."""
        self.process = self.cloud.processes.start(
            'mariadb',
            [
                self.cloud.system_program('mariadbd'),
                '--no-defaults',
                self._user,
                f'--datadir={self._data}',
                f'--tmpdir={self.folder}',
                '--bind-address=127.0.0.1',
                f'--port={self.port}',
                # In the folder of the data: the path of a socket is short.
                '--socket=socket',
                '--pid-file=pid',
                '--max-connections=2000',
                '--skip-name-resolve',
                '--innodb-log-file-size=16M',
                # What a test wrote need not survive the machine.
                '--innodb-flush-log-at-trx-commit=0',
            ],
            port=self.port,
        )
        self.cloud.processes.wait(
            lambda: processes.listens(self.port), 'mariadb'
        )

    def execute(self, *statements):
        """Run statements as the server's administrator."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    def count(self, table):
        """Return the number of rows of a table, DATABASE.TABLE."""
        with self.connect() as connection:
            return connection.execute(
                sa.text(f'SELECT COUNT(*) FROM {table}')
            ).scalar()

    @contextlib.contextmanager
    def connect(self):
        """Connect as the server's administrator, for a while."""
        engine = sa.create_engine(
            f'mysql+pymysql://root@127.0.0.1:{self.port}/',
            isolation_level='AUTOCOMMIT',
        )
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def dump(self, name, path):
        """Write a database to a file of SQL."""
        written = self.folder / f'{name}.sql'
        self.cloud.processes.run(
            [
                *self._client('mariadb-dump'),
                f'--result-file={written}',
                name,
            ]
        )
        # Whole or not at all.
        os.replace(shutil.copy(written, f'{path}.new'), path)

    def load(self, name, path):
        """Run a file of SQL in a database."""
        self.cloud.processes.run(
            [*self._client('mariadb'), '-e', f'source {path}', name]
        )

    def _client(self, program):
        return [
            self.cloud.system_program(program),
            '--no-defaults',
            '--user=root',
            '--host=127.0.0.1',
            f'--port={self.port}',
        ]

    def create(self, name):
        """Create a database and an account of its name; return its URL."""
        self.execute(
            f'CREATE DATABASE {name} CHARACTER SET utf8mb3',
            f"CREATE USER {name}@'127.0.0.1'",
            f"GRANT ALL ON {name}.* TO {name}@'127.0.0.1'",
        )
        return f'mysql+pymysql://{name}@127.0.0.1:{self.port}/{name}'

    def create_reader(self, name, *databases):
        """Create an account that only reads; return its URLs by database."""
        self.execute(
            f"CREATE USER {name}@'127.0.0.1'",
            *(
                f"GRANT SELECT ON {database}.* TO {name}@'127.0.0.1'"
                for database in databases
            ),
        )
        return {
            database: f'mysql+pymysql://{name}@127.0.0.1:{self.port}/{database}'
            for database in databases
        }

    @contextlib.contextmanager
    def cut(self, name):
        """Take a database from those who use it, for a while."""
        self.execute(
            f"ALTER USER {name}@'127.0.0.1' ACCOUNT LOCK",
            f'KILL CONNECTION USER {name}',
        )
        try:
            yield
        finally:
            self.execute(f"ALTER USER {name}@'127.0.0.1' ACCOUNT UNLOCK")
