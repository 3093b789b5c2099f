# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import compute_hosts
from nova_ext_sched.queries import group_members
from nova_ext_sched.queries import servers

objects.register_all()

FAULT = nova_exception.CellTimeout('silent')
#: The cell where a member may be is asked.
FIRST = (servers.select_places, {'c1': ['a']})

#: What a member holds something of.
HELD = ('node', 'device')


def group(*members):
    return objects.InstanceGroup(uuid=uuids.group, members=list(members))


class GroupMembersTestCase(testtools.TestCase):
    """The selects are replaced; other tests run them.

    :ivar mapped: the cells of servers, 'c1' where they are not in it; None
        for one that conductor has to create yet, and '' for one that is gone
    :ivar places: what all cells say of servers
    :ivar silent: the cells that do not answer
    """

    def setUp(self):
        super().setUp()
        self.mapped, self.places, self.nodes = {}, {}, {}
        self.silent = set()
        self.asked = []
        self.placement = mock.Mock()
        self.placement.ask.side_effect = lambda ctxt, urls: {
            url: {'allocations': {f'{what} of {uuid}': {} for what in HELD}}
            for url in urls
            for uuid in [url.removeprefix('/allocations/')]
        }
        for name, replacement in (
            ('group_members._known', group_members._Known()),
            ('servers.select_cells', self.select_cells),
            ('cells.current', mock.Mock(ask=self.ask)),
            ('cells.disabled', mock.Mock(ask=self.ask)),
            ('compute_hosts._absent', compute_hosts._Absent()),
            ('placement.current', self.placement),
        ):
            path = f'nova_ext_sched.queries.{name}'
            self.useFixture(fixtures.MonkeyPatch(path, replacement))
        all_cells = [
            objects.CellMapping(uuid=uuid, disabled=uuid.startswith('d'))
            for uuid in ('c1', 'c2', 'd1', objects.CellMapping.CELL0_UUID)
        ]
        path = 'nova.objects.CellMappingList.get_all'
        self.useFixture(fixtures.MockPatch(path, return_value=all_cells))

    def select_cells(self, ctxt, wanted):
        if wanted:
            self.asked.append(('API', [*wanted]))
        cell_of = {uuid: self.mapped.get(uuid, 'c1') for uuid in wanted}
        return [
            servers.Mapped(uuid, cell or None, cell is None)
            for uuid, cell in cell_of.items()
        ]

    def ask(self, ctxt, select, wanted):
        by_cell = {cell: sorted(mine) for cell, mine in wanted.items()}
        if by_cell:
            self.asked.append((select, by_cell))
        is_of_places = select is servers.select_places
        source = self.places if is_of_places else self.nodes
        found = {
            uuid: source[uuid]
            for cell, mine in by_cell.items()
            for uuid in mine
            if uuid in source and cell not in self.silent
        }
        silent = dict.fromkeys(by_cell.keys() & self.silent, FAULT)
        return cells.Answers(found, silent)

    def get_members(self, *asked, **kwargs):
        return group_members.get_members(None, group(*asked), asked, **kwargs)

    def get_places(self, *asked, **kwargs):
        return group_members.get_places(None, group(*asked), asked, **kwargs)

    def living(self, *members, server=None):
        return group_members.get_living(group(*members), server)


