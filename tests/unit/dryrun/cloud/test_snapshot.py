# SPDX-License-Identifier: Apache-2.0

"""Each part is read once; a cell that failed stays out of all."""

import copy
import datetime
import types
from unittest import mock

import fixtures
from nova import context
from nova import objects
from nova.objects import cell_mapping
from nova.scheduler import host_manager
from nova.scheduler.weights import cpu
from nova.scheduler.weights import ram
from nova.servicegroup.drivers import db
from oslo_db import exception as db_exception
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.queries import aggregates

objects.register_all()

DOWN_SECONDS = 60
CELLS = ('cell1', 'cell2')
FIRST, SECOND = (objects.CellMapping(uuid=uuid, name=uuid) for uuid in CELLS)


def make_state(uuid, cell='cell1', age=5, key='last_seen_up'):
    """Return a nova HostState, and how old its last heartbeat is."""
    state = host_manager.HostState(f'host{uuid}', f'node{uuid}', cell)
    state.uuid = uuid
    state.free_ram_mb = 1000
    now = timeutils.utcnow(with_timezone=True)
    heartbeat = now - datetime.timedelta(seconds=age)
    state.service = {'last_seen_up': None, 'created_at': None, key: heartbeat}
    return state


def make_manager(*states):
    """Return a snapshot of these hosts; the cell ``cell1`` is enabled."""
    manager = object.__new__(snapshot.Snapshot)
    manager.cells = {one.uuid: one for one in (FIRST, SECOND)}
    manager.enabled_cells = [FIRST]
    manager.silent_cells = {}
    manager._settled = False
    manager._databases = mock.Mock()
    manager._databases.ask.return_value = {}, {}
    manager._get_host_states = mock.Mock(return_value=states)
    return manager


class ReadTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.made = []
        fixture = fixtures.MockPatchObject(snapshot, 'Snapshot', self.make)
        self.useFixture(fixture)

    def make(self, *given):
        self.made.append((given, snapshot.CONF.scheduler.workers))
        return 'cloud'

    def test_a_change_is_there_from_the_beginning_to_the_end(self):
        conf = snapshot.CONF
        supposed = change.Change(options=[('scheduler.workers', '77')])
        before = conf.scheduler.workers
        with snapshot.read(supposed, settled=True, databases='cells') as cloud:
            self.assertEqual(('cloud', 77), (cloud, conf.scheduler.workers))
        self.assertEqual(before, conf.scheduler.workers)
        with snapshot.read():
            pass
        made = [(('cells', True), 77), ((None, False), before)]
        self.assertEqual(made, self.made)

    def test_request_filters_ask_once(self):
        """nova's for the oldest nova-compute, ours for metadata."""
        for module, name in (
            (objects.service, 'get_minimum_version_all_cells'),
            (aggregates, 'get_metadata'),
        ):
            find = mock.Mock(side_effect=[70, 71, 72])
            self.useFixture(fixtures.MockPatchObject(module, name, find))
            for words, expected in (
                ('aba', [70, 71, 70]),
                # Another cloud, another moment.
                ('a', [72]),
            ):
                with snapshot.read():
                    found = [getattr(module, name)(None, [w]) for w in words]
                self.assertEqual(expected, found)
            self.assertIs(find, getattr(module, name))

    def test_a_question_with_more_is_another(self):
        name = 'get_minimum_version_all_cells'
        find = mock.Mock(side_effect=[70, 71])
        fixture = fixtures.MockPatchObject(objects.service, name, find)
        self.useFixture(fixture)
        with snapshot.read():
            ask = objects.service.get_minimum_version_all_cells
            found = [
                ask(None, ['nova-compute'], **more)
                for more in ({}, {'require_all': True}, {})
            ]
        self.assertEqual([70, 71, 70], found)

    def test_what_a_request_filter_cannot_be_told_is_asked_again(self):
        ask = mock.Mock(side_effect=[OSError, ['item']])
        fixture = fixtures.MockPatchObject(aggregates, 'get_metadata', ask)
        self.useFixture(fixture)
        with snapshot.read():
            self.assertRaises(OSError, aggregates.get_metadata, None, ['a'])
            found = [aggregates.get_metadata(None, ['a']) for _ in 'ab']
        self.assertEqual([['item'], ['item']], found)


