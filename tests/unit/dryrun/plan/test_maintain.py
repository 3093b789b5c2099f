# SPDX-License-Identifier: Apache-2.0

"""Rounds of maintenance on small clouds, carried out on paper.

nova's scheduler and its claims decide in memory; tests/long lets a real nova
carry them out.
"""

import collections
from unittest import mock

import ddt
import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import objects
import testtools

from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import failover
from nova_ext_sched.dryrun.plan import maintain
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.plan import small

CPUS = 4


class MaintainTestCase(testtools.TestCase):
    """Hosts of four CPUs each; a server has some, and perhaps a group."""

    def setUp(self):
        super().setUp()
        self.small = self.useFixture(small.Small())

    def make(self, hosts, *servers, **kinds):
        """Make a cloud.

        :param hosts: their letters
        :param servers: of each its host's letter, CPUs and perhaps a group
        :param kinds: why servers cannot be moved
        """
        self.servers = {}
        for number, (on, cpus, *group) in enumerate(servers):
            uuid = f'{on}{number}'
            self.servers[uuid] = small.Server(
                on,
                int(cpus),
                group=''.join(group),
                kind=kinds.get(uuid, 'live'),
            )
        self.hosts = dict.fromkeys(hosts, small.Host(CPUS))
        self.cloud = self.small.build(self.hosts, self.servers)

    def plan(self, *args, **kwargs):
        self.found = maintain.make(self.cloud, {*self.hosts}, *args, **kwargs)
        self.carry_out()
        return [''.join(one.hosts) for one in self.found.rounds]

    def carry_out(self):
        """Make the moves on paper; each must be right when its turn comes."""
        paper, turns = small.Paper(self.hosts, self.servers), []
        for one in self.found.rounds:
            turns += one.hosts
            for move in one.moves:
                self.assertIn(move.host, one.hosts)
                paper.go(self, move, one.hosts)
            self.assertFalse({*one.hosts} & {*paper.on.values()}, one)
            batches = [move.batch for move in one.moves]
            self.assertEqual(
                [*range(1, len({*batches}) + 1)], [*dict.fromkeys(batches)]
            )
        kept = [one.host for one in self.found.not_emptied]
        self.assertEqual(sorted(self.hosts), sorted(turns + kept))
        for one in self.found.not_emptied:
            self.assertTrue(one.without_place or one.lost, (one, self.found))
            for stuck in one.without_place:
                self.assertTrue(stuck.reason)

    @property
    def moves(self):
        return [move for one in self.found.rounds for move in one.moves]


