# SPDX-License-Identifier: Apache-2.0

"""Moves that make room, on small clouds; nova itself is in functional."""

from unittest import mock

import ddt
import fixtures
import testtools

from nova_ext_sched import exception
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import make_room
from nova_ext_sched.dryrun.plan import movable
from tests.unit.dryrun.cloud import clouds

#: What becomes of a server: how it is moved, and why cold.
KINDS = {
    'live': (movable.LIVE, ''),
    'stopped': (movable.COLD, plan_format.STOPPED),
    'device': (movable.COLD, plan_format.DEVICE),
}


class KeptFilter(clouds.KnownFilter):
    """Hosts whose names begin with k take nobody new, but old servers."""

    __module__ = 'nova.x'

    def host_passes(self, host_state, spec_obj):
        return not (
            host_state.uuid.startswith('k') and spec_obj.user_id == 'new'
        )


class Rooms(fixtures.Fixture):
    """Clouds of servers that take CPUs, 64 MiB for each."""

    def _setUp(self):
        self.size, self.hints, self.forced = 1, {}, []
        for name, fake in (
            ('nova.scheduler.request_filter.ALL_REQUEST_FILTERS', []),
            (f'{request.__name__}.get_image', mock.Mock()),
            (f'{request.__name__}.get_flavor', mock.Mock()),
            (f'{request.__name__}.set_up_group', mock.Mock()),
            (f'{gone.__name__}.find', lambda *_: set()),
            (f'{departures.__name__}.prepare', self._prepare),
            (
                f'{request.__name__}.build',
                lambda *_: clouds.make_spec(
                    self.size,
                    user_id='new',
                    scheduler_hints=self.hints,
                    force_hosts=self.forced,
                    force_nodes=[],
                ),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def make(self, hosts, size, count, kinds=None, room=10, **more):
        """Return the moves on a cloud.

        :param hosts: sizes of the servers of each host, whose UUID and name
            are a letter; of their servers that and a number
        :param kinds: of servers that are no live ones
        :param room: CPUs of each host, or those by host
        """
        self.size, self.kinds = size, kinds or {}
        cloud = self.cloud = clouds.Cloud('')
        cloud.enabled_filters = [KeptFilter()]
        self.instances, self.sizes = {}, {}
        for host, each in hosts.items():
            cpus = room[host] if isinstance(room, dict) else room
            cloud.add_node(host, host, VCPU=cpus, MEMORY_MB=9999)
            cloud.states[host].hypervisor_type = 'fake'
            cloud.states[host].hypervisor_version = 1
            for number, one in enumerate(each):
                uuid = f'{host}{number}'
                taken = {'VCPU': one, 'MEMORY_MB': 64 * one}
                self.instances[uuid] = cloud.stand(uuid, host, **{host: taken})
                node = self.instances[uuid].node
                self.sizes[uuid] = servers.Size(
                    uuid, uuid, 'p', host, node, one, 64 * one, 0
                )
        cloud.ask_cells = lambda _: {'cell1': [*self.sizes.values()]}
        cloud.services_of = lambda hosts: dict.fromkeys(hosts, '')
        before = cloud.describe()
        found = make_room.make(cloud, question.Question(), count, **more)
        self.is_left = before == cloud.describe()
        return found

    def _prepare(self, places, leaving, not_to):
        return {one.server: self._make(places, one) for one in leaving}

    def _make(self, places, one):
        kind = self.kinds.get(one.server, 'live')
        if kind not in KINDS:
            return admission.NotMovable(kind, '')
        method, why = KINDS[kind]
        cpus = self.sizes[one.server].vcpus
        spec = clouds.make_spec(cpus)
        found = movable.Migration(
            self.cloud, self.instances[one.server], method, spec, why
        )
        key = likeness.Key(f'{cpus}', True)
        found.like = places.find_like(key, spec.obj_clone)
        return found


@ddt.ddt
class MakeRoomTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.rooms = self.useFixture(Rooms())

    @ddt.data(
        # What fits now comes first, and no move spends its room.
        ({'a': [4], 'b': [9]}, 6, 1, [], 'a'),
        ({'a': [4], 'b': [2, 6]}, 6, 2, [], 'a'),
        # The smallest of those that are enough.
        ({'a': [5, 2, 1], 'b': [7], 'k': [10]}, 4, 1, ['a1 b'], 'a'),
        # The largest share first, and the smallest of those that are enough.
        (
            {'a': [1, 1, 3, 2], 'k': [3]},
            9,
            1,
            ['a2 k', 'a3 k', 'a0 k'],
            'a',
        ),
        # A host that takes none gets what leaves, whatever nova prefers.
        ({'a': [3, 3], 'b': [5], 'k': [6]}, 6, 2, ['a0 k'], 'a'),
        # The host of which the fewest must leave.
        ({'a': [3, 3, 3], 'b': [7], 'k': [1]}, 8, 1, ['b0 k'], 'b'),
        # Room on a host that took one goes before that of the next.
        (
            {'a': [4, 2], 'b': [5, 1, 1], 'c': [2]},
            5,
            3,
            ['a1 c', 'b1 a', 'b2 c'],
            'cab',
        ),
    )
    @ddt.unpack
    def test_moves(self, hosts, size, count, moves, room_on):
        found = self.rooms.make(hosts, size, count)
        self.assertTrue(self.rooms.is_left)
        self.assertEqual(
            (moves, [*room_on]),
            (
                [f'{one.server} {one.to}' for one in found.moves],
                found.room_on,
            ),
        )
        self.assertEqual(len(room_on) < count, bool(found.in_the_way))

    @ddt.data(
        ('live', {}, 1, ''),
        ('stopped', {}, 1, ''),
        (
            'device',
            {},
            0,
            'it runs, and nova moves it only cold (--cold allows that)',
        ),
        ('device', {'is_cold': True}, 1, ''),
        (
            'its vm_state is error',
            {},
            0,
            '1 server of the hosts that were looked at cannot be moved: '
            'its vm_state is error.',
        ),
        ('live', {'where': {'b'}}, 0, 'hosts can take it'),
        ('live', {'not_to': {'b'}}, 0, ''),
    )
    @ddt.unpack
    def test_who_moves(self, kind, more, moves, said):
        found = self.rooms.make(
            {'a': [5], 'b': [4]}, 8, 1, {'a0': kind, 'b0': 'its'}, **more
        )
        self.assertEqual(moves, len(found.moves))
        self.assertEqual(moves, len(found.room_on))
        self.assertIn(said, ' '.join(found.in_the_way))

    def test_a_chain(self):
        """c0 to k would make room for a0 on c, and that for the new one."""
        hosts = {'a': [7], 'c': [1], 'k': [9]}
        found = self.rooms.make(hosts, 8, 1, room={'a': 10, 'c': 7, 'k': 10})
        self.assertEqual([], found.moves)
        self.assertIn(
            'Moving a third server so that a second can go was not tried.',
            found.in_the_way,
        )

    def test_the_largest_host(self):
        found = self.rooms.make({'a': [1], 'b': [1]}, 12, 1)
        self.assertIn(
            'The largest host has 10 of VCPU, and the server takes 12.',
            found.in_the_way,
        )

    def test_the_bound_is_said(self):
        hosts = {letter: [3, 4] for letter in 'abcd'} | {'k': [10]}
        self.useFixture(
            fixtures.MonkeyPatch(f'{make_room.__name__}.MOST_HOSTS', 1)
        )
        self.useFixture(
            fixtures.MonkeyPatch(f'{make_room.__name__}._AT_ONCE', 1)
        )
        found = self.rooms.make(hosts, 6, 4)
        self.assertIn('Only the 1 hosts were tried', found.in_the_way[-1])

    def test_a_forced_host(self):
        self.rooms.forced = ['a']
        self.assertRaises(
            exception.InvalidValue, self.rooms.make, {'a': [1]}, 1, 1
        )