class MultipliersTestCase(testtools.TestCase):
    """What weighers multiply by: the options, and a host's aggregates."""

    def multiply(self, weigher, *hosts):
        """Return what each host's weights are multiplied by."""

        def init(manager):
            manager.weighers = [weigher]

        with mock.patch.object(host_manager.HostManager, '__init__', init):
            [found] = snapshot.Snapshot().weighers
        return [found.weight_multiplier(host) for host in hosts]

    def find(self, *answers):
        """Let nova find multipliers, one after the other."""
        name = 'nova.scheduler.utils.get_weight_multiplier'
        found = mock.Mock(side_effect=answers)
        self.useFixture(fixtures.MonkeyPatch(name, found))

    def test_nova_looks_them_up_once(self):
        """nova's weighers do so for each host that they weigh."""
        self.find(1.0, 2.0, 3.0)
        first, second, anew = (
            types.SimpleNamespace(aggregates=[one]) for one in 'aba'
        )
        hosts = first, second, first, copy.copy(first), anew
        found = self.multiply(ram.RAMWeigher(), *hosts)
        # nova has read the aggregates of the last one anew.
        self.assertEqual([1.0, 2.0, 1.0, 1.0, 3.0], found)

    def test_each_weigher_has_its_own(self):
        self.find(1.0, 2.0)
        host = types.SimpleNamespace(aggregates=[])
        for weigher, expected in (
            (ram.RAMWeigher(), 1.0),
            (cpu.CPUWeigher(), 2.0),
        ):
            self.assertEqual([expected], self.multiply(weigher, host))

    def test_others_are_asked_for_each_host(self):
        """Our round robin, too, multiplies by what the request says."""
        answers = mock.Mock(side_effect=[0.0, 7.0])
        host = types.SimpleNamespace(aggregates=[])
        other = types.SimpleNamespace(weight_multiplier=answers)
        self.assertEqual([0.0, 7.0], self.multiply(other, host, host))


class StatesTestCase(testtools.TestCase):
    """Hosts a and b of an enabled cell, c of a disabled one."""

    def setUp(self):
        super().setUp()
        states = make_state('a'), make_state('b'), make_state('c', 'cell2')
        self.manager = make_manager(*states)

    def get(self, uuids, spec=None):
        return self.manager.get_host_states_by_uuids(None, uuids, spec)

    def test_equal_hosts_are_in_the_order_of_their_names(self):
        """nova's order is that of a set, and placement's its own."""
        names = ('host10', 'host9', 'a', 'a1', 'host2')
        states = [make_state(uuid) for uuid in 'abcde']
        for state, name in zip(states, names, strict=True):
            state.host = name
        # Nodes of one nova-compute.
        states.append(make_state('0'))
        states[-1].host = 'host2'
        self.manager = make_manager(*states)
        self.assertEqual([*'cd0eba'], [*self.manager.states])
        order = 'cd0eba'
        for wanted, expected in ((None, order), ('bdaex', 'deba'), ('', '')):
            found = [state.uuid for state in self.get(wanted)]
            self.assertEqual([*expected], found)

    def test_cells_that_nova_asks(self):
        for destination, expected in (
            (None, 'ab'),
            ({}, 'ab'),
            ({'cell': None}, 'ab'),
            ({'cell': SECOND}, 'c'),
            ({'cell': FIRST}, 'ab'),
            ({'cell': SECOND, 'allow_cross_cell_move': True}, 'ab'),
        ):
            if destination is not None:
                destination = objects.Destination(**destination)
            spec = objects.RequestSpec(requested_destination=destination)
            found = [state.uuid for state in self.get('abcx', spec)]
            self.assertEqual([*expected], found)
        # All are read once.
        self.manager._databases.ask.assert_called_once_with(
            [*self.manager.cells.values()], mock.ANY, 60
        )

    def test_what_is_in_a_cell(self):
        first, second = CELLS
        self.assertEqual(
            {first: {'a', 'b'}, second: {'c'}}, self.manager.nodes_by_cell
        )
        self.manager._read_by_cell = {
            first: mock.Mock(instances={'a': {'1': 0, '2': 0}, 'b': {}}),
            second: mock.Mock(instances={'c': {'3': 0}}),
        }
        self.assertEqual(
            {'1': first, '2': first, '3': second}, self.manager.cell_of_server
        )
        self.manager.limit_cells(5)
        self.assertEqual(5, self.manager._databases.at_once)

    def test_each_request_has_states_of_its_own(self):
        [first] = self.get('a')
        first.free_ram_mb -= 100
        first.instances['server'] = None
        [second] = self.get('a')
        self.assertEqual((1000, {}), (second.free_ram_mb, second.instances))


class HeartbeatsTestCase(testtools.TestCase):
    """What nova's own driver says of services, as time goes by."""

    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(utils_fixture.TimeFixture())
        self.driver = db.DbDriver.__new__(db.DbDriver)
        self.driver.service_down_time = DOWN_SECONDS

    def is_up(self, manager):
        [state] = manager.get_host_states_by_uuids(None, 'a', None)
        return self.driver.is_up(state.service)

    def test_as_when_they_were_read(self):
        for age, is_up in (
            (5, True),
            (DOWN_SECONDS, True),
            (DOWN_SECONDS + 1, False),
            # A clock that is ahead.
            (-DOWN_SECONDS, True),
            (-DOWN_SECONDS - 1, False),
        ):
            for key in ('last_seen_up', 'created_at'):
                state = make_state('a', age=age, key=key)
                before = dict(state.service)
                manager = make_manager(state)
                for seconds in (0, DOWN_SECONDS, 3600):
                    self.assertEqual(is_up, self.is_up(manager))
                    self.clock.advance_time_seconds(seconds)
                # What is shared stays.
                self.assertEqual(before, state.service)