class GetMembersTestCase(GroupMembersTestCase):
    def test_table(self):
        self.mapped |= {'booted': None, 'gone': '', 'deleted': 'c2'}
        self.places |= {
            'claimed': frozenset(['h1']),
            'moves': frozenset(['h1', 'h2']),
            'will move': frozenset(['h1', None]),
            'waits': frozenset([None]),
            'shelved': frozenset(),
        }
        self.nodes['node of waits'] = 'host of waits'
        # It holds both, while it moves.
        self.nodes['node of will move'] = 'h1'
        self.nodes['device of will move'] = 'h4'
        found = self.get_members(*self.places, 'booted', 'gone', 'deleted')
        expected = {**self.places, 'booted': frozenset([None])}
        self.assertEqual(expected, found.places)
        allocated = {'waits': {'host of waits'}, 'will move': {'h1', 'h4'}}
        self.assertEqual(allocated | {'booted': set()}, found.allocated)
        claimed = {'claimed': {'h1'}, 'moves': {'h1', 'h2'}}
        self.assertEqual(claimed | allocated, found.hosts)

    def test_a_move_to_a_host_that_placement_alone_knows(self):
        """It counts on the host that it leaves, too."""
        self.places['moves'] = frozenset(['h1', None])
        self.nodes['node of moves'] = 'h2'
        self.assertEqual(
            {'moves': {'h1', 'h2'}}, self.get_members('moves').hosts
        )
        # Placement has moved the allocation to the migration.
        del self.nodes['node of moves']
        self.assertEqual({'moves': {'h1'}}, self.get_members('moves').hosts)

    def test_moves_that_a_tool_counts(self):
        """They count on its hosts, also those that nova does not know yet."""
        there, elsewhere = frozenset(['h1']), frozenset(['h3'])
        self.places |= {'moved': there, 'stays': there}
        asked = ['moved', 'stays', 'new', 'deleted']
        moved = dict.fromkeys(('moved', 'new', 'x'), elsewhere)
        with change.used(None, moved):
            found = self.get_members(*asked).places
        counted = {'moved': elsewhere, 'stays': there, 'new': elsewhere}
        self.assertEqual(counted, found)
        self.assertEqual(there, self.get_members(*asked).places['moved'])

    def test_nothing_is_asked_for_nothing(self):
        self.assertEqual(({}, {}), self.get_members())
        self.assertEqual([], self.asked)
        self.places |= {'on': frozenset(['h1'])}
        self.get_members('on')
        self.placement.ask.assert_not_called()

    def test_bound(self):
        """Placement is asked about the newest ones."""
        most = group_members.MOST_UNCLAIMED
        # Not in the order of their names.
        names = [f'w{(7 * i) % 100:03}' for i in range(most + 10)]
        self.places |= dict.fromkeys(names, frozenset([None]))
        self.nodes |= {f'node of {uuid}': 'h' for uuid in names}
        found = self.get_members(*names)
        self.assertEqual(set(names[-most:]), set(found.hosts))

    def test_placement_does_not_answer(self):
        self.placement.ask.side_effect = ZeroDivisionError
        self.places |= {'a': frozenset([None])}
        self.assertRaises(ZeroDivisionError, self.get_members, 'a')


