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

from nova_ext_sched.cmd.cloud import change
from nova_ext_sched.queries import group_members
from tests import databases

#: A server (host, state, perhaps a task, or that it is hidden or deleted), its
#: migrations (status, source, destination), the oldest first, and its places;
#: ? is one that nobody knows yet. None: it is not in the result.
PLACES = (
    ('h1 active', '', 'h1'),
    ('h1 building', '', 'h1'),
    ('h1 error', '', 'h1'),
    ('h1 active deleted', '', None),
    ('h1 active hidden', '', None),
    ('- building', '', '?'),
    ('- building scheduling', '', '?'),
    ('- building spawning', '', '?'),
    ('- building deleting', '', '?'),
    # nova-api and conductor, and nova-compute before it claims.
    ('- shelved_offloaded unshelving', '', '?'),
    ('- shelved_offloaded spawning', '', '?'),
    ('- shelved_offloaded powering-on', '', '?'),
    ('- shelved_offloaded', '', ''),
    ('- shelved_offloaded deleting', '', ''),
    ('- shelved_offloaded soft-deleting', '', ''),
    ('- error', '', None),
    ('- error deleting', '', None),
    # The image that it was shelved to is gone.
    ('- error unshelving', '', '?'),
    # Both ends of a move that has not ended.
    ('h1 active', 'accepted h1 h2', 'h1 h2'),
    ('h1 active', 'running h1 h2', 'h1 h2'),
    ('h1 active', 'finished h1 h2', 'h1 h2'),
    ('h1 active', 'confirmed h1 h2', 'h1'),
    ('h1 active', 'completed h1 h2', 'h1'),
    ('h1 active', 'error h1 h2', 'h1'),
    ('h1 active', 'running h1 h2 deleted', 'h1'),
    ('h1 active deleted', 'running h1 ?', None),
    # Where records disagree, a member counts wherever it may be.
    ('h1 active', 'running h2 h3', 'h1 h2 h3'),
    ('h1 active', 'running h2 h3, running h4 ?', 'h1 h2 h3 h4 ?'),
    # An evacuation or an unshelving whose source is gone.
    ('- building', 'accepted h1 h2', 'h1 h2 ?'),
    ('- shelved_offloaded', 'accepted h1 h2', 'h1 h2'),
    ('- error', 'accepted h1 h2', 'h1 h2'),
    # The destination says reverted before the source has the server.
    (
        'h2 resized resize_reverting',
        'reverted h8 h9, reverted h1 h2, reverted h6 h7 deleted',
        'h1 h2',
    ),
    ('h1 active', 'reverted h1 h2', 'h1'),
    # The other copy of a resize to another cell. nova shows a copy before it
    # hides the other; of two cells that are asked at once, one may answer
    # before that and the other after it.
    ('h1 resized hidden', 'confirmed h8 h9', None),
    ('h1 resized hidden', 'confirmed h8 h9, finished h1 h2', 'h1 h2'),
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

    def add_server(self, uuid, server, moves):
        """Add what a row of PLACES describes."""
        host, vm_state, *words = server.split()
        flags = {'hidden', 'deleted'} & {*words}
        [task_state] = {*words} - flags or {None}
        self.add(
            models.Instance(
                uuid=uuid,
                host=None if host == '-' else host,
                vm_state=vm_state,
                task_state=task_state,
                hidden='hidden' in flags,
                deleted='deleted' in flags and 5,
            )
        )
        for move in filter(None, moves.split(', ')):
            status, source, dest, *deleted = move.split()
            self.add(
                models.Migration(
                    instance_uuid=uuid,
                    status=status,
                    source_compute=source,
                    dest_compute=None if dest == '?' else dest,
                    deleted=len(deleted) and 7,
                )
            )

    def test_places(self):
        for number, (server, moves, _) in enumerate(PLACES):
            self.add_server(f'server {number}', server, moves)
        self.add_server('not asked about', 'h1 active', '')
        found = group_members._select_places(
            self.ctxt,
            [*(f'server {number}' for number in range(len(PLACES))), 'absent'],
        )
        self.assertEqual(
            {
                f'server {number}': {
                    None if one == '?' else one for one in places.split()
                }
                for number, (*_, places) in enumerate(PLACES)
                if places is not None
            },
            found,
        )

    def test_compute_hosts(self):
        def node(uuid, host, deleted=0):
            counted = 'vcpus memory_mb local_gb vcpus_used memory_mb_used'
            # As with ironic: many nodes of one host.
            return models.ComputeNode(
                uuid=uuid,
                host=host,
                hypervisor_hostname=f'node {uuid}',
                deleted=deleted,
                hypervisor_type='fake',
                cpu_info='',
                **dict.fromkeys(
                    [*counted.split(), 'local_gb_used', 'hypervisor_version'],
                    1,
                ),
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
            asked.append([cell.uuid for cell in cells])
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
                None, self.cells[1:], None, 'abc', False
            )
        self.assertEqual({'a': 'h', 'b': 'h', 'c': 'h'}, found)
        self.assertEqual(
            [[uuids.cell1, uuids.disabled], [uuids.disabled]],
            asked[:2],
        )
        self.assertEqual(asked[1:2] * 2, asked[1:])

    def gather(self, wanted, *answers):
        with mock.patch(
            'nova.context.scatter_gather_cells',
            return_value=dict(enumerate(answers)),
        ):
            return group_members._gather(
                mock.sentinel.ctxt, [], mock.sentinel.select, wanted, False
            )

    def test_all_answer(self):
        self.assertEqual(
            {'a': 'h1', 'b': 'h2'},
            self.gather({'a', 'b', 'c'}, {'a': 'h1'}, {}, {'b': 'h2'}),
        )

    def test_more_than_a_statement_names(self):
        with (
            mock.patch(
                'nova.context.scatter_gather_cells',
                side_effect=lambda ctxt, cells, seconds, select, uuids: {
                    'cell': dict.fromkeys(uuids, len(uuids))
                },
            ),
            mock.patch.object(group_members, '_CHUNK', 2),
        ):
            self.assertEqual(
                {'a': 2, 'b': 2, 'c': 1},
                group_members._gather(None, [], None, 'cab', False),
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
        self.nodes |= {'node of will move': 'h1', 'device of will move': 'h4'}
        found = self.get_members(*self.places, 'booted', 'deleted')
        self.assertEqual(
            {**self.places, 'booted': frozenset([None])}, found.places
        )
        allocated = {'waits': {'host of waits'}, 'will move': {'h1', 'h4'}}
        self.assertEqual({**allocated, 'booted': set()}, found.allocated)
        in_cells = {'claimed': {'h1'}, 'moves': {'h1', 'h2'}}
        self.assertEqual(
            {**in_cells, **allocated, 'in a cell too': {'h3'}}, found.hosts
        )

    def test_moves_that_a_tool_counts(self):
        """They count for members that live."""
        self.places |= {'moved': frozenset('1'), 'stays': frozenset('2')}
        asked = ['moved', 'stays', 'deleted']
        with change.used(None, dict.fromkeys(['moved', 'deleted', 'x'], '3')):
            found = self.get_members(*asked).places
        self.assertEqual({'moved': {'3'}, 'stays': {'2'}}, found)
        self.assertEqual({'1'}, self.get_members(*asked).places['moved'])

    def test_the_build_requests_are_asked_first(self):
        """conductor deletes one after it created the instance."""
        order = []
        for name in ('select_build_requests', '_gather'):
            self.useFixture(
                fixtures.MockPatchObject(
                    group_members,
                    name,
                    lambda *args, name=name: order.append(name) or [],
                )
            )
        group_members.get_places(None, group('a'), ['a'])
        self.assertEqual(['select_build_requests', '_gather'], order)

    def test_nothing_is_asked_for_nothing(self):
        with mock.patch.object(group_members, '_find_cells') as find:
            self.assertEqual(({}, {}), self.get_members())
        find.assert_not_called()
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

    def test_only_a_look_at_all_cells_is_remembered(self):
        """A member that no enabled cell has may be in a disabled one."""
        look = group_members.get_places
        fault = nova_exception.CellTimeout
        with mock.patch.object(group_members, '_gather', side_effect=fault()):
            self.assertRaises(fault, look, None, group('a'), ['a'])
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
