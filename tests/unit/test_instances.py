# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from nova import context
from nova import exception as nova_exception
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched import instances
from tests import databases


class SelectsMixin:
    """The selects in one cell, on one kind of database."""

    backend = None

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database(self.backend))
        self.engine = database.replace(main_db.context_manager)
        tables = [
            model.__table__
            for model in (
                models.Instance,
                models.Migration,
                models.ComputeNode,
            )
        ]
        if self.backend == 'mysql':
            # Without nova's indices, of which one is too long for the models'
            # own definition.
            with self.engine.begin() as connection:
                for table in tables:
                    connection.execute(
                        sa.schema.CreateTable(
                            table, include_foreign_key_constraints=[]
                        )
                    )
        else:
            models.BASE.metadata.create_all(self.engine, tables=tables)
        self.ctxt = context.get_admin_context()

    def add(self, *rows):
        with orm.Session(self.engine) as session, session.begin():
            for row in rows:
                session.add(row)
                session.flush()

    def places(self, *wanted):
        return instances._select_places(self.ctxt, list(wanted))

    def test_places(self):
        self.add(
            models.Instance(uuid=uuids.on, host='h1', vm_state='active'),
            models.Instance(
                uuid=uuids.claimed, host='h1', vm_state='building'
            ),
            models.Instance(uuid=uuids.way, host=None, vm_state='building'),
            models.Instance(
                uuid=uuids.back,
                host=None,
                vm_state='shelved_offloaded',
                task_state='unshelving',
            ),
            models.Instance(
                uuid=uuids.shelved, host=None, vm_state='shelved_offloaded'
            ),
            models.Instance(uuid=uuids.gone, host='h1', deleted=5),
            models.Instance(uuid=uuids.hidden, host='h1', hidden=True),
            models.Instance(uuid=uuids.other, host='h1'),
        )
        self.assertEqual(
            {
                uuids.on: (frozenset(['h1']), False),
                uuids.claimed: (frozenset(['h1']), False),
                uuids.back: (frozenset(), True),
                uuids.way: (frozenset(), True),
                uuids.shelved: (frozenset(), False),
            },
            self.places(
                uuids.on,
                uuids.claimed,
                uuids.way,
                uuids.back,
                uuids.shelved,
                uuids.gone,
                uuids.hidden,
                uuids.absent,
            ),
        )

    def test_both_ends_of_a_move(self):
        for number, (status, deleted, both) in enumerate(
            [
                ('accepted', 0, True),
                ('running', 0, True),
                ('finished', 0, True),
                ('confirmed', 0, False),
                ('completed', 0, False),
                ('error', 0, False),
                ('running', 7, False),
            ]
        ):
            uuid = getattr(uuids, f'moving{number}')
            self.add(
                models.Instance(uuid=uuid, host='h1', vm_state='active'),
                models.Migration(
                    instance_uuid=uuid,
                    status=status,
                    deleted=deleted,
                    source_compute='h1',
                    dest_compute='h2',
                ),
            )
            self.assertEqual(
                {'h1', 'h2'} if both else {'h1'},
                self.places(uuid)[uuid].hosts,
                status,
            )

    def test_more_than_a_statement_names(self):
        with mock.patch.object(instances, '_CHUNK', 2):
            wanted = [getattr(uuids, f'u{i}') for i in range(5)]
            self.add(*(models.Instance(uuid=u, host='h') for u in wanted))
            self.assertEqual(set(wanted), set(self.places(*wanted)))

    def test_compute_hosts(self):
        def node(uuid, host, deleted=0):
            return models.ComputeNode(
                uuid=uuid,
                host=host,
                hypervisor_hostname=host,
                deleted=deleted,
                vcpus=1,
                memory_mb=1,
                local_gb=1,
                vcpus_used=0,
                memory_mb_used=0,
                local_gb_used=0,
                hypervisor_type='fake',
                hypervisor_version=1,
                cpu_info='',
            )

        self.add(node(uuids.one, 'h1'), node(uuids.gone, 'h2', deleted=3))
        self.assertEqual(
            {uuids.one: 'h1'},
            instances._select_compute_hosts(
                self.ctxt, [uuids.one, uuids.gone, uuids.device]
            ),
        )


class SQLiteTestCase(SelectsMixin, testtools.TestCase):
    backend = 'sqlite'


class MySQLTestCase(SelectsMixin, testtools.TestCase):
    backend = 'mysql'


class PostgreSQLTestCase(SelectsMixin, testtools.TestCase):
    backend = 'postgresql'


@ddt.ddt
class CellsTestCase(testtools.TestCase):
    """What the cells answer together; tests/functional asks real ones."""

    def gather(self, wanted, *answers):
        with mock.patch(
            'nova.context.scatter_gather_skip_cell0',
            return_value=dict(enumerate(answers)),
        ):
            return instances.get_compute_hosts(mock.sentinel.ctxt, wanted)

    def test_all_answer(self):
        self.assertEqual(
            {'a': 'h1', 'b': 'h2'},
            self.gather({'a', 'b', 'c'}, {'a': 'h1'}, {}, {'b': 'h2'}),
        )

    def test_nothing_is_asked_for_nothing(self):
        with mock.patch('nova.context.scatter_gather_skip_cell0') as gather:
            self.assertEqual({}, instances.get_places(None, []))
        gather.assert_not_called()

    @ddt.data(
        (context.did_not_respond_sentinel, nova_exception.CellTimeout),
        (ZeroDivisionError(), ZeroDivisionError),
    )
    @ddt.unpack
    def test_a_cell_that_does_not_answer(self, answer, expected):
        # It may hold what the others do not.
        self.assertRaises(
            expected, self.gather, {'a', 'b'}, {'a': 'h1'}, answer
        )
        self.assertEqual({'a': 'h1'}, self.gather({'a'}, {'a': 'h1'}, answer))
