# SPDX-License-Identifier: Apache-2.0

"""How many servers may come, on clouds of plain data; nova is in functional.

A host has room for some units; a server takes its size of them.
"""

import itertools
import types
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import order
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import shared
from nova_ext_sched.dryrun.plan import spare

NOT_MOVABLE = movable.NotMovable('it is being built', '')


class Places:
    """Stands for Shared and Grown: the host with most room is the best."""

    def __init__(self, before, hosts=()):
        self.free = dict(before.free)
        self.scheduler = types.SimpleNamespace(
            states={
                host: types.SimpleNamespace(
                    host=host, cell_uuid='c', instances={}, aggregates=[]
                )
                for host in self.free
            }
        )

    def make_kind(self, spec_obj):
        return shared.Kind(spec_obj, spec_obj, dict.fromkeys(self.free, []))

    def add(self, like, host, takes):
        self.free[host] -= takes

    def fill(self, like):
        """The last host by name is filled first."""
        size = like.spec_obj.flavor.memory_mb
        for host in sorted(self.free, reverse=True):
            while self.free[host] >= size:
                self.add(like, host, size)
                yield host, size

    def judge_again(self, mine):
        return mine

    def begin(self, hosts):
        self.left, self.moved = hosts, {}
        self.room = dict(self.free)

    def count(self, mine):
        return len(self._fitting(mine))

    def find(self, mine):
        found = max(self._fitting(mine), key=self.room.get, default=None)
        return found and types.SimpleNamespace(host=found)

    def move(self, mine, target):
        self.room[target.host] -= mine.spec_obj.flavor.memory_mb
        self.moved[mine.uuid] = target.host

    def _fitting(self, mine):
        return [
            host
            for host, free in sorted(self.room.items())
            if host not in self.left and free >= mine.spec_obj.flavor.memory_mb
        ]


def make_spec(size):
    flavor = types.SimpleNamespace(memory_mb=size, vcpus=0)
    return types.SimpleNamespace(flavor=flavor, instance_group=None)


def find_stuck(places, hosts, movables):
    """Return the servers that find no host, of hosts that fail."""
    places.begin(hosts)
    finding = order.Order(
        places.scheduler,
        (),
        prepare=movables.get,
        found=places,
        is_hardest_first=True,
        explains=False,
    )
    plan = finding.make([plans.Leaving(u, '', '', '', []) for u in movables])
    return {one.server for one in plan.without_place}


class SpareTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.gone = set()
        for target, name, fake in (
            (spare, 'Grown', Places),
            (request, 'get_image', mock.Mock()),
            (
                request,
                'build',
                lambda _, __, ___, size, _image: make_spec(size),
            ),
            (spare.gone, 'find', lambda _, uuids: self.gone & uuids),
        ):
            patch = mock.patch.object(target, name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def spare(self, free, standing, size):
        """Let each host fail, and return what is counted.

        :param free: the units that each host has now
        :param standing: the sizes of servers by host; None for one that nova
            does not evacuate
        :param size: of the new servers
        """
        self.now = Places(types.SimpleNamespace(free=free))
        found = spare.Spare(self.now, size)
        self.failures = []
        for host in free:
            movables = {
                f'{host}-{n}': shared.Evacuee(
                    f'{host}-{n}', make_spec(number), None
                )
                if number
                else NOT_MOVABLE
                for n, number in enumerate(standing.get(host, ()))
            }
            failure = host, {host}, movables
            stuck = find_stuck(self.now, {host}, movables)
            self.failures.append((*failure, stuck))
            found.check(*failure, stuck)
        return found

    def is_worse(self, found, number):
        """Return whether a failure is, with so many more servers."""
        for _, hosts, movables, stuck in self.failures:
            places = Places(self.now)
            mine = dict(movables)
            for n, (host, size) in enumerate(found._came[:number]):
                places.add(None, host, size)
                if host in hosts:
                    mine[f'{n}'] = shared.Evacuee(
                        f'{n}', make_spec(size), None
                    )
            if len(find_stuck(places, hosts, mine)) > len(stuck):
                return True
        return False


@ddt.ddt
class CheckTestCase(SpareTestCase):
    # The last host by name gets the first ones.
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
            expected, (len(found._came), found._number, found._failure)
        )

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
        self.now = Places(types.SimpleNamespace(free={'a': 4, 'b': 4}))
        found = spare.Spare(self.now, 1)
        self.gone = gone
        movables = {'a-0': NOT_MOVABLE, 'a-1': NOT_MOVABLE}
        found.check('a', {'a'}, movables, {*stuck})
        self.assertEqual(expected, found._number)

    @hypothesis.given(
        st.lists(st.integers(0, 9), min_size=1, max_size=4),
        st.lists(st.lists(st.integers(1, 5), max_size=4), max_size=4),
        st.integers(1, 4),
    )
    def test_one_more_makes_a_failure_worse(self, free, standing, size):
        free = dict(zip('abcd', free, strict=False))
        standing = dict(zip('abcd', standing, strict=False))
        found = self.spare(free, standing, size)
        if found._failure:
            self.assertTrue(self.is_worse(found, found._number + 1))
        else:
            self.assertEqual(len(found._came), found._number)
        if len({size, *itertools.chain(*standing.values())}) == 1:
            # Which host takes a server is all the same.
            self.assertFalse(self.is_worse(found, found._number))