class CellTestCase(testtools.TestCase):
    """A cell that failed is asked no more."""

    def setUp(self):
        super().setUp()
        self.snapshot = make_manager()
        # What the databases answer to each question.
        self.answers = []
        self.asked = []
        self.snapshot._databases.ask = self.answer

    def answer(self, mappings, select, seconds):
        uuids = [one.uuid for one in mappings]
        self.asked.append(uuids)
        found = self.answers.pop(0)
        return (
            {uuid: found[uuid] for uuid in uuids if uuid in found},
            {uuid: LookupError('gone') for uuid in uuids if uuid not in found},
        )

    def test_it_stays_out(self):
        first, second = {'cell1': 1, 'cell2': 2}, {'cell1': 3}
        self.answers = [first, second, {'cell1': 4, 'cell2': 5}]
        found = [self.snapshot.ask_cells(None) for _ in range(3)]
        self.assertEqual([first, second, {'cell1': 4}], found)
        self.assertEqual([[*CELLS], [*CELLS], ['cell1']], self.asked)
        found = self.snapshot.silent_cells
        self.assertEqual({'cell2': 'LookupError: gone'}, found)

    def test_one_alone(self):
        self.answers = [{'cell2': 'yes'}, {}, {}]
        ask = self.snapshot.ask_cell
        self.assertEqual('yes', ask(SECOND, None))
        for _ in range(2):
            error = self.assertRaises(cells.CellFailed, ask, SECOND, None)
            self.assertIn('cell cell2', str(error))
            self.assertEqual('LookupError: gone', error.cause)
        self.assertEqual([['cell2'], ['cell2'], []], self.asked)

    def test_a_database_that_fails_on_the_way(self):
        cell = cell_mapping.CellMapping(
            uuid='cell1', name='cell1', database_connection='sqlite://',
            transport_url='fake://',
        )  # fmt: skip

        def fail(problem):
            ctxt = context.get_admin_context()
            with self.snapshot.target_cell(ctxt, cell):
                raise problem

        for problem in (
            db_exception.DBError('gone\n[SQL: SELECT 1]'),
            # It is not reached.
            LookupError,
        ):
            error = self.assertRaises(cells.CellFailed, fail, problem)
            self.assertIn('cell cell1', str(error))
            self.assertNotIn('SELECT', str(error))
        self.assertEqual(['cell1'], [*self.snapshot.silent_cells])


class ComputeNodesTestCase(testtools.TestCase):
    """What nova asks for the host that a request names."""

    def setUp(self):
        super().setUp()
        self.snapshot = make_manager()
        self.snapshot._read_by_cell = {}
        for cell, nodes in (
            ('cell1', [('host1', 'node1'), ('host1', 'node2')]),
            ('cell2', [('host2', 'node3'), ('Host4', 'Node4')]),
        ):
            found = [
                objects.ComputeNode(host=host, hypervisor_hostname=node)
                for host, node in nodes
            ]
            self.snapshot._read_by_cell[cell] = snapshot._CellHosts(
                [], found, {}
            )

    def find(self, host, node, cell=None):
        mapping = cell and self.snapshot.cells[cell]
        find = self.snapshot.get_compute_nodes_by_host_or_node
        found = find(None, host, node, mapping)
        return [one.hypervisor_hostname for one in found]

    def test_names(self):
        for host, node, cell, expected in (
            ('HOST1', None, None, ['node1', 'node2']),
            ('host1', 'node2', None, ['node2']),
            (None, 'node1', None, ['node1']),
            # A host has its cell; a node is looked for in those that are
            # enabled.
            ('host2', None, None, ['node3']),
            (None, 'node3', None, []),
            ('host2', None, 'cell1', []),
            ('host2', None, 'cell2', ['node3']),
            ('host3', None, None, []),
            # nova-compute may have written it otherwise.
            ('host4', 'node4', None, ['Node4']),
        ):
            self.assertEqual(expected, self.find(host, node, cell))

    def test_where_nobody_knows(self):
        self.snapshot.silent_cells['cell2'] = 'gone'
        self.assertEqual(['node1'], self.find(None, 'node1'))
        self.assertEqual([], self.find(None, 'other'))
        self.assertRaises(cells.CellFailed, self.find, 'other', None)
        # Of several silent cells always the same is named.
        self.snapshot.silent_cells['cell1'] = 'slow'
        error = self.assertRaises(cells.CellFailed, self.find, 'other', None)
        self.assertIn('slow', str(error))


class AggregatesTestCase(testtools.TestCase):
    def test_the_copy_is_made_once(self):
        """For every server that an audit judges, and each that could move."""
        cloud = object.__new__(snapshot.Snapshot)
        cloud.aggs_by_id = {1: 'aggregate'}
        patch = mock.patch.object
        with (
            patch(snapshot.change, 'copy_aggregates') as copy,
            patch(snapshot.change.api_db, 'get_engine') as engine,
        ):
            copy.side_effect = lambda found, dialect: [*found, dialect]
            engine.return_value.dialect.name = 'mysql'
            for _ in range(2):
                self.assertEqual(['aggregate', 'mysql'], cloud.aggregates_copy)
        self.assertEqual(1, copy.call_count)
