# SPDX-License-Identifier: Apache-2.0

"""How many servers may come, on small clouds; nova itself is in functional.

A host has room for some units; a server takes its size of them.
"""

import itertools
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
from nova.scheduler import filters
import testtools

from nova_ext_sched.dryrun.plan import spare
from tests.unit.dryrun.plan import small


class InTurnFilter(filters.BaseHostFilter):
    """Refuses the host b until a holds a server."""

    def host_passes(self, host_state, spec_obj):
        return host_state.uuid == 'a' or self.cloud.states['a'].instances


@ddt.ddt
class SpareTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.small = self.useFixture(small.Small())

    def survive(self, free, standing, *flavors, came=()):
        """Let each host fail.

        :param free: the units that each host has now
        :param standing: the sizes of servers by host; None for one that nova
            does not evacuate
        :param flavors: the size of the new servers, if any may come
        :param came: the hosts and sizes of some that came already
        """
        hosts = {}
        servers = {
            f'{host}-{number}': small.Server(
                host, size or 1, kind='live' if size else 'shelved'
            )
            for host, sizes in standing.items()
            for number, size in enumerate(sizes)
        }
        for host, units in free.items():
            own = sum(one.cpus for one in servers.values() if one.host == host)
            left = units - sum(size for on, size in came if on == host)
            hosts[host] = small.Host(units + own, 0, units + own, 64 * left)
        for number, (host, size) in enumerate(came):
            servers[f'new-{number}'] = small.Server(host, size)
        return self.small.survive((hosts, servers), *map(str, flavors))

    def spare(self, *args):
        [found] = self.survive(*args).spares
        return found

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
        found = self.spare(free, standing, size)
        self.assertEqual(
            (*expected, False),
            (found.fit, found.may_come, found.worse, found.is_more),
        )

    @ddt.data(({}, 0, 'a'), ({'a-0'}, 1, 'b'))
    @ddt.unpack
    def test_one_that_is_gone_since(self, gone, may_come, worse):
        """It finds no host any more, and needs none."""
        self.small.deleted = {*gone}
        found = self.spare({'a': 0, 'b': 3, 'c': 2}, {'a': [3]}, 2)
        self.assertEqual(
            (2, may_come, worse), (found.fit, found.may_come, found.worse)
        )

    def test_a_filter_of_which_nothing_is_known(self):
        """It opens a host that it refused before."""
        one = InTurnFilter()
        self.small.host_filters = (one,)
        self.small.change = lambda cloud: setattr(one, 'cloud', cloud)
        found = self.spare({'a': 2, 'b': 2}, {}, 1)
        self.assertEqual((4, 2), (found.fit, found.may_come))

    def test_there_are_no_more_than_are_counted(self):
        with mock.patch.object(spare, '_MOST', 3):
            found = self.spare({'a': 4, 'b': 4}, {}, 1)
        self.assertEqual(
            ['1', '1', 3, True, 3, '', '', ''], [*vars(found).values()]
        )

    def test_why_none_fits(self):
        found = self.spare({'a': 4, 'b': 2}, {}, 5)
        self.assertEqual('MEMORY_MB', found.cause)
        self.assertEqual(
            '0 of 2 hosts can take it. 2 are too small (MEMORY_MB)', found.said
        )

    @hypothesis.settings(max_examples=15)
    @hypothesis.given(
        st.lists(st.integers(0, 6), min_size=1, max_size=3),
        st.lists(st.lists(st.integers(1, 5), max_size=3), max_size=3),
        st.integers(1, 4),
    )
    def test_one_more_makes_a_failure_worse(self, free, standing, size):
        """Each comes where most is free; then the hosts fail."""
        free = dict(zip('abc', free, strict=False))
        standing = dict(zip(free, standing, strict=False))
        found, left, came = self.spare(free, standing, size), dict(free), []
        while size <= left[best := max(left, key=left.get)]:
            left[best] -= size
            came.append((best, size))
        self.assertEqual(len(came), found.fit)

        def count(number):
            made = self.survive(free, standing, came=came[:number])
            return {one.name: len(one.stuck) for one in made.failed}

        def is_worse(number):
            now = count(0)
            return any(n > now.get(u, 0) for u, n in count(number).items())

        if found.worse:
            self.assertTrue(is_worse(found.may_come + 1))
        else:
            self.assertEqual(found.fit, found.may_come)
        if len({size, *itertools.chain(*standing.values())}) == 1:
            # Which host takes a server is all the same.
            self.assertFalse(is_worse(found.may_come))
