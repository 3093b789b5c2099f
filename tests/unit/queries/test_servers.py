# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from nova import context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.cloud import servers as cloud_servers
from nova_ext_sched.queries import licences
from nova_ext_sched.queries import servers
from nova_ext_sched.queries import under_way
from nova_ext_sched.saved import rows
from tests import databases

objects.register_all()

#: Of cold moves and evacuations, and of live migrations besides.
UNDER_WAY = (
    'accepted pre-migrating migrating post-migrating finished confirming '
    'reverting queued preparing running'
).split()
OVER = ('confirmed reverted error failed completed cancelled done').split()


def server(uuid, host='h1', vm_state='active', **fields):
    return models.Instance(uuid=uuid, host=host, vm_state=vm_state, **fields)


def move(status, source='h1', dest='h2', uuid=uuids.moving, deleted=0):
    hosts = {'source_compute': source, 'dest_compute': dest}
    return models.Migration(
        instance_uuid=uuid, status=status, deleted=deleted, **hosts
    )


def node(uuid, host, deleted=0):
    """Return a compute node; as with ironic, a host may have many."""
    columns = models.ComputeNode.__table__.columns
    values = {one.name: '1' for one in columns if not one.nullable}
    values |= {'uuid': uuid, 'host': host, 'deleted': deleted, 'id': None}
    return models.ComputeNode(hypervisor_hostname=uuid, **values)


def build_request(uuid):
    return api_models.BuildRequest(
        instance_uuid=uuid, project_id='p', instance='{}'
    )


