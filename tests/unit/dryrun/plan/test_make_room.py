# SPDX-License-Identifier: Apache-2.0

"""Moves that make room, on small clouds; nova itself is in functional."""

from unittest import mock

import ddt
from nova import objects
from nova.scheduler.filters import affinity_filter
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import make_room
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import openings
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small

# Hosts whose names begin with k take nobody new, but old servers.
KEPT = small.Filter(
    lambda state, spec: spec.user_id != 'new' or state.uuid[0] != 'k'
)
# Nobody new comes to a host with more than two servers,
CROWDED = small.Filter(
    lambda state, spec: spec.user_id != 'new' or len(state.instances) < 3
)
# nor where a server arrives.
ARRIVING = small.Filter(lambda state, _: 'arriving' not in state.instances)
# It may look at anything of a server; of the first it is wrong.
UNKNOWN = small.Unknown(
    lambda _, spec: spec.user_id != 'new' or spec.instance_uuid != 'server'
)


class Rooms(small.Small):
    """Clouds of servers that take CPUs, 64 MiB for each unless it is said.

    :ivar forced: the hosts that the request forces
    :ivar units: of 64 MiB that a host has
    """

    def __init__(self):
        super().__init__(KEPT)
        self.forced, self.units, self.specs = [], 100, {}

    def coming(self, *_):
        cpus, units = self.size
        known = {'user_id': 'new', 'project_id': '0', 'force_nodes': []}
        spec = clouds.make_spec(cpus, force_hosts=self.forced, **known)
        spec.flavor.memory_mb = 64 * units
        spec.flavor.extra_specs = self.specs
        return spec

    def make(self, hosts, size, count, room=10, group='', kinds=None, **more):
        """Return the moves on a cloud.

        :param hosts: of each its letter, which is its UUID and name, and the
            sizes of its servers; of each that and a number
        :param room: CPUs of each host, or those by host
        :param group: its servers
        :param kinds: of servers that are no live ones
        """
        self.size = size if isinstance(size, tuple) else (size, size)
        found, rooms = {}, {}
        for text in hosts.split():
            host, _, sizes = text.partition('=')
            cpus = room[host] if isinstance(room, dict) else room
            rooms[host] = small.Host(cpus, units=self.units)
            for number, one in enumerate(filter(None, sizes.split(','))):
                cpus, _, units = one.partition('*')
                uuid = f'{host}{number}'
                kind = (kinds or {}).get(uuid, 'live')
                known = {'units': int(units or cpus), 'group': uuid in group}
                found[uuid] = small.Server(host, int(cpus), kind=kind, **known)
        cloud = self.build((rooms, found))
        before = cloud.describe()
        made = make_room.make(cloud, request.Question(), count, **more)
        self.is_left = before == cloud.describe()
        return small.read(made)


def forbid(why):
    """Return what nova says of a server that it does not move."""
    return admission.NotMovable(why, '')


