# SPDX-License-Identifier: Apache-2.0

import datetime
import types

import ddt
from nova import context
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.plan import durations
from tests import databases
from tests.unit.cmd import plan_cases

NOW = datetime.datetime(2026, 11, 1)


@ddt.ddt
class DurationsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database('sqlite'))
        self.engine = database.replace(main_db.context_manager)
        models.BASE.metadata.create_all(
            self.engine, tables=[models.Migration.__table__]
        )

    def store(self, kind, *seconds, status=None, **values):
        """Store migrations that took so long, the oldest first."""
        status = status or {'migration': 'confirmed'}.get(kind, 'completed')
        with orm.Session(self.engine) as session, session.begin():
            for one in seconds:
                row = models.Migration(
                    migration_type=kind,
                    status=status,
                    created_at=NOW,
                    updated_at=NOW + datetime.timedelta(seconds=one),
                    **values,
                )
                session.add(row)
                session.flush()

    def estimate(self, *methods):
        ctxt = context.get_admin_context()
        return durations.estimate(
            types.SimpleNamespace(
                ask_cells=lambda select: {'a': select(ctxt), 'b': []}
            ),
            [plan_cases.make_move(n, how) for n, how in enumerate(methods)],
        )

    def test_by_the_median_of_each_kind(self):
        self.store('live-migration', 10, 20, 9000)
        self.store('migration', 100)
        self.assertEqual(20, self.estimate('live'))
        self.assertEqual(140, self.estimate('live', 'cold', 'live'))

    @ddt.data(
        ('migration', {}),
        ('live-migration', {'status': 'error'}),
        ('live-migration', {'status': 'running'}),
        ('resize', {'status': 'confirmed'}),
        # Those of servers that are deleted.
        ('live-migration', {'deleted': 1}),
    )
    @ddt.unpack
    def test_what_tells_nothing_of_a_live_one(self, kind, values):
        self.store(kind, 10, **values)
        self.assertIsNone(self.estimate('live'))

    def test_of_no_moves(self):
        self.store('live-migration', 10)
        self.assertIsNone(self.estimate())

    def test_of_evacuations_no_cell_is_asked(self):
        cloud = types.SimpleNamespace(ask_cells=self.fail)
        moves = [plan_cases.make_move(1, 'evacuate')]
        self.assertIsNone(durations.estimate(cloud, moves))

    def test_the_last_200(self):
        self.store('live-migration', *[1] * 300, *[7] * 101, *[9] * 99)
        self.assertEqual(7, self.estimate('live'))

    def test_by_the_primary_key(self):
        asked = []
        sa.event.listen(
            self.engine,
            'before_cursor_execute',
            lambda *args: asked.append(args[2:4]),
        )
        self.estimate('live')
        [(statement, parameters)] = [
            one for one in asked if 'migrations' in one[0]
        ]
        with self.engine.connect() as connection:
            plan = connection.exec_driver_sql(
                f'EXPLAIN QUERY PLAN {statement}', parameters
            )
            self.assertEqual(
                'SEARCH migrations USING INTEGER PRIMARY KEY (rowid>?)',
                [one.detail for one in plan][0],
            )
