# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
import testtools

from nova_ext_sched.queries import cells
from nova_ext_sched.queries import compute_hosts
from nova_ext_sched.queries import servers

objects.register_all()

FAULT = nova_exception.CellTimeout('silent')
#: Each member holds a node, and a device.
A, B, C = ([f'device of {one}', f'node of {one}'] for one in 'abc')


@ddt.ddt
class FindTestCase(testtools.TestCase):
    """Cells c1 and c2 are enabled, d1 and d2 are disabled.

    :ivar nodes: the hosts of nodes, in whichever cell is asked
    :ivar silent: the cells that do not answer
    :ivar told: what cells are asked about nodes, one time after the other;
        those that are asked as disabled ones behind 'disabled'
    """

    def setUp(self):
        super().setUp()
        self.output = self.useFixture(fixtures.FakeLogger())
        self.nodes, self.silent, self.told = {}, set(), []
        self.now = 1000.0
        self.own_cells = {'c1', 'c2'}
        all_cells = [
            objects.CellMapping(uuid=uuid, disabled=uuid.startswith('d'))
            for uuid in ('c1', 'd1', 'c2', objects.CellMapping.CELL0_UUID)
        ]
        for name, replacement in (
            ('compute_hosts._absent', compute_hosts._Absent()),
            ('cells.current', mock.Mock(ask=self.ask)),
            ('cells.disabled', mock.Mock(ask=self.ask_disabled)),
            ('host_managers.place_in', lambda cell: cell in self.own_cells),
        ):
            path = f'nova_ext_sched.queries.{name}'
            self.useFixture(fixtures.MonkeyPatch(path, replacement))
        path = 'nova.objects.CellMappingList.get_all'
        self.useFixture(fixtures.MockPatch(path, return_value=all_cells))
        path = 'oslo_utils.timeutils.now'
        self.useFixture(fixtures.MonkeyPatch(path, lambda: self.now))

    def ask(self, ctxt, select, wanted, kind=()):
        self.assertIs(servers.select_compute_hosts, select)
        if wanted:
            asked = {cell: sorted(nodes) for cell, nodes in wanted.items()}
            self.told += [*kind, asked]
        found = {
            node: self.nodes[node]
            for cell, nodes in wanted.items()
            for node in nodes
            if node in self.nodes and cell not in self.silent
        }
        silent = dict.fromkeys(wanted.keys() & self.silent, FAULT)
        return cells.Answers(found, silent)

    def ask_disabled(self, *args):
        return self.ask(*args, kind=['disabled'])

    def find(self, *members, near=()):
        """Return the hosts, the faults, and what was asked."""
        self.told.clear()
        hosts, faults = compute_hosts.find(
            None,
            {
                one: frozenset([f'node of {one}', f'device of {one}'])
                for one in members
            },
            set(near),
        )
        return hosts, faults, [*self.told]

    def test_order_of_the_cells(self):
        both = sorted(A + B)
        first, others = {'c1': both}, {'c2': B}
        for nodes, expected in (
            # The members' own have all, or not.
            ({'node of a': 'h1', 'node of b': 'h2'}, [first]),
            ({'node of a': 'h1'}, [first, others, 'disabled', {'d1': B}]),
        ):
            self.nodes = nodes
            found = self.find('a', 'b', near=['c1'])
            self.assertEqual((nodes, [], expected), found)
        # No member has a cell.
        self.nodes = {'node of c': 'h3'}
        asked = [{'c1': C, 'c2': C}]
        self.assertEqual((self.nodes, [], asked), self.find('c'))
        self.assertEqual(({}, [], []), self.find())

    def test_a_cell_that_was_just_disabled(self):
        """nova-scheduler places servers there until it is told."""
        answer = self.ask
        self.nodes['node of a'] = 'h'
        cells.current.ask = lambda *args: answer(*args)._replace(found={})
        asked = [{'c1': A, 'c2': A}, 'disabled', {'d1': A}]
        self.assertEqual((self.nodes, [], asked), self.find('a'))
        self.assertEqual('', self.output.output)

    def test_a_disabled_cell_of_a_member(self):
        """It is asked as the cells of members are."""
        self.nodes['node of a'] = 'h'
        found = self.find('a', near=['d1'])
        self.assertEqual((self.nodes, [], [{'d1': A}]), found)

    def test_a_silent_cell(self):
        """It is a fault while a member has no host, not otherwise."""
        self.silent.add('c2')
        # No disabled cell is asked: the silent one may have the node.
        asked = [{'c1': A, 'c2': A}]
        self.assertEqual(({}, [FAULT], asked), self.find('a'))
        # One that answered is not asked again; the silent one is.
        self.assertEqual(({}, [FAULT], [{'c2': A}]), self.find('a'))
        self.nodes['node of b'] = 'h'
        asked = [{'c1': B, 'c2': B}]
        self.assertEqual((self.nodes, [], asked), self.find('b'))

    @ddt.data((True, [FAULT], 'Send SIGHUP'), (False, [], 'do not count'))
    @ddt.unpack
    def test_a_silent_disabled_cell(self, is_own, faults, logged):
        """It counts where this nova-scheduler places servers there."""
        self.silent.add('d1')
        if is_own:
            self.own_cells.add('d1')
        for member in 'abb':
            hosts, found, _ = self.find(member)
            self.assertEqual(({}, faults), (hosts, found))
        self.assertEqual(1, self.output.output.count('A disabled cell does'))
        self.assertIn(logged, self.output.output)
        self.assertIn('CellTimeout: silent', self.output.output)

    def test_no_cell_is_asked_twice_in_a_minute(self):
        """About what no cell has: it is no compute node."""
        asked = [{'c1': A, 'c2': A}, 'disabled', {'d1': A}]
        self.assertEqual(({}, [], asked), self.find('a'))
        self.now += 59
        self.assertEqual(({}, [], []), self.find('a'))
        self.assertEqual(({}, [], []), self.find('a', near=['c1']))
        asked = [{'c1': B, 'c2': B}, 'disabled', {'d1': B}]
        self.assertEqual(({}, [], asked), self.find('a', 'b'))
        self.now += 2
        self.nodes['node of a'] = 'h'
        asked = [{'c1': A, 'c2': A}]
        self.assertEqual((self.nodes, [], asked), self.find('a'))
        # Of members that have a host, nothing is remembered.
        self.assertEqual((self.nodes, [], asked), self.find('a'))