class SelectsMixin:
    """The selects, on one kind of database."""

    backend = None

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database(self.backend))
        self.engine = database.replace(main_db.context_manager)
        used = (
            models.Instance,
            models.Migration,
            models.ComputeNode,
            models.Service,
        )
        tables = [model.__table__ for model in used]
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
        if self.backend == 'sqlite':
            # As others do, it may return rows in any order.
            order = 'PRAGMA reverse_unordered_selects = ON'
            with self.engine.begin() as connection:
                connection.exec_driver_sql(order)
        self.api_engine = database.replace(api_db.context_manager)
        for model in (
            api_models.CellMapping,
            api_models.InstanceMapping,
            api_models.BuildRequest,
        ):
            model.__table__.create(self.api_engine)
        self.ctxt = context.get_admin_context()

    def add(self, *rows, to=None):
        with orm.Session(to or self.engine) as session, session.begin():
            for row in rows:
                session.add(row)
                session.flush()

    def places(self, *wanted):
        return servers.select_places(self.ctxt, list(wanted))

    def test_places(self):
        self.add(
            server(uuids.on),
            server(uuids.claimed, vm_state='building'),
            server(uuids.broken, vm_state='error'),
            server(uuids.gone, deleted=5),
            server(uuids.hidden, hidden=True),
            server(uuids.other),
        )
        there = [uuids.on, uuids.claimed, uuids.broken]
        found = self.places(*there, uuids.gone, uuids.hidden, uuids.absent)
        self.assertEqual(dict.fromkeys(there, {'h1'}), found)

    def test_the_newest_move_of_each(self):
        self.add(
            server(uuids.moving, task_state='rebuilding'),
            server(uuids.other),
            server(uuids.gone, deleted=3),
            move('accepted', 'h8', 'h9'),
            move('done', 'h1', 'h2'),
            move('accepted', 'h3', 'h4', deleted=1),
            move('accepted', uuid=uuids.gone),
            models.Service(host='h1', binary='nova-compute'),
            models.Service(host='h8', binary='nova-conductor'),
        )
        wanted = [uuids.moving, uuids.other, uuids.gone]
        found = servers.select_moves(self.ctxt, wanted)
        still = None, None, None, None, None, False
        expected = ('rebuilding', None, 'done', 'h1', 'h2', True)
        self.assertNewest({uuids.moving: expected, uuids.other: still}, found)
        self.add(move('accepted', 'h8', None))
        found = servers.select_moves(self.ctxt, wanted)
        expected = ('rebuilding', None, 'accepted', 'h8', None, False)
        self.assertNewest({uuids.moving: expected, uuids.other: still}, found)

    def assertNewest(self, expected, found):
        for one in found.values():
            self.assertTrue(one.created)
            self.assertEqual(one.status is None, one.begun is None)
        self.assertEqual(
            expected, {uuid: one[:6] for uuid, one in found.items()}
        )

    def test_each_state_without_a_host(self):
        """Rows of the table of states."""
        for vm_state, task_state, expected in (
            ('building', None, {None}),
            ('building', 'deleting', {None}),
            # nova-api and conductor, and nova-compute before it claims.
            ('shelved_offloaded', 'unshelving', {None}),
            ('shelved_offloaded', 'spawning', {None}),
            ('shelved_offloaded', None, set()),
            ('shelved_offloaded', 'deleting', set()),
            ('shelved_offloaded', 'soft-deleting', set()),
            # It failed, and an unshelving that did keeps its task.
            ('error', None, None),
            ('error', 'unshelving', None),
            ('error', 'spawning', None),
        ):
            uuid = getattr(uuids, f'{vm_state} {task_state}')
            self.add(server(uuid, None, vm_state, task_state=task_state))
            found = self.places(uuid).get(uuid)
            self.assertEqual(expected, found, f'{vm_state}, {task_state}')

    def test_a_resize_that_is_reverted(self):
        """The destination says reverted before the source has the server."""
        task = {'task_state': 'resize_reverting'}
        self.add(
            server(uuids.moving, 'h2', 'resized', **task),
            move('reverted', 'h8', 'h9'),
            move('reverted', 'h1', 'h2'),
            move('reverted', 'h6', 'h7', deleted=3),
        )
        self.assertMoving('h1', 'h2')

    def assertMoving(self, *hosts):
        found = self.places(uuids.moving)
        self.assertEqual({uuids.moving: {*hosts}} if hosts else {}, found)

    def test_resizes_that_were_reverted_long_ago(self):
        """They are not read: there may be thousands of one member."""
        self.add(server(uuids.moving))
        self.add(*(move('reverted', 'h3', 'h4') for _ in range(20)))
        with self.engine.connect() as connection:
            rows = connection.execute(
                servers._PLACES, {'uuids': [uuids.moving]}
            ).all()
        self.assertEqual(1, len(rows))
        self.assertMoving('h1')

    def test_the_other_copy_of_a_resize_to_another_cell(self):
        """nova shows a copy before it hides the other, in another cell.

        Of two cells that are asked at once, one may answer before that and
        the other after it.
        """
        self.add(
            server(uuids.moving, vm_state='resized', hidden=True),
            move('confirmed', 'h8', 'h9'),
        )
        self.assertMoving()
        self.add(move('finished'))
        self.assertMoving('h1', 'h2')

    def test_both_ends_of_a_move(self):
        """Each status that nova writes, and one that only a later one may."""
        expected = {
            **dict.fromkeys(UNDER_WAY, {'h1', 'h2'}),
            **dict.fromkeys(OVER, {'h1'}),
            'new in nova': {'h1', 'h2'},
        }
        gone = move('running', uuid=uuids.deleted, deleted=7)
        self.add(server(uuids.deleted), gone)
        for status in expected:
            uuid = getattr(uuids, status)
            self.add(server(uuid), move(status, uuid=uuid))
        moving = {getattr(uuids, one): on for one, on in expected.items()}
        moving[uuids.deleted] = {'h1'}
        self.assertEqual(moving, self.places(*moving))

    def test_host_and_both_ends_of_each_move(self):
        """Where records disagree, a member counts wherever it may be."""
        self.add(server(uuids.moving), move('running', 'h2', 'h3'))
        self.assertMoving('h1', 'h2', 'h3')
        self.add(move('running', 'h4', None))
        self.assertMoving('h1', 'h2', 'h3', 'h4', None)

    def test_a_move_of_a_server_without_a_host(self):
        """An evacuation or an unshelving whose source is gone."""
        for vm_state, waits in (
            ('building', {None}),
            ('shelved_offloaded', set()),
            ('error', set()),
        ):
            uuid = getattr(uuids, vm_state)
            self.add(server(uuid, None, vm_state), move('accepted', uuid=uuid))
            self.assertEqual({'h1', 'h2'} | waits, self.places(uuid)[uuid])

    def test_a_move_of_a_deleted_server(self):
        self.add(server(uuids.moving, deleted=3), move('running'))
        self.assertMoving()

    def test_compute_hosts(self):
        self.add(
            node(uuids.one, 'h1'),
            node(uuids.two, 'h1'),
            node(uuids.gone, 'h2', deleted=3),
            node(uuids.other, 'h3'),
        )
        asked = [uuids.one, uuids.two, uuids.gone, uuids.device]
        found = servers.select_compute_hosts(self.ctxt, asked)
        self.assertEqual({uuids.one: 'h1', uuids.two: 'h1'}, found)

    def add_to_api(self, *rows):
        self.add(*rows, to=self.api_engine)

    def test_cells(self):
        """Two cells besides cell0, and what has none."""
        cell0 = objects.CellMapping.CELL0_UUID
        for number, uuid in enumerate((uuids.cell1, uuids.cell2, cell0), 1):
            self.add_to_api(api_models.CellMapping(id=number, uuid=uuid))
        expected = []
        for number, (cell, building, found) in enumerate(
            [
                (1, False, uuids.cell1),
                (2, False, uuids.cell2),
                # conductor is about to delete the build request.
                (2, True, uuids.cell2),
                (None, True, None),
                # Deleted before it had a cell; found no host.
                (None, False, None),
                (3, False, None),
            ]
        ):
            uuid = getattr(uuids, f'server{number}')
            mapping = api_models.InstanceMapping(
                instance_uuid=uuid, cell_id=cell, project_id='p'
            )
            self.add_to_api(mapping)
            if building:
                self.add_to_api(build_request(uuid))
            expected.append((uuid, found, building))
        asked = [uuid for uuid, _, _ in expected] + [uuids.absent]
        for chunk in (1000, 2):
            with mock.patch.object(servers, '_CHUNK', chunk):
                found = servers.select_cells(self.ctxt, asked)
            self.assertCountEqual(expected, found)

    def test_build_requests(self):
        for uuid in (uuids.one, uuids.two, uuids.other):
            self.add_to_api(build_request(uuid))
        asked = [uuids.one, uuids.two, uuids.gone]
        found = servers.select_build_requests(self.ctxt, asked)
        self.assertEqual({uuids.one, uuids.two}, {*found})

    def test_statements(self):
        """Made once, whatever their size, of at most 1,000 UUIDs."""
        self.add(server(uuids.one), server(uuids.two))
        self.places(uuids.one)
        sizes, made = [], []

        def note(connection, cursor, statement, parameters, context, many):
            if 'instances' in statement:
                sizes.append(len(parameters))
                made.append(context.cache_hit.name)

        sa.event.listen(self.engine, 'before_cursor_execute', note)
        others = [f'server {number}' for number in range(2100)]
        for number in (0, 1, 9, 998, 2098):
            mine = [uuids.one, *others[:number], uuids.two]
            expected = dict.fromkeys((uuids.one, uuids.two), {'h1'})
            self.assertEqual(expected, self.places(*mine))
        # The statuses of migrations are parameters, too.
        others = sizes[0] - 2
        found = [size - others for size in sizes]
        self.assertEqual([2, 3, 11, 1000, 1000, 1000, 100], found)
        self.assertEqual({'CACHE_HIT'}, {*made})


