# SPDX-License-Identifier: Apache-2.0

"""Rows of an older nova become those of this one."""

import pathlib
from unittest import mock

import ddt
import fixtures
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa
import testtools

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.saved import migrations

# Before instances had compute_id.
OLDER = '1b91788ec3a6'
UUID = '0b7e0f5a-5b1c-4f0e-9d53-1a2b3c4d5e6f'


@ddt.ddt
class MigrationsTestCase(testtools.TestCase):
    @ddt.data(
        (migrations.CELL, OLDER, True),
        (migrations.CELL, 'cdeec0c85668', False),
        (migrations.API, 'cdeec0c85668', True),
        *((migrations.API, name, False) for name in ('head', '', '../../etc')),
    )
    @ddt.unpack
    def test_revisions(self, database, revision, is_known):
        found = migrations.is_known(database, revision)
        self.assertEqual(is_known, found)

    def test_rows_are_migrated(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        older = migrations.OlderTables(
            folder / 'older', migrations.CELL, OLDER
        )
        self.assertNotIn('compute_id', older.tables['instances'].c)
        older.connection.execute(
            sa.insert(older.tables['instances']).values(
                uuid=UUID, host='Host1', deleted=0
            )
        )
        engine = sa.create_engine(f'sqlite:///{folder / "new"}', future=True)
        table = models.Instance.__table__
        change.create_tables(
            engine, models.BASE.metadata.tables.values(), 'mysql'
        )
        with engine.connect() as connection:
            older.move(connection, [table])
            # It compares as MariaDB does, which alembic knows nothing of.
            query = sa.select(table.c.uuid, table.c.compute_id).where(
                table.c.host == 'hOST1 '
            )
            self.assertEqual([(UUID, None)], connection.execute(query).all())

    def test_online_migrations_run_in_each_cell_to_their_end(self):
        done = []
        steps = iter([(5, 5), (1, 1), (1, 0), (0, 0)])

        def migrate(context, most):
            done.append(str(main_db.get_engine().url))
            return next(steps)

        # Its import would forbid eventlet, which other tests use.
        manage = mock.Mock()
        manage.DbCommands.online_migrations = (migrate,)
        self.patch(migrations, '_import_manage', lambda: manage)
        folder = self.useFixture(fixtures.TempDir()).path
        urls = [f'sqlite:///{folder}/{name}' for name in 'ab']
        cells = [mock.Mock(database_connection=url) for url in urls]
        migrations.migrate_online(mock.sentinel.context, cells)
        self.assertEqual([urls[0]] * 3 + [urls[1]], done)
