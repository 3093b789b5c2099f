# SPDX-License-Identifier: Apache-2.0

"""How many servers may come, on small clouds; nova itself is in functional.

A host has room for some units; a server takes its size of them.
"""

from unittest import mock

import ddt

from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import proposals
from nova_ext_sched.dryrun.plan import verdicts
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small


@ddt.ddt
class SpareTestCase(small.TestCase):
    def spare(self, free, standing, size):
        """Let each host fail, and return what is counted.

        :param free: the units that each host has now
        :param standing: the sizes of servers by host; None for one that nova
            does not evacuate
        :param size: of the new servers
        """
        hosts, servers = {}, {}
        for host, units in free.items():
            for number, one in enumerate(standing.get(host, ())):
                kind, cpus = ('live', one) if one else ('shelved', 1)
                made = small.Server(host, cpus, kind=kind)
                servers[f'{host}-{number}'] = made
                units += cpus
            hosts[host] = small.Host(units, 0, units, 64 * free[host])
        return self.small.survive((hosts, servers), f'{size}').spares[0]

    @ddt.data(
        # Nothing stands: the new ones alone.
        ({'a': 4, 'b': 4}, {}, 1, (8, 4, 'a')),
        ({'a': 4, 'b': 4, 'c': 4}, {}, 1, (12, 8, 'a')),
        # A host alone: none of its new ones has another.
        ({'a': 4}, {}, 1, (4, 0, 'a')),
        # Whole servers of whole hosts.
        ({'a': 3, 'b': 5}, {}, 2, (3, 1, 'b')),
        # What stands needs the room.
        ({'a': 4, 'b': 4}, {'a': [3]}, 1, (8, 1, 'a')),
        ({'a': 4, 'b': 4}, {'a': [4]}, 1, (8, 0, 'a')),
        # What finds no host now is not counted, whatever the reason.
        ({'a': 4, 'b': 4}, {'a': [9]}, 1, (8, 4, 'a')),
        ({'a': 4, 'b': 4}, {'a': [None]}, 1, (8, 4, 'a')),
        # None fits.
        ({'a': 4, 'b': 4}, {'a': [4]}, 5, (0, 0, '')),
    )
    @ddt.unpack
    def test_one_more_is_one_too_many(self, free, standing, size, expected):
        one = self.spare(free, standing, size)
        found = one.fit, one.may_come, one.worse, one.is_more
        self.assertEqual((*expected, False), found)

    @ddt.data(({}, 0, 'a'), ({'a-0'}, 1, 'b'))
    @ddt.unpack
    def test_one_that_is_gone_since(self, gone, may_come, worse):
        """It finds no host any more, and needs none."""
        self.small.deleted = {*gone}
        one = self.spare({'a': 0, 'b': 3, 'c': 2}, {'a': [3]}, 2)
        found = one.fit, one.may_come, one.worse
        self.assertEqual((2, may_come, worse), found)

    @ddt.data(True, False)
    def test_a_new_server_stays_in_its_cell(self, is_known):
        """nova evacuates none to another, though it has room."""

        def change(cloud):
            cloud.enabled_cells = [*cloud.cells.values()]
            cloud._contexts['cell2'] = clouds.CCTXT
            for host in 'bc':
                cloud.states[host].cell_uuid = 'cell2'

        if not is_known:
            self.small.host_filters = (small.Unknown(lambda *_: True),)
        self.small.change = change
        one = self.spare({'a': 3, 'b': 4, 'c': 4}, {}, 1)
        found = one.fit, one.may_come, one.worse
        self.assertEqual((11, 2, 'a'), found)

    def test_a_filter_of_which_nothing_is_known(self):
        """It opens a host that it refused before."""

        def passes(state, _):
            return state.uuid == 'a' or self.small.cloud.states['a'].instances

        self.small.host_filters = (small.Unknown(passes),)
        found = self.spare({'a': 2, 'b': 2}, {}, 1)
        self.assertEqual((4, 2), (found.fit, found.may_come))

    def test_there_are_no_more_than_are_counted(self):
        with mock.patch.object(newcomers, 'MOST', 3):
            found = self.spare({'a': 4, 'b': 4}, {}, 1)
        expected = ['1', '1', 3, True, 3, '', '', '']
        self.assertEqual(expected, [*vars(found).values()])

    def test_hosts_are_counted_once(self):
        """For all failures of a cloud with the same new servers."""
        judged = []
        find = verdicts.Verdicts._find_passing

        def find_passing(asked, shared, uuids):
            version = asked._cloud.open_fork.version
            judged.extend((id(shared), version, one) for one in uuids)
            return find(asked, shared, uuids)

        with (
            mock.patch.object(newcomers, 'MOST', 5),
            mock.patch.object(
                verdicts.Verdicts, '_find_passing', find_passing
            ),
        ):
            standing = {host: [2] for host in 'abcd'}
            found = self.spare(dict.fromkeys('abcd', 9), standing, 1)
        self.assertEqual(5, found.may_come)
        self.assertLess(8, len(judged))
        self.assertEqual(len({*judged}), len(judged))

    def test_hosts_are_ordered_before_any_server_moves(self):
        """An order made on the way would be none for the next failure."""
        unordered = []
        try_ = planner.try_

        def note(places, leaving, movables, barred):
            versions = places.cloud.versions
            for prepared in movables.values():
                shared = prepared.like.shared
                touched = places.cloud.open_fork.all_touched
                known = touched & shared.requests.keys()
                changed = shared.ranked.find_changed(known, versions)
                unordered.append(len(changed))
            return try_(places, leaving, movables, barred)

        hosts = 'abcdefghijkl'
        with (
            mock.patch.object(proposals, 'UNORDERED', 4),
            mock.patch.object(planner, 'try_', note),
        ):
            self.spare(dict.fromkeys(hosts, 2), {h: [2] * 3 for h in hosts}, 1)
        self.assertLess(len(hosts), len(unordered))
        self.assertLessEqual(max(unordered), 4)

    def test_why_none_fits(self):
        found = self.spare({'a': 4, 'b': 2}, {}, 5)
        self.assertEqual('MEMORY_MB', found.cause)
        said = '0 of 2 hosts can take it. 2 are too small (MEMORY_MB)'
        self.assertEqual(said, found.said)