class SQLiteTestCase(SelectsMixin, testtools.TestCase):
    backend = 'sqlite'


class OfLivingTestCase(testtools.TestCase):
    def test_index_of_nova(self):
        """MySQL refuses a statement with an index that is not there."""
        [found] = [
            [column.name for column in index.columns]
            for index in models.Instance.__table__.indexes
            if index.name in servers._BY_LIVING
        ]
        self.assertEqual('deleted', found[0])

    def test_statements_about_a_whole_cell(self):
        """MySQL is told the index; the others choose by themselves."""
        database = self.useFixture(databases.Database('sqlite'))
        engine = database.replace(main_db.context_manager)
        used = models.Instance.__table__, models.Migration.__table__
        models.BASE.metadata.create_all(engine, tables=used)
        ctxt = context.get_admin_context()
        asked = []

        @sa.event.listens_for(engine, 'before_execute')
        def note(connection, query, *_):
            # oslo.db looks first whether a connection is alive.
            if 'instances' in str(query):
                asked.append(query)

        with orm.Session(engine) as session:
            under_way.select_all(session)
            rows.read_standing(session, None)
        cloud_servers.select_sizes(ctxt)
        cloud_servers._select_flavors(ctxt)
        cloud_servers._select_counts(ctxt, None, None)
        self.assertEqual(5, len(asked))
        # nova-scheduler waits for this one; those of some hosts or one project
        # have a better index.
        licences.select_hosts(ctxt, ['windows'], [1])
        cloud_servers.select_sizes(ctxt, ['h1'])
        cloud_servers._select_counts(ctxt, None, 'project')
        for name, told in (
            ('mysql', [True] * 5 + [False] * 3),
            ('mariadb', [True] * 5 + [False] * 3),
            ('postgresql', [False] * 8),
            ('sqlite', [False] * 8),
        ):
            dialect = sa.engine.make_url(f'{name}://').get_dialect()()
            texts = [str(query.compile(dialect=dialect)) for query in asked]
            found = [servers._BY_LIVING in text for text in texts]
            self.assertEqual(told, found, name)
