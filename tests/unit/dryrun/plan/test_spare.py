# SPDX-License-Identifier: Apache-2.0

"""How many servers may come, on small clouds; nova itself is in functional.

A host has room for some units; a server takes its size of them.
"""

import itertools
import types
from unittest import mock

import ddt
import fixtures
import hypothesis
from hypothesis import strategies as st
from nova.scheduler import filters
import testtools

from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import spare
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small

NOT_MOVABLE = admission.NotMovable('it is being built', '')


def make_flavor(size):
    return types.SimpleNamespace(flavorid='1', name='x', size=size)


class InTurnFilter(filters.BaseHostFilter):
    """Refuses the host b until a holds a server."""

    def __init__(self, cloud):
        self._cloud = cloud

    def host_passes(self, host_state, spec_obj):
        return host_state.uuid == 'a' or self._cloud.states['a'].instances


@ddt.ddt
class SpareTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.gone = set()
        for name, fake in (
            ('nova.scheduler.request_filter.ALL_REQUEST_FILTERS', []),
            (f'{request.__name__}.get_image', mock.Mock()),
            (f'{servers.__name__}.Reader.find', lambda *_: None),
            (f'{gone.__name__}.find', lambda _, uuids, *__: self.gone & uuids),
            (
                f'{request.__name__}.build',
                lambda _, __, ___, flavor, _image: clouds.make_spec(
                    flavor.size
                ),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def spare(self, free, standing, size, filters=()):
        """Let each host fail, and return what is counted.

        :param free: the units that each host has now
        :param standing: the sizes of servers by host; None for one that nova
            does not evacuate
        :param size: of the new servers
        :param filters: make a host filter each, of the cloud
        """
        cloud = self.cloud = clouds.Cloud('')
        cloud.services_of = lambda hosts: {}
        cloud.enabled_filters += [make(cloud) for make in filters]
        for host, units in free.items():
            cloud.add_node(host, VCPU=units, MEMORY_MB=64 * units)
            cloud.states[host].free_ram_mb = 64 * units
        self.places = destinations.Destinations(cloud)
        # Like servers are judged before anything is supposed.
        self.prepare('', size)
        before = cloud.describe()
        found = spare.count_spare(self.places, make_flavor(size))
        self.failures = []
        for host in free:
            movables = {
                f'{host}-{n}': self.prepare(f'{host}-{n}', number)
                for n, number in enumerate(standing.get(host, ()))
            }
            stuck = self.find_stuck({f'host{host}'}, movables)
            self.failures.append(
                spare.Evacuated(host, {f'host{host}'}, movables, stuck)
            )
        found.check(self.failures)
        self.assertEqual(before, cloud.describe())
        return found

    def prepare(self, uuid, size):
        if size is None:
            return NOT_MOVABLE
        mine = movable.Evacuation(uuid, clouds.make_spec(size), None)
        return small.prepare(self.places, mine, likeness.Key(f'{size}', True))

    def find_stuck(self, hosts, movables):
        """Return the servers that cannot be placed, of hosts that fail."""
        leaving = [plans.Leaving(uuid, '', '', '', []) for uuid in movables]
        goal = planner.Goal(leaving=leaving, barred=hosts)
        made = planner.plan(self.places, goal, lambda *_: movables)
        return {one.server for one in made.without_place}

    def is_worse(self, found, number, size):
        """Return whether a failure is, with so many more servers."""
        for one in self.failures:
            with self.cloud.fork() as future:
                mine = dict(one.movables)
                for uuid, target in found.came[:number]:
                    future.come(uuid, clouds.make_spec(size), target)
                    if target.host in one.hosts:
                        mine[uuid] = self.prepare(uuid, size)
                stuck = self.find_stuck(one.hosts, mine)
                if len(stuck) > len(one.stuck):
                    return True
        return False

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
        found = self.spare(free, standing, size).make_room()
        self.assertEqual(
            (*expected, False),
            (found.fit, found.spare, found.failure, found.or_more),
        )

    def test_a_filter_of_which_nothing_is_known(self):
        """It opens a host that it refused before."""
        found = self.spare({'a': 2, 'b': 2}, {}, 1, [InTurnFilter]).make_room()
        self.assertEqual((4, 2), (found.fit, found.spare))

    @ddt.data(
        # By those that are there no failure is worse.
        ((), {'a-0', 'a-1'}, 4),
        (('a-0',), {'a-1'}, 4),
        # One that is there finds no host any more.
        ((), {'a-1'}, 0),
        (('a-0',), {'a-0'}, 0),
        (('a-0',), set(), 0),
    )
    @ddt.unpack
    def test_two_that_find_no_host_then(self, stuck, gone, expected):
        found = self.spare({'a': 2, 'b': 2}, {}, 1)
        found.servers, self.gone = 4, gone
        movables = {'a-0': NOT_MOVABLE, 'a-1': NOT_MOVABLE}
        one = spare.Evacuated('a', {'nothing'}, movables, {*stuck})
        found.check([one])
        self.assertEqual(expected, found.make_room().spare)

    def test_there_are_no_more_than_are_counted(self):
        with mock.patch.object(spare, '_MOST', 3):
            found = self.spare({'a': 4, 'b': 4}, {}, 1).make_room()
        self.assertEqual(
            plans.FlavorRoom('1', 'x', 3, True, 3, '', '', ''), found
        )

    def test_why_none_fits(self):
        found = self.spare({'a': 4, 'b': 2}, {}, 5).make_room()
        self.assertEqual('MEMORY_MB', found.cause)
        self.assertEqual(
            '0 of 2 hosts can take it. 2 are too small (MEMORY_MB)',
            found.reason,
        )

    @hypothesis.settings(max_examples=15)
    @hypothesis.given(
        st.lists(st.integers(0, 6), min_size=1, max_size=3),
        st.lists(st.lists(st.integers(1, 5), max_size=3), max_size=3),
        st.integers(1, 4),
    )
    def test_one_more_makes_a_failure_worse(self, free, standing, size):
        free = dict(zip('abcd', free, strict=False))
        standing = dict(zip('abcd', standing, strict=False))
        found = self.spare(free, standing, size)
        if found.failure:
            self.assertTrue(self.is_worse(found, found.servers + 1, size))
        else:
            self.assertEqual(len(found.came), found.servers)
        if len({size, *itertools.chain(*standing.values())}) == 1:
            # Which host takes a server is all the same.
            self.assertFalse(self.is_worse(found, found.servers, size))