@ddt.ddt
class MakeRoomTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.rooms = self.useFixture(Rooms())

    def test_one_without_a_place_goes_before_others(self):
        """a0 would take the only host that a1, of a group, can go to."""
        apart = affinity_filter.ServerGroupAntiAffinityFilter()
        self.rooms.host_filters = KEPT, apart
        rooms = {'a': 10, 'k1': 5, 'k2': 10}
        made = self.rooms.make('a=5,5 k1= k2=5', 10, 1, rooms, group='a1 k20')
        self.assertEqual('a1:k1 a0:k2', small.say(made.moves))

    def test_of_equal_hosts_the_first(self):
        """One server of each seems enough, and has no place."""
        rooms = {'a': 4, 'b': 4, 'k1': 1, 'k2': 1}
        made = self.rooms.make('a=2,1,1 b=2,1,1 k1= k2=', 2, 1, rooms)
        self.assertEqual('a1:k1 a2:k2', small.say(made.moves))

    @ddt.data(
        # b takes one beside another on a alone: not before that.
        ('b', 'a', True),
        # a takes one as long as none is on b: not after that.
        ('a', 'b', False),
    )
    @ddt.unpack
    def test_a_promise_that_holds_in_one_order(self, host, other, is_there):
        """nova may create them in any: one is not promised."""

        def passes(state, spec):
            there = bool(self.rooms.cloud.states[other].instances)
            return state.uuid != host or there is is_there

        self.rooms.host_filters = KEPT, small.Unknown(passes)
        made = self.rooms.make('a= b=', 10, 2)
        self.assertEqual((['a'], []), (made.on, made.moves))

    @ddt.data(
        # What fits now comes first, and no move spends its room.
        ('a=4 b=9', 6, 1, '', 'a'),
        ('a=4 b=2,6', 6, 2, '', 'a'),
        # The smallest of those that are enough.
        ('a=5,2,1 b=7 k=5', 4, 1, 'a1:k', 'a'),
        # The largest share first, and the smallest of those that are enough.
        ('a=1,1,3,2 k=3', 9, 1, 'a2:k a3:k a0:k', 'a'),
        # A host that takes none gets what leaves, whatever nova prefers.
        ('a=3,3 b=5 k=6', 6, 2, 'a0:k', 'a'),
        # The host of which the fewest must leave.
        ('a=3,3,3 b=7 k=1', 8, 1, 'b0:k', 'b'),
        # Room on a host that took one goes before that of the next.
        ('a=4,2 b=5,1,1 c=2', 5, 3, 'a1:c b1:a b2:c', 'cab'),
        # As few as can be enough are counted of the largest.
        ('a=1,1,8 b=5,5 k=', 8, 1, 'a2:k', 'a'),
        # The host of fewer that is ranked later: of the first the largest
        # finds no place.
        ('a=5,3,2 b=2,2,2,2,2 c=4,3,2 k=6 k2=8', 5, 1, 'c0:k', 'c'),
        # The host of more that is ranked later is left alone.
        ('a=5,3,2 b=5,2,2,1 k=6 k2=8', 5, 1, 'a1:k a2:k2', 'a'),
        # What leaves does not go to a host that was tried and given up.
        ('a=5,3,2 b=5,1,1,1 d=1,1,1,1,1,1,1,1 k=6', 5, 1, 'a1:k a2:d', 'a'),
        # Nor to one that may take a new server, if others do not.
        ('a=5 b=5 c=5 k=1', 6, 1, 'a0:k', 'a'),
        # Room of one that nobody wants next goes before that of one that took.
        ('a=9 b=4,2 c=5 e=8 k=', 6, 2, 'a0:k b1:e', 'ab'),
    )
    @ddt.unpack
    def test_moves(self, hosts, size, count, moves, on):
        found = self.rooms.make(hosts, size, count)
        self.assertTrue(self.rooms.is_left)
        said = small.say(found.moves), ''.join(found.on)
        self.assertEqual((moves, on), said)
        self.assertEqual(len(on) < count, bool(found.said))
        # They are disabled meanwhile, those where one fits now too.
        ends = {name for one in found.moves for name in (one.at, one.to)}
        self.assertEqual({*on, *ends}, {*found.services})
        vacated = {}
        for one in found.moves:
            self.assertEqual(vacated.get(one.to, []), one.needed)
            vacated.setdefault(one.at, []).append(one.uuid)

    def test_one_that_is_of_no_use_in_the_end(self):
        """Of both CPUs and memory the first has most, but not enough."""
        self.rooms.units = 10
        hosts = 'a=3*2,4*1,1*4 k='
        found = self.rooms.make(hosts, (7, 8), 1)
        self.assertEqual('a1 a2', small.name(found.moves))

    def test_progress(self):
        """Trials take longest, and say which host."""
        told = mock.Mock()
        self.rooms.make('a=4 b=7 k=', 6, 2, advance=told)
        steps = [mock.call(total=2), mock.call()]
        steps += [mock.call(0, 'Preparing servers'), mock.call(0, 'Trying b')]
        self.assertEqual([*steps, mock.call()], told.mock_calls)

    def test_what_lacks_nothing(self):
        """Where something else is in the way the smallest one leaves."""
        self.rooms.host_filters = [CROWDED]
        found = self.rooms.make('a=1,2,1 b=10', 1, 1, 20)
        self.assertEqual([], found.moves)
        found = self.rooms.make('a=1,2,1 b=8', 3, 1)
        self.assertEqual('a0:b', small.say(found.moves))

    @mock.patch.object(openings, '_MOST_SETS', 0)
    @ddt.data(
        # The largest leave, but those that are of no use in the end.
        ('a=1,1,3,2 k=3', 9, 'a2:k a3:k a0:k'),
        ('a=5,2,1 b=7 k=5', 4, 'a1:k'),
        ('a=3*2,4*1,1*4 k=', (7, 8), 'a2:k a1:k'),
    )
    @ddt.unpack
    def test_too_many_sets_to_compare(self, hosts, size, moves):
        self.rooms.units = 10
        found = self.rooms.make(hosts, size, 1)
        self.assertEqual(moves, small.say(found.moves))

    @mock.patch.object(openings, '_MOST_SETS', 0)
    def test_no_set_that_was_tried_comes_again(self):
        """Also if there are too many sets to compare."""
        names = ('a', 'b', 'c')
        host = openings._Host(
            [{'M': 2}],
            [mock.Mock(uuid=name) for name in names],
            {name: {'M': 2} for name in names},
            {frozenset('a'), frozenset('ab')},
        )
        chosen = [
            ''.join(size.uuid for size in leaving) for leaving in host.choose()
        ]
        self.assertEqual(['abc'], chosen)

    def test_a_move_that_breaks_a_promise(self):
        """Nobody new comes beside a0, whom b would take: a larger one goes."""
        apart = small.Filter(
            lambda state, spec: (
                spec.user_id != 'new'
                or 'a0' not in state.instances
                or state.uuid == 'a'
            )
        )
        self.rooms.host_filters = [apart]
        found = self.rooms.make('a=2,3 b=1', 6, 2)
        said = small.say(found.moves), ''.join(found.on)
        self.assertEqual(('a1:b', 'ba'), said)

    def test_another_beginning(self):
        """Where a0 goes to k first, too little of k is left for b's."""
        hosts = 'a=2,3,4,1 b=4,3,1 k=4'
        with mock.patch.object(make_room, '_DEEPEST', 0):
            self.assertEqual(1, len(self.rooms.make(hosts, 4, 2).on))
        self.assertEqual(2, len(self.rooms.make(hosts, 4, 2).on))

    def test_members_on_no_host(self):
        """They would be remembered as deleted, and count nowhere later."""
        self.rooms.size = 1, 1
        places = destinations.Destinations(self.rooms.build('a=4'))
        spec = self.rooms.coming()
        spec.instance_group = objects.InstanceGroup(
            uuid='g', policy='anti-affinity', members=['old'], hosts=[]
        )
        coming = newcomers.Newcomers(places, spec)
        with places.cloud.fork() as future:
            for there in ([], ['one']):
                future.moved.update(dict.fromkeys(there, 'a'))
                coming.prepare('one')
                group = coming.prepare('two').spec_obj.instance_group
                self.assertEqual(['old', *there, 'two'], group.members)

    def test_numbered_groups(self):
        """Nobody knows what they get once servers have left."""
        self.rooms.specs = {'resources1:CUSTOM_A': '1'}
        found = self.rooms.make('a=5 b=4', 8, 1)
        self.assertEqual([], found.moves)
        self.assertIn('2 hosts were not tried: what', ' '.join(found.said))

    def test_a_filter_that_nobody_knows(self):
        self.rooms.host_filters = [UNKNOWN]
        found = self.rooms.make('a=3 b=4', 8, 1)
        self.assertEqual(['a'], found.on)

    def test_only_nova_can_choose_the_host(self):
        """Where hosts share a provider, no server is told its host."""

        def share(cloud):
            traits = (clouds.SHARES,)
            cloud.server.add('pool', traits=traits, MEMORY_MB=9999)
            for host in 'abk':
                del cloud.server.providers[host].inventory['MEMORY_MB']

        self.rooms.change = share
        found = self.rooms.make('a=4 b=7 k=', 6, 2)
        self.assertEqual(([], [None]), (found.moves, found.on))
        said = 'Servers whose host only nova can choose were not moved.'
        self.assertIn(said, found.said)

    def test_servers_that_arrive(self):
        self.rooms.host_filters, there = [ARRIVING], {'arriving': {'a'}}
        self.rooms.change = lambda cloud: cloud.under_way.update(there)
        found = self.rooms.make('a=1 b=3', 8, 1)
        self.assertEqual([], found.on)
        found = self.rooms.make('a=1 b=3 c=4', 8, 1)
        self.assertEqual(['b'], found.on)

    def test_a_host_in_no_cell_mapping(self):
        self.rooms.change = lambda cloud: cloud.unmapped.add('a')
        found = self.rooms.make('a=1,2 b=3 k=', 8, 1)
        self.assertEqual('b0:k', small.say(found.moves))

    def test_groups_that_stand_less_apart(self):
        self.rooms.policy = 'soft-x'
        found = self.rooms.make('a=4 k=4', 4, 2, group=('a0', 'k0'))
        self.assertEqual('a0', small.name(found.moves))
        [one] = found.closer
        found = (one.name, one.hosts, one.before)
        self.assertEqual(('group True', 1, 2), found)

    @ddt.data(
        ('live', 1),
        ('stopped', 1),
        ('device', 0,
         'it runs, and nova moves it only cold (--cold allows that)'),
        ('device', 1, '', {'is_cold': True}),
        # Each reason is said.
        (forbid('it is odd'), 0, 'looked at cannot be moved: it is odd.'),
        (forbid('it is odd'), 0,
         '1 server of the hosts that were looked at cannot be moved: its.'),
        ('live', 0, '1 is full (VCPU), 1 is excluded by the request.',
         {'where': {'b'}}),
        ('live', 0, '', {'not_to': {'b'}}),
    )  # fmt: skip
    @ddt.unpack
    def test_who_moves(self, kind, moves, said='', more=()):
        kinds = {'a0': kind, 'b0': forbid('its')}
        found = self.rooms.make('a=5 b=4', 8, 1, kinds=kinds, **dict(more))
        self.assertEqual([moves] * 2, [len(found.moves), len(found.on)])
        self.assertIn(said, ' '.join(found.said))

    def test_a_chain(self):
        """c0 to k would make room for a0 on c, and that for the new one."""
        hosts = 'a=7 c=1 k=9'
        found = self.rooms.make(hosts, 8, 1, {'a': 10, 'c': 7, 'k': 10})
        self.assertEqual([], found.moves)
        # No host is left out that was no destination of the last move tried.
        self.assertNotIn('excluded', found.said[0])
        said = 'moving a third server so that a second can go.'
        self.assertIn(f'Chains were not tried: {said}', found.said)

    @ddt.data((10, None, 10), ({'a': 9, 'b': 12}, {'a'}, 9))
    @ddt.unpack
    def test_one_that_is_too_large(self, room, where, most):
        found = self.rooms.make('a=1 b=1', 12, 1, room, where=where)
        said = f'the largest host gives one server {most} vCPUs'
        self.assertEqual((said, []), (found.never, found.said))

    @mock.patch.multiple(openings, MOST_HOSTS=1, _AT_ONCE=1)
    def test_the_bound_is_said(self):
        hosts = 'a=3,4 b=3,4 c=3,4 d=3,4 k=10'
        found = self.rooms.make(hosts, 6, 4)
        said = 'Only the 1 hosts that need the fewest moves'
        self.assertIn(said, found.said[-1])

    def test_a_forced_host(self):
        self.rooms.forced = ['a']
        self.assertRaises(exception.InvalidValue, self.rooms.make, 'a=1', 1, 1)
