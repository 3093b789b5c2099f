# SPDX-License-Identifier: Apache-2.0

"""Rounds of maintenance on small clouds, carried out on paper.

nova's scheduler and its claims decide in memory; tests/long lets a real nova
carry them out.
"""

from unittest import mock

import ddt
from nova import objects

from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import maintain
from tests.unit.dryrun.plan import small


@ddt.ddt
class MaintainTestCase(small.TestCase):
    """Each move is right when its turn comes: :meth:`carry_out`."""

    def plan(self, cloud, *args, **more):
        """Return the hosts of each round."""
        self.found = self.small.maintain(cloud, *args, **more)
        self.carry_out()
        # Nothing of it is left.
        self.assertIsNone(self.small.cloud.open_fork)
        return small.say_rounds(self.found)

    def carry_out(self):
        """Make the moves on paper; each must be right when its turn comes."""
        hosts, turns = self.small.hosts, []
        paper = small.Paper(hosts, self.small.servers)
        for one in self.found.rounds:
            turns += one.on
            for move in one.moves:
                self.assertIn(move.at, one.on)
                paper.go(self, move, one.on)
            self.assertFalse({*one.on} & {*paper.at.values()}, one)
            batches = [*dict.fromkeys(move.batch for move in one.moves)]
            self.assertEqual([*range(1, len(batches) + 1)], batches)
            # Each host is empty before the next is emptied.
            left = {(move.batch, move.at) for move in one.moves}
            self.assertEqual(len(batches), len(left))
        kept = [one.on for one in self.found.kept]
        self.assertEqual(sorted(hosts), sorted(turns + kept))
        for one in self.found.kept:
            self.assertTrue(one.stuck, (one, self.found))
            for stuck in one.stuck:
                self.assertTrue(stuck.said)

    def test_hosts_of_a_cell_that_does_not_answer(self):
        """Nobody knows what stands there: they are in no round."""
        self.small.change = lambda cloud: setattr(
            cloud, 'silent_cells', {'cell1': 'no answer'}
        )
        found = self.small.maintain('a=4; b=4')
        self.assertEqual(([], []), (found.rounds, found.kept))

    @ddt.data(
        # Of equal hosts the first as people count.
        ('h10=4; h2=4; h1=4', 1, 'h1 h2 h10', ''),
        # None has a server.
        ('a=4; b=4', 1, 'a b', ''),
        ('a=4; b=4', None, 'ab', ''),
        # The least to move come first.
        ('a=4 x=1 y=1 z=1; b=4 v=1 w=1; c=4 u=1; d=4', 1, 'd c b a', ''),
        # A full host takes servers once it was empty: placement knows of no
        # room there; for like and other requests.
        ('a=4 x=4; b=4', 1, 'b a', ''),
        ('a=4 x=4; b=4 y=4; c=4', 1, 'c a b', ''),
        ('a=4 x=4+g; b=4', 1, 'b a', ''),
        ('a=4 x=4+g; b=4 y=4+h; c=4', 1, 'c a b', ''),
        # As many as can be.
        ('a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1', None, 'bcd a', ''),
        ('a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1', 1, 'a c d b', ''),
        ('a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1', 2, 'ab cd', ''),
        # One that got a server in a round is not empty in it: b stays in vain.
        ('a=4 x=1; b=4 y=1/1; c=4 z=1; d=4 w=1', 2, 'ad c',
         f'b:{small.LABEL}'),
        # None can be empty; another may still fill one that cannot.
        ('a=4 x=4; b=4 y=4; c=4 z=4', 1, '', 'a:VCPU b:VCPU c:VCPU'),
        ('a=4 x=3; b=4 y=2:shelved; c=4', 1, 'c a', 'b:state'),
        # The large server fits where two small ones were: it was tried before
        # them, in vain.
        ('a=4 v=4; b=4 w=1 x=1; c=4 y=1 z=1', 1, 'b c a', ''),
        # What a group loses is what the round ends with.
        ('a=4 x=1+g; b=4 y=1+g; c=4', 1, 'c a b', ''),
        ('a=4 x=1+g; b=4 y=1+g; c=4 z=1+g', 1, '',
         f'a:{small.GROUP} b:{small.GROUP} c:{small.GROUP}'),
        ('a=4 x=1+g; b=4 y=1+g; c=4; d=4', 2, 'cd ab', ''),
    )  # fmt: skip
    @ddt.unpack
    def test_rounds(self, cloud, at_once, rounds, kept):
        found = self.plan(cloud, at_once)
        causes = ' '.join(
            f'{one.on}:{one.stuck[0].cause}' for one in self.found.kept
        )
        self.assertEqual((rounds, kept), (found, causes))

    def test_no_room_is_counted(self):
        """To count it takes as long as several moves, and nobody is told."""
        with mock.patch.object(destinations.Destinations, 'count') as count:
            self.assertEqual('b a', self.plan('a=4 x=4; b=4'))
        count.assert_not_called()

    def test_hosts_that_had_their_turn_take_first(self):
        """Else the weigher would prefer b, which has more memory."""
        cloud = 'a=4 r=1; b=4 s=1 t=1; c=4 x=1 y=1 z=1; d=4'
        hosts, servers = small.parse(cloud)
        hosts['b'] = hosts['c'] = small.Host(ram=900_000)
        self.assertEqual('d a b c', self.plan((hosts, servers)))
        # None moves twice: the empty host is first.
        moves = [move.uuid for one in self.found.rounds for move in one.moves]
        self.assertEqual([*'rstxyz'], sorted(moves))
        third = self.found.rounds[2].moves
        self.assertEqual({'a'}, {move.expected for move in third})

    def test_a_filter_that_may_look_at_anything(self):
        """Servers that are like none do not go to hosts of their round."""
        self.small.host_filters += (small.Unknown(lambda *_: True),)
        cloud = 'a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1'
        self.assertEqual('ab cd', self.plan(cloud, 2))

    def test_what_holds_a_host(self):
        self.small.held = [('x', 'b')]
        self.assertEqual('a', self.plan('a=4 a0=1; b=4'))
        self.assertEqual('b', self.found.kept[0].on)
        # Of those that are empty, and of those that servers go to.
        self.assertEqual([*'ab'], [*self.found.services])

    def test_servers_that_are_being_built(self):
        """They keep no host out of a round, as those that are deleted."""
        hosts, servers = small.parse('a=4 x=1 y=1; b=4')
        built = admission.NotMovable('it is', is_being_built=True)
        servers['x'] = small.Server('a', 1, kind=built)
        found = self.small.maintain((hosts, servers))
        self.assertEqual(['b', 'a'], [one.on[0] for one in found.rounds])
        self.assertEqual('x', small.name(found.built))
        self.small.deleted = {'y'}
        for kind, expected in (
            ('live', ['', 'z:c', 'x:b']),
            # nova refuses to move it, because it is being deleted.
            ('shelved', ['', 'x:c', 'z:a']),
        ):
            cloud = f'a=4 x=1 y=1:{kind}; b=4 z=1; c=4'
            found = self.small.maintain(cloud)
            self.assertEqual('y', small.name(found.gone))
            moves = [one.moves for one in found.rounds]
            self.assertEqual(expected, [*map(small.say, moves)])

    def test_a_paused_server_moves_once(self):
        """A second move may end its guest."""
        for cloud, rounds, moves in (
            ('a=4 x=1:paused; b=4', 'b a', ['', 'x:b']),
            ('a=4 x=1; b=4 y=1:paused', 'a b', ['x:b', 'x:a y:a']),
            # Each would go where another has to go away again.
            ('a=4 x=1:paused; b=4 y=1:paused', '', []),
        ):
            found = self.small.maintain(cloud)
            self.assertEqual(rounds, small.say_rounds(found))
            said = [small.say(one.moves) for one in found.rounds]
            self.assertEqual(moves, [*map(sort, said)])
        [stuck] = found.kept[0].stuck
        self.assertIn('it is paused, and no host whose turn', stuck.said)
        self.assertEqual('resume it (openstack server unpause x)', stuck.helps)

    def test_one_that_goes_back(self):
        """Its own request names the host where it is, not where it was."""
        self.small.host_filters = (small.Unknown(lambda *_: True),)
        found = self.small.maintain('a=4 x=2; b=4 y=2')
        self.assertEqual('a b', small.say_rounds(found))
        back = small.say(found.rounds[1].moves).split()
        self.assertEqual(['x:a', 'y:a'], sorted(back))

    def test_hosts_that_get_no_server(self):
        """They are no destinations, and no host that refuses one."""
        for cloud, barred, expected in (
            ('a=4 x=3; b=4; c=4', 'b', 'x:c'),
            ('a=4 x=3; b=4; c=4', 'c', 'x:b'),
        ):
            found = self.small.maintain(cloud, not_to={*barred})
            moves = [one for round_ in found.rounds for one in round_.moves]
            self.assertEqual(expected, small.say(moves))
        found = self.small.maintain('a=4 x=3; b=4; c=2', not_to={*'b'})
        [kept] = found.kept
        self.assertEqual(
            '0 of 3 hosts can take it. 1 is too small (VCPU), 2 are excluded '
            'by the request',
            kept.stuck[0].said,
        )

    def test_a_deletion_that_does_not_end(self):
        """It has an hour; then it keeps its host out of a round."""
        cloud = 'a=4 y=1:shelved; b=4'
        self.small.deleting = {'y': False}
        found = self.small.maintain(cloud)
        self.assertEqual('y', small.name(found.gone))
        self.assertEqual(['a', 'b'], [one.on[0] for one in found.rounds])
        self.small.deleting = {'y': True}
        found = self.small.maintain(cloud)
        self.assertEqual(
            ([], ['b']), (found.gone, [one.on[0] for one in found.rounds])
        )
        [stuck] = found.kept[0].stuck
        self.assertIn('openstack server delete y', stuck.helps)

    @ddt.data(('domain', 'ac bd'), ('zone', 'ab cd'))
    @ddt.unpack
    def test_hosts_of_a_round_have_something_in_common(self, by, rounds):
        def aggregates_of(host):
            names = {'failure_domain': 'xyxy', 'availability_zone': 'xxyy'}
            metadata = {n: names[n]['abcd'.index(host)] for n in names}
            return [objects.Aggregate(metadata=metadata)]

        self.small.change = lambda cloud: setattr(
            cloud, 'aggregates_of', aggregates_of
        )
        cloud = 'a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1'
        self.assertEqual(rounds, self.plan(cloud, None, by))

    def test_progress(self):
        """Servers are prepared; then hosts have had their turn."""
        advance = mock.Mock()
        cloud = 'a=4 w=1; b=4 x=1; c=4 y=1; d=4 z=1'
        self.plan(cloud, 3, advance=advance)
        begins, *steps = advance.call_args_list
        self.assertEqual(mock.call(label='Planning rounds', total=8), begins)
        self.assertEqual(8, sum((*one.args, 1)[0] for one in steps))
        labels = [one.args[1] for one in steps if one.args]
        self.assertEqual(['1 round planned', '2 rounds planned'], labels)

    @ddt.data(
        # Servers that are prepared for one round, and for two.
        ('', 8, 14),
        # The first hosts of all cannot be emptied: it begins anew.
        ('i=4 i0=1:shelved; j=4 j0=1:shelved; k=4 k0=1:shelved; '
         'l=4 l0=1:shelved; ', 4 + 18, 12),
    )  # fmt: skip
    @ddt.unpack
    def test_wanted_rounds_are_the_first_of_all(self, others, *prepared):
        cloud = others + '; '.join(f'{h}=4 {h}0=1 {h}1=1' for h in 'abcdefg')
        every = self.plan(cloud).split()
        moves = [small.say(one.moves) for one in self.found.rounds]
        for most, number in enumerate(prepared, 1):
            advance = mock.Mock()
            found = self.small.maintain(cloud, most=most, advance=advance)
            self.assertEqual(every[:most], small.say_rounds(found).split())
            said = [small.say(one.moves) for one in found.rounds]
            self.assertEqual(moves[:most], said)
            steps = [
                one for one in advance.call_args_list if one == mock.call()
            ]
            self.assertEqual(number, len(steps))

    @ddt.data(
        ('1 move; no server moves twice.', 'a=4 x=1; b=4; c=4'),
        ('3 moves; 1 server moves twice.', 'a=4 x=1; b=4 y=2'),
    )
    @ddt.unpack
    def test_what_is_said(self, sentence, described):
        cloud, hosts = self.small.build(described), {*self.small.hosts}
        found = maintain.make(cloud, hosts)
        said = [*maintain.say_rounds(cloud, hosts, found)]
        self.assertEqual([sentence], said)

    def test_disabled_hosts_as_people_count_them(self):
        cloud, hosts = self.small.build('h10=4; h9=4'), {'h10', 'h9'}
        found = maintain.make(cloud, hosts)
        for name, expected in (
            ('h9', 'h9 is disabled and not done, and takes'),
            ('h10', 'h9, h10 are disabled and not done, and take'),
        ):
            cloud.states[name].service = {'disabled': True}
            [said] = maintain.say_rounds(cloud, hosts, found)
            self.assertEqual(f'{expected} no server until enabled.', said)


def sort(words):
    return ' '.join(sorted(words.split()))
