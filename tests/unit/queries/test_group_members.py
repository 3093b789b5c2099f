# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import fixtures
from nova import context
from nova import exception as nova_exception
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.queries import group_members
from tests import databases
from tests import log_once


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
        return group_members._select_hosts(self.ctxt, list(wanted))

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
                uuids.on: {'h1'},
                uuids.claimed: {'h1'},
                uuids.back: set(),
                uuids.way: set(),
                uuids.shelved: None,
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
                self.places(uuid)[uuid],
                status,
            )

    def test_host_and_both_ends_of_each_move(self):
        """Where records disagree, a member counts wherever it may be."""

        def move(source, dest):
            return models.Migration(
                instance_uuid=uuids.moving,
                status='running',
                source_compute=source,
                dest_compute=dest,
            )

        self.add(
            models.Instance(uuid=uuids.moving, host='h1', vm_state='active'),
            move('h2', 'h3'),
        )
        self.assertEqual(
            {'h1', 'h2', 'h3'}, self.places(uuids.moving)[uuids.moving]
        )
        self.add(move('h4', None), move(None, None))
        self.assertEqual(
            {'h1', 'h2', 'h3', 'h4'}, self.places(uuids.moving)[uuids.moving]
        )

    def test_a_move_of_a_server_without_a_host(self):
        """An evacuation or an unshelving whose source is gone."""
        for vm_state in ('building', 'shelved_offloaded'):
            uuid = getattr(uuids, vm_state)
            self.add(
                models.Instance(uuid=uuid, host=None, vm_state=vm_state),
                models.Migration(
                    instance_uuid=uuid,
                    status='accepted',
                    source_compute='h1',
                    dest_compute='h2',
                ),
            )
            self.assertEqual({'h1', 'h2'}, self.places(uuid)[uuid])

    def test_a_move_of_a_deleted_server(self):
        self.add(
            models.Instance(uuid=uuids.gone, host='h1', deleted=3),
            models.Migration(
                instance_uuid=uuids.gone, status='running', source_compute='h1'
            ),
        )
        self.assertEqual({}, self.places(uuids.gone))

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
            group_members._select_compute_hosts(
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
            return group_members._gather(
                mock.sentinel.ctxt, mock.sentinel.select, wanted
            )

    def test_all_answer(self):
        self.assertEqual(
            {'a': 'h1', 'b': 'h2'},
            self.gather({'a', 'b', 'c'}, {'a': 'h1'}, {}, {'b': 'h2'}),
        )

    def test_nothing_is_asked_for_nothing(self):
        with mock.patch('nova.context.scatter_gather_skip_cell0') as gather:
            self.assertEqual({}, group_members.get_hosts(None, []))
        gather.assert_not_called()

    def test_more_than_a_statement_names(self):
        with (
            mock.patch(
                'nova.context.scatter_gather_skip_cell0',
                side_effect=lambda ctxt, select, uuids: {
                    'cell': dict.fromkeys(uuids, len(uuids))
                },
            ),
            mock.patch.object(group_members, '_CHUNK', 2),
        ):
            self.assertEqual(
                {'a': 2, 'b': 2, 'c': 1},
                group_members._gather(None, None, 'cab'),
            )

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


class GetHostsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.places, self.nodes = {}, {}
        self.client = mock.Mock()
        self.client.get_allocs_for_consumer.side_effect = lambda ctxt, uuid: {
            'allocations': {f'node of {uuid}': {}, f'device of {uuid}': {}}
        }
        self.useFixture(log_once.Forgotten(group_members))
        for name, replacement in (
            ('_select_hosts', self.places),
            ('_select_compute_hosts', self.nodes),
            ('_gather', lambda ctxt, select, uuids: select),
            ('report.report_client_singleton', lambda: self.client),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_ext_sched.queries.group_members.{name}',
                    replacement,
                )
            )

    def test_table(self):
        self.places |= {
            'claimed': {'h1'},
            'moves': {'h1', 'h2'},
            'waits': set(),
            'shelved': None,
        }
        self.nodes['node of waits'] = 'host of waits'
        self.assertEqual(
            {
                'claimed': {'h1'},
                'moves': {'h1', 'h2'},
                'waits': {'host of waits'},
            },
            group_members.get_hosts(None, [*self.places, 'deleted']),
        )
        self.client.get_allocs_for_consumer.assert_called_once_with(
            None, 'waits'
        )

    def test_no_allocation_is_no_host(self):
        self.places |= {'waits': set()}
        self.client.get_allocs_for_consumer.side_effect = None
        self.client.get_allocs_for_consumer.return_value = {'allocations': {}}
        self.assertEqual({}, group_members.get_hosts(None, ['waits']))

    def test_placement_is_not_asked_for_nothing(self):
        self.places |= {'on': {'h1'}}
        group_members.get_hosts(None, ['on'])
        self.client.get_allocs_for_consumer.assert_not_called()

    def test_bound(self):
        most = group_members.MOST_UNDER_WAY
        self.places |= {f'w{i:03}': set() for i in range(most + 1)}
        self.nodes |= {f'node of {uuid}': 'h' for uuid in self.places}
        found = group_members.get_hosts(None, self.places)
        self.assertEqual(most, len(found))
        self.assertIn('More than 50 servers', self.log.output)
