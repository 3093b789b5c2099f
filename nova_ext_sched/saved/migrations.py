# SPDX-License-Identifier: Apache-2.0

"""Rows of an older nova, made what they are today by nova's own migrations.

A file says which revision of nova's schema its rows have. Where that is an
older one, they go into tables of that revision, which nova's migrations
change as they would change the database; its online migrations run at the
end.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import os
import pathlib
import re
import typing

from alembic import command
from alembic import script
from alembic import util
from nova import monkey_patch
from nova.db import migration
from nova.db.main import api as main_db
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

_REVISION = re.compile('[0-9a-f]{12}')
# It writes into one database by two connections, which SQLite does not take.
# No file has virtual interfaces.
_LEFT_OUT = 'fill_virtual_interface_list'
# Rows that one step of an online migration takes.
_ROWS = 1000

#: nova's names of its two kinds of databases.
API, CELL = 'api', 'main'


class OlderTables:
    """Tables of a revision.

    :param path: of a database of SQLite that is yet to be
    :param database: :data:`API` or :data:`CELL`
    :ivar tables: by name
    :ivar connection: for their rows
    """

    def __init__(
        self, path: pathlib.Path, database: str, revision: str
    ) -> None:
        self._path, self._database = path, database
        self._engine = sa.create_engine(f'sqlite:///{path}', future=True)
        self._upgrade(revision)
        metadata = sa.MetaData()
        metadata.reflect(self._engine)
        self.tables: Mapping[str, sa.Table] = metadata.tables
        self.connection = self._engine.connect()

    def move(
        self, connection: sa.engine.Connection, tables: Iterable[sa.Table]
    ) -> None:
        """Migrate the rows, and insert them where tables are today's.

        :param connection: of SQLite; it is committed
        :param tables: those that have rows
        """
        self.connection.commit()
        self.connection.close()
        self._upgrade('head')
        connection.commit()
        connection.exec_driver_sql(
            'ATTACH DATABASE ? AS older', (str(self._path),)
        )
        for table in tables:
            columns = ', '.join(f'"{column.name}"' for column in table.columns)
            connection.exec_driver_sql(
                f'INSERT INTO main.{table.name} ({columns}) '
                f'SELECT {columns} FROM older.{table.name}'
            )
        connection.commit()
        connection.exec_driver_sql('DETACH DATABASE older')
        self._engine.dispose()

    def _upgrade(self, revision: str) -> None:
        config = migration._find_alembic_conf(self._database)
        with self._engine.begin() as connection:
            config.attributes['connection'] = connection
            command.upgrade(config, revision)


def is_known(database: str, revision: str) -> bool:
    """Return whether this nova has a revision of a database."""
    if not _REVISION.fullmatch(revision):
        return False
    try:
        return _read_revisions(database).get_revision(revision) is not None
    except util.CommandError:
        return False


def is_current(database: str, revision: str) -> bool:
    """Return whether a revision is the last that this nova has."""
    return bool(revision == _read_revisions(database).get_current_head())


def _read_revisions(database: str) -> script.ScriptDirectory:
    config = migration._find_alembic_conf(database)
    return script.ScriptDirectory.from_config(config)


def _import_manage() -> typing.Any:
    # It would let eventlet patch a process whose threads have begun; nova 31
    # has done that on import.
    is_patched = getattr(monkey_patch, 'is_patched', lambda: True)
    if not is_patched():
        os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'yes')
    from nova.cmd import manage

    return manage


def migrate_online(context: typing.Any, cells: Iterable[typing.Any]) -> None:
    """Run nova's online migrations in each cell until all is done.

    :param context: a nova RequestContext
    :param cells: nova CellMapping objects
    """
    manage = _import_manage()
    for mapping in cells:
        # As nova-manage runs: [database] connection is that of the cell.
        cell = enginefacade.transaction_context()
        cell.configure(connection=mapping.database_connection)
        put_back = main_db.context_manager.patch_factory(cell)
        try:
            for migrate in manage.DbCommands.online_migrations:
                if migrate.__name__ == _LEFT_OUT:
                    continue
                # How many rows there were, and how many it has changed.
                while migrate(context, _ROWS)[1]:
                    pass
        finally:
            put_back()