@ddt.ddt
class RoundsTestCase(MaintainTestCase):
    def test_of_equal_hosts_the_first_as_people_count(self):
        self.make(['h10', 'h2', 'h1'])
        self.assertEqual(['h1', 'h2', 'h10'], self.plan())

    def test_no_host_has_a_server(self):
        self.make('ab')
        self.assertEqual(['a', 'b'], self.plan())
        self.assertEqual(['ab'], self.plan(None))

    def test_the_least_to_move_come_first(self):
        self.make('abcd', 'a1', 'a1', 'a1', 'b1', 'b1', 'c1')
        self.assertEqual('d', self.plan()[0])
        self.assertEqual('c', self.plan()[1])

    def test_hosts_that_had_their_turn_take_first(self):
        """Else the weigher would prefer b, which has more memory."""
        self.make('abcd', 'a1', 'b1', 'b1', 'c1', 'c1', 'c1')
        self.cloud.states['b'].free_ram_mb = 9000
        self.cloud.states['c'].free_ram_mb = 9000
        self.assertEqual(['d', 'a', 'b', 'c'], self.plan())
        # None moves twice: the empty host is first.
        self.assertEqual(6, len(self.moves))
        self.assertEqual(6, len({move.server for move in self.moves}))
        third = self.found.rounds[2].moves
        self.assertEqual({'a'}, {move.expected for move in third})

    def test_a_full_host_takes_servers_once_it_was_empty(self):
        """Placement knows of no room there; for like and other requests."""
        for group in ((), ('group',)):
            self.make('ab', ('a', 4, *group))
            self.assertEqual(['b', 'a'], self.plan())
            self.make('abc', ('a', 4, *group), ('b', 4, *group))
            self.assertEqual(['c', 'a', 'b'], self.plan())
            self.assertEqual(
                ['c', 'a'], [move.expected for move in self.moves]
            )

    def test_as_many_as_can_be(self):
        self.make('abcd', 'a1', 'b1', 'c1', 'd1')
        self.assertEqual(2, len(self.plan(None)))
        self.assertEqual(4, len(self.plan(1)))
        self.assertEqual([2, 2], [len(one) for one in self.plan(2)])

    def test_one_that_cannot_be_empty(self):
        self.make('abc', 'a4', 'b4', 'c4')
        self.assertEqual([], self.plan())
        [one] = self.found.not_emptied[0].without_place
        self.assertEqual(('a0', 'MEMORY_MB'), (one.server, one.cause))
        stuck = admission.NotMovable('its task_state is x', 'wait')
        self.make('abc', 'a3', 'b2', b1=stuck)
        self.assertEqual(['c', 'a'], self.plan())
        [kept] = self.found.not_emptied
        self.assertEqual('b', kept.host)
        self.assertEqual('state', kept.without_place[0].cause)
        # Another may still fill it.
        self.assertEqual(3, len(self.found.rounds) + 1)

    def test_what_holds_a_host(self):
        self.make('ab', 'a1')
        self.small.held = [
            plans.Stuck(
                'x', 'x', 'project', 'b', [], 'its resize', 'state', 'wait'
            )
        ]
        self.assertEqual(['a'], self.plan())
        self.assertEqual('b', self.found.not_emptied[0].host)

    def test_room_that_a_later_round_makes(self):
        """The large server fits where two small ones were."""
        self.make('abc', 'a4', 'b1', 'b1', 'c1', 'c1')
        # It was tried before them, in vain.
        self.assertEqual(['b', 'c', 'a'], self.plan())

    def test_hosts_of_a_round_are_of_one_domain(self):
        self.make('abcd', 'a1', 'b1', 'c1', 'd1')
        racks = {
            name: objects.Aggregate(metadata={'failure_domain': name})
            for name in 'xy'
        }
        self.cloud.aggregates_of = lambda host: [
            racks[{'a': 'x', 'b': 'y', 'c': 'x', 'd': 'y'}[host]]
        ]
        self.assertEqual(['ac', 'bd'], self.plan(None, 'domain'))

    def test_a_group(self):
        """What it loses is what the round ends with."""
        self.make('abc', 'a1g', 'b1g')
        self.assertEqual(['c', 'a', 'b'], self.plan())
        self.make('abc', 'a1g', 'b1g', 'c1g')
        self.assertEqual([], self.plan())
        causes = {
            stuck.cause
            for one in self.found.not_emptied
            for stuck in one.without_place
        }
        self.assertEqual({'anti-affinity'}, causes)
        # Those of one round move one after the other.
        self.make('abcd', 'a1g', 'b1g')
        self.assertEqual(['cd', 'ab'], self.plan(2))
        self.assertEqual([1, 2], [move.batch for move in self.moves])

    def test_failover_that_is_kept(self):
        """While d is empty, a has nowhere to go: no host of three may fail."""

        class Failover:
            def __init__(self, cloud, advance):
                pass

            def find_lost(_, future, empty):
                self.assertIs(future, self.cloud.supposed)
                if len(empty) > 2:
                    return 'c'
                return 'a' if 'd' in empty else None

        self.useFixture(
            fixtures.MonkeyPatch(f'{failover.__name__}.Failover', Failover)
        )
        self.make('abcd', 'd1')
        self.assertEqual(['ab', 'c'], self.plan(None, keeps_failover=True))
        [kept] = self.found.not_emptied
        self.assertEqual(('d', 'a'), (kept.host, kept.lost))

    def test_progress(self):
        """Servers are prepared; then hosts have had their turn."""
        self.make('abcd', 'a1', 'b1', 'c1', 'd1')
        for at_once, labels in (
            (None, ['1 round planned', '2 rounds planned']),
            (3, ['1 round planned', '2 rounds planned']),
        ):
            advance = mock.Mock()
            self.plan(at_once, advance=advance)
            begins, *steps = advance.call_args_list
            self.assertEqual(
                mock.call(label='Planning rounds', total=8), begins
            )
            self.assertEqual(8, sum((*one.args, 1)[0] for one in steps))
            self.assertEqual(
                labels, [one.args[1] for one in steps if one.args]
            )

    def test_one_that_was_deleted_meanwhile(self):
        self.make('abc', 'a1', 'b1')
        self.plan()
        self.small.deleted = {'a0'}
        found = maintain.make(self.cloud, {*'abc'})
        self.assertEqual(['a0'], [o.server for o in found.deleted_meanwhile])
        self.assertNotIn(
            'a0', [m.server for one in found.rounds for m in one.moves]
        )

    @ddt.data(
        ('1 move; no server moves twice.', 'abc', 'a1'),
        ('3 moves; 1 server moves twice.', 'ab', 'a1', 'b2'),
    )
    def test_what_is_said(self, args):
        sentence, hosts, *servers = args
        self.make(hosts, *servers)
        self.plan()
        names = {*hosts}
        self.assertEqual(
            [sentence], [*maintain.say_rounds(self.cloud, names, self.found)]
        )
        self.cloud.states['a'].service = {'disabled': True}
        self.assertEqual(
            'a is disabled and not done, and takes no server until enabled.',
            [*maintain.say_rounds(self.cloud, names, self.found)][1],
        )

    def test_disabled_hosts_as_people_count_them(self):
        self.make(['host10', 'host9'])
        self.plan()
        for state in self.cloud.states.values():
            state.service = {'disabled': True}
        found = maintain.say_rounds(self.cloud, {*self.hosts}, self.found)
        self.assertIn('host9, host10 are disabled', ''.join(found))


SERVERS = st.lists(
    st.tuples(
        st.sampled_from('abcde'), st.integers(1, 4), st.sampled_from('xyz---')
    ),
    max_size=12,
)


class RandomTestCase(MaintainTestCase):
    """Each move is right when its turn comes: :meth:`carry_out`."""

    @hypothesis.settings(max_examples=40)
    @hypothesis.given(servers=SERVERS, at_once=st.sampled_from((1, 2, None)))
    def test_any_cloud(self, servers, at_once):
        used, chosen, apart = collections.Counter(), [], set()
        for on, cpus, group in servers:
            if used[on] + cpus > CPUS or (on, group) in apart:
                continue
            used[on] += cpus
            name = () if group == '-' else (group,)
            apart |= {(on, one) for one in name}
            chosen.append((on, cpus, *name))
        self.make('abcde', *chosen)
        self.plan(at_once)
        # Nothing of it is left.
        self.assertIsNone(self.cloud.supposed)