class CellsTestCase(GroupMembersTestCase):
    """Which cells are asked, and what follows if one does not answer."""

    def test_only_cells_that_have_members(self):
        self.mapped |= {'a': 'c1', 'b': 'd1', 'new': None, 'gone': ''}
        self.places |= dict.fromkeys('ab', frozenset('h'))
        for _ in range(2):
            found = self.get_places(*self.mapped)
            self.assertEqual({'a', 'b', 'new'}, {*found})
        asked = servers.select_places, {'c1': ['a'], 'd1': ['b']}
        self.assertEqual(
            [
                ('API', ['a', 'b', 'new', 'gone']),
                asked,
                # Cells are remembered, and so is who is gone; the caller
                # asks about those all the same.
                ('API', ['new', 'gone']),
                asked,
            ],
            self.asked,
        )

    def test_a_member_that_nova_mapped_to_another_cell(self):
        self.places |= {'a': frozenset('h')}
        self.get_places('a')
        self.mapped['a'] = 'c2'
        # Nova deleted the copy in the first one.
        ask = self.ask

        def only_in_the_second(ctxt, select, wanted):
            answers = ask(ctxt, select, wanted)
            return answers if 'c2' in wanted else cells.Answers({}, {})

        cells.current.ask = only_in_the_second
        for _ in range(2):
            self.assertEqual(self.places, self.get_places('a'))
        # Not former, and its new cell is remembered.
        self.assertEqual(['a'], self.living('a'))
        second = servers.select_places, {'c2': ['a']}
        self.assertEqual(
            [FIRST, ('API', ['a']), second, second], self.asked[2:]
        )

    def test_a_member_that_is_nowhere(self):
        """Its cell, which is still the same, is not asked again."""
        self.assertEqual({}, self.get_places('a'))
        self.assertEqual([('API', ['a']), FIRST, ('API', ['a'])], self.asked)

    def test_a_cell_that_is_silent(self):
        self.mapped |= {'a': 'c1', 'b': 'c2', 'c': 'c2'}
        self.places |= dict.fromkeys('ab', frozenset('h'))
        self.silent.add('c2')
        found = self.assertRaises(type(FAULT), self.get_places, *'abc')
        self.assertIs(FAULT, found)
        # Nobody is taken for gone.
        self.assertEqual(['a', 'b', 'c'], self.living(*'abc'))
        # Who needs it not is answered.
        self.assertEqual({'a'}, {*self.get_places('a')})

    def test_who_goes_on_with_what_is_known(self):
        self.mapped |= {'a': 'c1', 'b': 'c2', 'gone': 'c1'}
        self.places |= dict.fromkeys('ab', frozenset('h'))
        self.silent.add('c2')
        faults = []
        found = self.get_places('a', 'b', 'gone', on_fault=faults.append)
        self.assertEqual({'a'}, {*found})
        self.assertEqual([FAULT], faults)
        self.assertEqual(['a', 'b'], self.living('a', 'b', 'gone'))

    def test_a_silent_cell_that_may_have_the_nodes(self):
        """It is a fault where a member with an allocation has no host."""
        self.mapped |= {'a': 'c1', 'b': None}
        self.places |= {'a': frozenset([None])}
        self.nodes |= {'node of a': 'h'}
        self.silent.add('c2')
        self.assertEqual({'a': {'h'}}, self.get_members('a').allocated)
        self.assertRaises(type(FAULT), self.get_members, 'a', 'b')
        faults = []
        found = self.get_members('a', 'b', on_fault=faults.append)
        self.assertEqual({'a': {'h'}, 'b': set()}, found.allocated)
        self.assertEqual([FAULT], faults)
        # One that placement gave no host yet.
        self.placement.ask.side_effect = lambda ctxt, urls: dict.fromkeys(
            urls, {'allocations': {}}
        )
        self.assertEqual({'b': set()}, self.get_members('b').allocated)

    def test_which_cells_are_asked_for_the_hosts(self):
        """First those of the members that placement is asked about."""
        self.mapped |= {'on': 'c2', 'a': 'c1'}
        self.places |= {'on': frozenset(['h']), 'a': frozenset([None])}
        self.nodes['node of a'] = 'h'
        self.get_members('on', 'a')
        nodes = ['device of a', 'node of a']
        self.assertEqual(
            (servers.select_compute_hosts, {'c1': nodes}), self.asked[-1]
        )


class KnownTestCase(GroupMembersTestCase):
    def test_remembered_for_good(self):
        members = ['a', 'b', 'me', 'c']
        self.places |= dict.fromkeys('ac', frozenset())
        self.assertEqual(['a', 'b', 'c'], self.living(*members, server='me'))
        group_members.get_places(None, group(*members), ['a', 'b', 'c'])
        self.assertEqual(['a', 'c'], self.living(*members, server='me'))
        self.assertEqual(['a', 'me', 'c'], self.living(*members))
        del self.places['a']
        group_members.get_places(None, group(*members), ['a'])
        self.assertEqual(['me', 'c'], self.living(*members))
        other = objects.InstanceGroup(uuid=uuids.other, members=['a'])
        self.assertEqual(['a'], group_members.get_living(other, 'me'))

    def test_archived_members_are_forgotten(self):
        self.get_places('a', 'b')
        group_members.get_places(None, group('b', 'c'), ['c'])
        known = group_members._known.get(group())
        self.assertEqual({'b': None, 'c': None}, known)

    def test_bounded(self):
        with mock.patch.object(group_members, '_MOST_KNOWN', 5):
            known = group_members._Known()
        first, second, third = (
            objects.InstanceGroup(uuid=getattr(uuids, one), members=[*one])
            for one in ('ab', 'c', 'defgh')
        )
        for one in (first, second, third):
            known.add(one, dict.fromkeys(one.members))
        # A group that is too large, and all others.
        self.assertEqual({'a': None, 'b': None}, known.get(first))
        self.assertEqual({}, known.get(third))
        known.add(third, {'d': 'cell'})
        self.assertEqual({'a': None, 'b': None}, known.get(first))
        self.assertEqual({}, known.get(second))

    def test_a_group_without_a_uuid(self):
        bare = objects.InstanceGroup(members=['a', 'me'])
        self.assertEqual(['a'], group_members.get_living(bare, 'me'))
