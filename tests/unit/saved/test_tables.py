# SPDX-License-Identifier: Apache-2.0

"""Rows go by column, each value of the column's type."""

import ddt
from nova.db.api import models as api_models
from nova.db.main import models
import sqlalchemy as sa
import testtools

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.saved import tables

COLUMNS = ('id', 'uuid', 'host', 'deleted', 'created_at', 'hidden')


class TablesTestCase(testtools.TestCase):
    dialect = 'sqlite'

    def setUp(self):
        super().setUp()
        self.cell = self.connect(models.BASE)
        self.api = self.connect(api_models.BASE)

    def connect(self, base):
        engine = sa.create_engine('sqlite://', poolclass=sa.pool.StaticPool)
        self.addCleanup(engine.dispose)
        wanted = base.metadata.tables.values()
        change.create_tables(engine, wanted, self.dialect)
        connection = engine.connect()
        self.addCleanup(connection.close)
        return connection

    def fill(self, model, columns, *rows):
        table = model.__table__
        is_api = table.metadata is api_models.BASE.metadata
        filler = tables.Filler(
            self.api if is_api else self.cell,
            table,
            table.c.keys(),
            [*columns],
        )
        for row in rows:
            filler.add([*row])
        filler.flush()

    def select(self, query, connection=None):
        return (connection or self.cell).exec_driver_sql(query).all()


@ddt.ddt
class FillerTestCase(TablesTestCase):
    def test_rows(self):
        rows = [
            (n, f'u{n}', None, 0, '2026-01-02 03:04:05', False)
            for n in range(1, 1200)
        ]
        self.fill(models.Instance, COLUMNS, *rows)
        found = self.select(
            f'SELECT {", ".join(COLUMNS)} FROM instances ORDER BY id'
        )
        self.assertEqual(
            [(*row[:4], '2026-01-02 03:04:05.000000', 0) for row in rows],
            found,
        )

    @ddt.data(
        ('id', '1'),
        ('id', 2**63),
        ('id', 1.5),
        ('uuid', 7),
        ('uuid', '\ud800'),
        ('uuid', ['a']),
        ('deleted', 'x'),
        ('created_at', 'yesterday'),
        ('created_at', '2026-01-02T03:04:05+01:00'),
        ('hidden', 'yes'),
    )
    @ddt.unpack
    def test_values_of_other_types(self, column, value):
        exc = self.assertRaises(
            ValueError, self.fill, models.Instance, [column], [value]
        )
        self.assertIn(f'instances.{column}', str(exc))

    @ddt.data(
        ['id', 'no_such_column'],
        ['id', 'id'],
        ['id", "uuid'],
        [['id']],
        [7],
    )
    def test_columns_that_are_none(self, columns):
        self.assertRaises(
            (ValueError, TypeError), self.fill, models.Instance, columns
        )

    def test_columns_that_are_filled(self):
        """They stay out of the file, and nova's object needs a value."""
        row = (1, 'u', 's', 'x', 'inactive', 'tag')
        self.fill(
            models.ShareMapping,
            ('id', 'uuid', 'instance_uuid', 'share_id', 'status', 'tag'),
            row,
        )
        query = 'SELECT tag, export_location, share_proto FROM share_mapping'
        self.assertEqual([('tag', '', 'NFS')], self.select(query))

    def test_rows_of_another_length(self):
        self.assertRaises(
            ValueError, self.fill, models.Instance, ['id'], [1, 2]
        )

    @ddt.data(
        ('', ''),
        (False, 'not JSON'),
        ({'nova_object.name': 'KeyPair'}, 'null'),
        ({'a': [1, {'password': 'x'}]}, '{"a": [1, {}]}'),
    )
    @ddt.unpack
    def test_json(self, value, text):
        columns = ['id', 'instance_uuid', 'spec']
        self.fill(api_models.RequestSpec, columns, [1, 'u', value])
        found = self.select('SELECT spec FROM request_specs', self.api)
        self.assertEqual([(text,)], found)

    def test_a_row_twice(self):
        self.assertRaises(
            sa.exc.IntegrityError,
            self.fill,
            models.Instance,
            ['id', 'uuid'],
            [1, 'a'],
            [2, 'a'],
        )


class CollationTestCase(TablesTestCase):
    dialect = 'mysql'

    def test_names_are_compared_as_mariadb_compares_them(self):
        self.fill(models.Instance, ['id', 'uuid', 'host'], [1, 'a', 'Host1'])
        for host in ('host1', 'HOST1 '):
            self.assertEqual(
                [(1,)],
                self.select(f"SELECT id FROM instances WHERE host = '{host}'"),
            )


class ForgetTestCase(TablesTestCase):
    def test_rows_of_servers_and_of_hosts(self):
        for uuid, number in (('a', 1), ('b', 2)):
            self.fill(models.Instance, ['id', 'uuid'], [number, uuid])
            ids = ['id', 'instance_uuid']
            for model in (models.InstanceExtra, models.Migration):
                self.fill(model, ids, [number, uuid])
            self.fill(models.InstanceAction, ids, [number, uuid])
            self.fill(
                models.InstanceActionEvent, ['id', 'action_id'], [number] * 2
            )
            self.fill(
                api_models.InstanceMapping,
                [*ids, 'project_id'],
                [number, uuid, 'p'],
            )
        tables.forget(self.cell, True, ['a', "b'; --"])
        tables.forget(self.api, False, ['a'])
        for table in (
            'instances instance_extra migrations instance_actions '
            'instance_actions_events'
        ).split():
            self.assertEqual([(2,)], self.select(f'SELECT id FROM {table}'))
        left = self.select('SELECT id FROM instance_mappings', self.api)
        self.assertEqual([(2,)], left)
