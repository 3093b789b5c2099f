# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.queries import group_members
from tests import databases


def server(uuid, host='h1', vm_state='active', **fields):
    return models.Instance(uuid=uuid, host=host, vm_state=vm_state, **fields)


def move(status, source='h1', dest='h2', uuid=uuids.moving, deleted=0):
    return models.Migration(
        instance_uuid=uuid,
        status=status,
        source_compute=source,
        dest_compute=dest,
        deleted=deleted,
    )


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
        self.api_engine = database.replace(api_db.context_manager)
        api_models.BuildRequest.__table__.create(self.api_engine)
        self.ctxt = context.get_admin_context()

    def add(self, *rows):
        with orm.Session(self.engine) as session, session.begin():
            for row in rows:
                session.add(row)
                session.flush()

    def places(self, *wanted):
        return group_members._select_places(self.ctxt, list(wanted))

    def test_places(self):
        self.add(
            server(uuids.on),
            server(uuids.claimed, vm_state='building'),
            server(uuids.broken, vm_state='error'),
            server(uuids.gone, deleted=5),
            server(uuids.hidden, hidden=True),
            server(uuids.other),
        )
        self.assertEqual(
            {uuids.on: {'h1'}, uuids.claimed: {'h1'}, uuids.broken: {'h1'}},
            self.places(
                uuids.on,
                uuids.claimed,
                uuids.broken,
                uuids.gone,
                uuids.hidden,
                uuids.absent,
            ),
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
            ('error', None, None),
            # The image that it was shelved to is gone.
            ('error', 'unshelving', {None}),
        ):
            uuid = getattr(uuids, f'{vm_state} {task_state}')
            self.add(server(uuid, None, vm_state, task_state=task_state))
            self.assertEqual(
                expected,
                self.places(uuid).get(uuid),
                f'{vm_state}, {task_state}',
            )

    def test_a_resize_that_is_reverted(self):
        """The destination says reverted before the source has the server."""
        self.add(
            server(
                uuids.moving, 'h2', 'resized', task_state='resize_reverting'
            ),
            move('reverted', 'h8', 'h9'),
            move('reverted', 'h1', 'h2'),
            move('reverted', 'h6', 'h7', deleted=3),
        )
        self.assertEqual(
            {uuids.moving: {'h1', 'h2'}}, self.places(uuids.moving)
        )

    def test_the_other_copy_of_a_resize_to_another_cell(self):
        """nova shows a copy before it hides the other, in another cell.

        Of two cells that are asked at once, one may answer before that and
        the other after it.
        """
        self.add(
            server(uuids.moving, vm_state='resized', hidden=True),
            move('confirmed', 'h8', 'h9'),
        )
        self.assertEqual({}, self.places(uuids.moving))
        self.add(move('finished'))
        self.assertEqual(
            {uuids.moving: {'h1', 'h2'}}, self.places(uuids.moving)
        )

    def test_both_ends_of_a_move(self):
        for number, (status, deleted, expected) in enumerate(
            [
                ('accepted', 0, {'h1', 'h2'}),
                ('running', 0, {'h1', 'h2'}),
                ('finished', 0, {'h1', 'h2'}),
                ('reverted', 0, {'h1'}),
                ('confirmed', 0, {'h1'}),
                ('completed', 0, {'h1'}),
                ('error', 0, {'h1'}),
                ('running', 7, {'h1'}),
            ]
        ):
            uuid = getattr(uuids, f'moving{number}')
            self.add(server(uuid), move(status, uuid=uuid, deleted=deleted))
            self.assertEqual(expected, self.places(uuid)[uuid], status)

    def test_host_and_both_ends_of_each_move(self):
        """Where records disagree, a member counts wherever it may be."""
        self.add(server(uuids.moving), move('running', 'h2', 'h3'))
        self.assertEqual(
            {'h1', 'h2', 'h3'}, self.places(uuids.moving)[uuids.moving]
        )
        self.add(move('running', 'h4', None))
        self.assertEqual(
            {'h1', 'h2', 'h3', 'h4', None},
            self.places(uuids.moving)[uuids.moving],
        )

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
        self.assertEqual({}, self.places(uuids.moving))

    def test_compute_hosts(self):
        def node(uuid, host, deleted=0):
            return models.ComputeNode(
                uuid=uuid,
                host=host,
                # As with ironic: many nodes of one host.
                hypervisor_hostname=f'node {uuid}',
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

        self.add(
            node(uuids.one, 'h1'),
            node(uuids.two, 'h1'),
            node(uuids.gone, 'h2', deleted=3),
            node(uuids.other, 'h3'),
        )
        self.assertEqual(
            {uuids.one: 'h1', uuids.two: 'h1'},
            group_members._select_compute_hosts(
                self.ctxt, [uuids.one, uuids.two, uuids.gone, uuids.device]
            ),
        )

    def test_build_requests(self):
        with orm.Session(self.api_engine) as session, session.begin():
            for uuid in (uuids.one, uuids.two, uuids.other):
                session.add(
                    api_models.BuildRequest(
                        instance_uuid=uuid, project_id='p', instance='{}'
                    )
                )
        with mock.patch.object(group_members, '_CHUNK', 2):
            self.assertEqual(
                {uuids.one, uuids.two},
                set(
                    group_members.select_build_requests(
                        self.ctxt,
                        [uuids.one, uuids.two, uuids.gone, uuids.absent],
                    )
                ),
            )


class SQLiteTestCase(SelectsMixin, testtools.TestCase):
    backend = 'sqlite'


@ddt.ddt
class CellsTestCase(testtools.TestCase):
    """What the cells answer together; tests/functional asks real ones."""

    def setUp(self):
        super().setUp()
        self.cells = [
            objects.CellMapping(uuid=uuid, disabled=uuid == uuids.disabled)
            for uuid in (
                objects.CellMapping.CELL0_UUID,
                uuids.cell1,
                uuids.disabled,
            )
        ]
        self.get_cells = self.useFixture(
            fixtures.MockPatch(
                'nova.objects.CellMappingList.get_all', return_value=self.cells
            )
        ).mock

    def test_a_cell_that_was_added(self):
        """nova.context.CELLS is what the process found at its start."""
        self.useFixture(fixtures.MonkeyPatch('nova.context.CELLS', self.cells))
        added = objects.CellMapping(uuid=uuids.cell2, disabled=False)
        self.get_cells.return_value = [*self.cells, added]
        self.assertEqual(
            ([*self.cells[1:], added], True),
            group_members._find_cells(None, quickly=False),
        )

    def test_disabled_cells(self):
        """Who only orders hosts does not ask them."""
        _, cell, disabled = self.cells
        for quickly, expected in (
            (False, ([cell, disabled], True)),
            (True, ([cell], False)),
        ):
            self.assertEqual(
                expected, group_members._find_cells(None, quickly)
            )
        disabled.disabled = False
        self.assertEqual(
            ([cell, disabled], True), group_members._find_cells(None, True)
        )

    @ddt.data(
        (False, context.CELL_TIMEOUT, ['cell1', 'disabled']),
        (True, 2, ['cell1']),
    )
    @ddt.unpack
    def test_how_long_and_which(self, quickly, seconds, asked):
        """Places of members, and hosts of their allocations."""
        client = mock.Mock()
        client.get_allocs_for_consumer.return_value = {
            'allocations': {'node': {}}
        }
        answers = [{'a': frozenset([None])}, {'node': 'h'}]
        with (
            mock.patch(
                'nova.context.scatter_gather_cells',
                side_effect=[{uuids.cell1: answer} for answer in answers],
            ) as gather,
            mock.patch.object(
                group_members, 'select_build_requests', return_value=[]
            ),
            mock.patch.object(
                group_members.report,
                'report_client_singleton',
                return_value=client,
            ),
        ):
            found = group_members.get_members(
                None, group('a'), ['a'], quickly=quickly
            )
        self.assertEqual({'a': {'h'}}, found.hosts)
        self.assertEqual(
            [(seconds, [getattr(uuids, name) for name in asked])] * 2,
            [
                (call.args[2], [cell.uuid for cell in call.args[1]])
                for call in gather.call_args_list
            ],
        )

    def test_a_dead_cell_is_waited_for_once(self):
        """However many statements the members take."""
        asked = []

        def gather(ctxt, cells, seconds, select, chunk):
            asked.append((chunk, [cell.uuid for cell in cells]))
            return {
                cell.uuid: context.did_not_respond_sentinel
                if cell.uuid == uuids.cell1
                else dict.fromkeys(chunk, 'h')
                for cell in cells
            }

        with (
            mock.patch('nova.context.scatter_gather_cells', gather),
            mock.patch.object(group_members, '_CHUNK', 1),
        ):
            found = group_members._gather(
                None, self.cells[1:], None, 'cab', False
            )
        self.assertEqual({'a': 'h', 'b': 'h', 'c': 'h'}, found)
        self.assertEqual(
            [
                (['a'], [uuids.cell1, uuids.disabled]),
                (['b'], [uuids.disabled]),
                (['c'], [uuids.disabled]),
            ],
            asked,
        )

    def gather(self, wanted, *answers):
        with mock.patch(
            'nova.context.scatter_gather_cells',
            return_value=dict(enumerate(answers)),
        ):
            return group_members._gather(
                mock.sentinel.ctxt, [], mock.sentinel.select, wanted, False
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


objects.register_all()


def group(*members):
    return objects.InstanceGroup(uuid=uuids.group, members=list(members))


class ReplacedTestCase(testtools.TestCase):
    """The selects are replaced; the tests above run them."""

    def setUp(self):
        super().setUp()
        self.waiting, self.places, self.nodes = [], {}, {}
        self.asked = []
        self.client = mock.Mock()
        self.client.get_allocs_for_consumer.side_effect = lambda ctxt, uuid: {
            'allocations': {f'node of {uuid}': {}, f'device of {uuid}': {}}
        }
        for name, replacement in (
            ('_former', group_members._FormerMembers()),
            ('select_build_requests', self.select_build_requests),
            ('_select_places', self.places),
            ('_select_compute_hosts', self.nodes),
            ('_find_cells', lambda ctxt, quickly: ([], not quickly)),
            ('_gather', lambda ctxt, cells, select, *args: select),
            ('report.report_client_singleton', lambda: self.client),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_ext_sched.queries.group_members.{name}',
                    replacement,
                )
            )

    def select_build_requests(self, ctxt, uuids):
        self.asked.append(list(uuids))
        return self.waiting

    def get_members(self, *asked):
        return group_members.get_members(None, group(*asked), asked)


class GetMembersTestCase(ReplacedTestCase):
    def test_table(self):
        self.waiting = ['booted', 'in a cell too']
        self.places |= {
            'claimed': frozenset(['h1']),
            'moves': frozenset(['h1', 'h2']),
            'will move': frozenset(['h1', None]),
            'waits': frozenset([None]),
            'in a cell too': frozenset(['h3']),
            'shelved': frozenset(),
        }
        self.nodes['node of waits'] = 'host of waits'
        # It holds both, while it moves.
        self.nodes['node of will move'] = 'h1'
        self.nodes['device of will move'] = 'h4'
        found = self.get_members(*self.places, 'booted', 'deleted')
        self.assertEqual(
            {**self.places, 'booted': frozenset([None])}, found.places
        )
        self.assertEqual(
            {
                'waits': {'host of waits'},
                'will move': {'h1', 'h4'},
                'booted': frozenset(),
            },
            found.allocated,
        )
        self.assertEqual(
            {
                'claimed': {'h1'},
                'moves': {'h1', 'h2'},
                'will move': {'h1', 'h4'},
                'waits': {'host of waits'},
                'in a cell too': {'h3'},
            },
            found.hosts,
        )

    def test_moves_that_a_tool_counts(self):
        """They count for members that live."""
        self.places |= {
            'moved': frozenset(['h1']),
            'stays': frozenset(['h2']),
        }
        asked = ['moved', 'stays', 'deleted']

        def places():
            return group_members.get_members(None, group(*asked), asked).places

        moved = dict.fromkeys(('moved', 'deleted', 'x'), frozenset(['h3']))
        with change.used(None, moved):
            self.assertEqual(
                {'moved': frozenset(['h3']), 'stays': frozenset(['h2'])},
                places(),
            )
        self.assertEqual(frozenset(['h1']), places()['moved'])

    def test_the_build_requests_are_asked_first(self):
        """conductor deletes one after it created the instance."""
        order = []
        with (
            mock.patch.object(
                group_members,
                'select_build_requests',
                lambda *args: order.append('API') or [],
            ),
            mock.patch.object(
                group_members,
                '_gather',
                lambda *args: order.append('cells') or {},
            ),
        ):
            group_members.get_places(None, group('a'), ['a'])
        self.assertEqual(['API', 'cells'], order)

    def test_nothing_is_asked_for_nothing(self):
        self.assertEqual(({}, {}), self.get_members())
        self.assertEqual([], self.asked)
        self.places |= {'on': frozenset(['h1'])}
        self.get_members('on')
        self.client.get_allocs_for_consumer.assert_not_called()

    def test_bound(self):
        most = group_members.MOST_UNCLAIMED
        names = [f'w{i:03}' for i in range(most + 1)]
        self.places |= dict.fromkeys(names, frozenset([None]))
        self.nodes |= {f'node of {uuid}': 'h' for uuid in names}
        # In the order of the group.
        found = self.get_members(*reversed(names))
        self.assertEqual(set(names[1:]), set(found.hosts))


class GoneTestCase(ReplacedTestCase):
    def test_remembered_for_good(self):
        members = ['a', 'b', 'me', 'c']
        self.places |= dict.fromkeys('ac', frozenset())
        living = group_members.get_living
        self.assertEqual(['a', 'b', 'c'], living(group(*members), 'me'))
        group_members.get_places(None, group(*members), ['a', 'b', 'c'])
        self.assertEqual(['a', 'c'], living(group(*members), 'me'))
        self.assertEqual(['a', 'me', 'c'], living(group(*members), None))
        del self.places['a']
        group_members.get_places(None, group(*members), ['a'])
        self.assertEqual(['me', 'c'], living(group(*members), None))
        other = objects.InstanceGroup(uuid=uuids.other, members=['a'])
        self.assertEqual(['a'], living(other, 'me'))

    def test_a_failure_makes_nobody_gone(self):
        with mock.patch.object(
            group_members, '_gather', side_effect=nova_exception.CellTimeout()
        ):
            self.assertRaises(
                nova_exception.CellTimeout,
                group_members.get_places,
                None,
                group('a'),
                ['a'],
            )
        self.assertEqual(['a'], group_members.get_living(group('a'), None))

    def test_only_a_look_at_all_cells_is_remembered(self):
        """A member that no enabled cell has may be in a disabled one."""
        look = group_members.get_places
        self.assertEqual({}, look(None, group('a'), ['a'], quickly=True))
        self.assertEqual(['a'], group_members.get_living(group('a'), None))
        self.assertEqual({}, look(None, group('a'), ['a']))
        self.assertEqual([], group_members.get_living(group('a'), None))

    def test_archived_members_are_forgotten(self):
        group_members.get_places(None, group('a', 'b'), ['a', 'b'])
        group_members.get_places(None, group('b', 'c'), ['c'])
        self.assertEqual({'b', 'c'}, group_members._former.get(group()))

    def test_bounded(self):
        with mock.patch.object(group_members, '_MOST_FORMER', 5):
            gone = group_members._FormerMembers()
        first, second, third = (
            objects.InstanceGroup(uuid=uuid, members=members)
            for uuid, members in (
                (uuids.one, ['a', 'b']),
                (uuids.two, ['c']),
                (uuids.three, list('defgh')),
            )
        )
        for one in (first, second, third):
            gone.add(one, frozenset(one.members))
        # A group that is too large, and all others.
        self.assertEqual({'a', 'b'}, gone.get(first))
        self.assertEqual(frozenset(), gone.get(third))
        gone.add(third, frozenset('d'))
        self.assertEqual({'a', 'b'}, gone.get(first))
        self.assertEqual(frozenset(), gone.get(second))

    def test_a_group_without_a_uuid(self):
        bare = objects.InstanceGroup(members=['a', 'me'])
        self.assertEqual(['a'], group_members.get_living(bare, 'me'))
