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
import nova.conf
from nova.scheduler.filters import affinity_filter
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import maintain
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.cloud import clouds

conf.register_opts(nova.conf.CONF)

CPUS = 4


class Moving(movable.Evacuation):
    """A server that migrates, without a database."""

    method = movable.LIVE

    def arrive(self, node):
        pass

    def go(self, future, target):
        return future.move(self.uuid, self.spec_obj, target, *self.at_first)


class MaintainTestCase(testtools.TestCase):
    """Hosts of four CPUs each; a server has some, and perhaps a group."""

    def setUp(self):
        super().setUp()
        for name, value in (
            ('nova.scheduler.request_filter.ALL_REQUEST_FILTERS', []),
            ('nova_ext_sched.dryrun.plan.drain.read', self.read),
            ('nova_ext_sched.dryrun.plan.departures.prepare', self.prepare),
            (
                'nova_ext_sched.dryrun.cloud.servers.Reader.find',
                lambda *_: None,
            ),
            (
                'nova_ext_sched.dryrun.plan.planner.gone.find',
                lambda *_, **__: self.deleted,
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))

    def make(self, hosts, *servers):
        """Make a cloud.

        :param hosts: their letters
        :param servers: of each its host's letter, CPUs and perhaps a group
        """
        self.cloud = clouds.Cloud(
            hosts,
            [
                clouds.KnownFilter(),
                affinity_filter.ServerGroupAntiAffinityFilter(),
            ],
        )
        self.held, self.refused, self.deleted = [], {}, set()
        self.servers = {}
        groups = collections.defaultdict(list)
        for number, (on, cpus, *group) in enumerate(servers):
            uuid, cpus = f'{on}{number}', int(cpus)
            instance = self.cloud.stand(uuid, on)
            self.cloud.server.hold(
                uuid, **{on: {'VCPU': cpus, 'MEMORY_MB': 64 * cpus}}
            )
            self.servers[uuid] = instance, cpus, group
            for name in group:
                groups[name].append(uuid)
        self.groups = groups

    def read(self, cloud, hosts):
        leaving = [
            plans.Leaving(uuid, uuid, 'project', instance.host, [])
            for uuid, (instance, _, _) in self.servers.items()
            if instance.host in hosts
        ]
        return drain.Occupants(leaving, self.held)

    def prepare(self, places, leaving, advance):
        found = {}
        for one in leaving:
            advance()
            instance, cpus, group = self.servers[one.server]
            spec = clouds.make_spec(cpus)
            key = likeness.Key(str(cpus), is_whole=not group)
            like = places.find_like(key, spec.obj_clone)
            for name in group:
                members = self.groups[name]
                spec.instance_group = objects.InstanceGroup(
                    uuid=name,
                    name=name,
                    policy='anti-affinity',
                    rules={},
                    members=members,
                    hosts=[self.servers[uuid][0].host for uuid in members],
                )
            mine = Moving(one.server, spec, like)
            mine.at_first = (
                self.cloud.find_node(instance.host, instance.node),
                claims.read_taken(instance),
            )
            if like.is_whole:
                mine.spec_obj = like.shared.spec_obj
            found[one.server] = self.refused.get(one.server, mine)
        return found

    def plan(self, *args, **kwargs):
        hosts = {state.host for state in self.cloud.states.values()}
        self.found = maintain.make(self.cloud, hosts, *args, **kwargs)
        self.carry_out(hosts)
        return [''.join(h[-1] for h in one.hosts) for one in self.found.rounds]

    def carry_out(self, hosts):
        """Make the moves on paper; each must be right when its turn comes."""
        on = {
            uuid: instance.host
            for uuid, (instance, _, _) in self.servers.items()
        }
        turns = []
        for one in self.found.rounds:
            turns += one.hosts
            for move in one.moves:
                uuid, to = move.server, move.expected
                self.assertEqual(on[uuid], move.host)
                self.assertIn(move.host, one.hosts)
                self.assertNotIn(to, one.hosts)
                used = sum(
                    self.servers[other][1] for other in on if on[other] == to
                )
                self.assertLessEqual(used + self.servers[uuid][1], CPUS)
                for name in self.servers[uuid][2]:
                    others = {*self.groups[name]} - {uuid}
                    self.assertNotIn(to, {on[other] for other in others})
                on[uuid] = to
            self.assertFalse({*one.hosts} & {*on.values()}, one)
            batches = [move.batch for move in one.moves]
            self.assertEqual(
                [*range(1, len({*batches}) + 1)], [*dict.fromkeys(batches)]
            )
        kept = [one.host for one in self.found.not_emptied]
        self.assertEqual(sorted(hosts), sorted(turns + kept))
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
        self.plan()
        self.assertEqual(
            [['hosth1'], ['hosth2'], ['hosth10']],
            [one.hosts for one in self.found.rounds],
        )

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
        self.assertEqual({'hosta'}, {move.expected for move in third})

    def test_a_full_host_takes_servers_once_it_was_empty(self):
        """Placement knows of no room there; for like and other requests."""
        for group in ((), ('group',)):
            self.make('ab', ('a', 4, *group))
            self.assertEqual(['b', 'a'], self.plan())
            self.make('abc', ('a', 4, *group), ('b', 4, *group))
            self.assertEqual(['c', 'a', 'b'], self.plan())
            self.assertEqual(
                ['hostc', 'hosta'], [move.expected for move in self.moves]
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
        self.make('abc', 'a3', 'b2')
        self.refused['b1'] = admission.NotMovable(
            'its task_state is x', 'wait'
        )
        self.assertEqual(['c', 'a'], self.plan())
        [kept] = self.found.not_emptied
        self.assertEqual('hostb', kept.host)
        self.assertEqual('state', kept.without_place[0].cause)
        # Another may still fill it.
        self.assertEqual(3, len(self.found.rounds) + 1)

    def test_what_holds_a_host(self):
        self.make('ab', 'a1')
        self.held = [
            plans.Stuck(
                'x', 'x', 'project', 'hostb', [], 'its resize', 'state', 'wait'
            )
        ]
        self.assertEqual(['a'], self.plan())
        self.assertEqual('hostb', self.found.not_emptied[0].host)

    def test_room_that_a_later_round_makes(self):
        """The large server fits where two small ones were."""
        self.make('abc', 'a4', 'b1', 'b1', 'c1', 'c1')
        # It was tried before them, in vain.
        self.assertEqual(['b', 'c', 'a'], self.plan())

    def test_hosts_of_a_round_are_of_one_domain(self):
        self.make('abcd', 'a1', 'b1', 'c1', 'd1')
        racks = {'hosta': 'x', 'hostb': 'y', 'hostc': 'x', 'hostd': 'y'}
        with (
            mock.patch.object(
                maintain.selection, 'domains_of', lambda one: {one}
            ),
            mock.patch.object(self.cloud, 'aggregates_of', racks.get),
        ):
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

    def test_failover_that_is_kept(self):
        """While d is empty, a has nowhere to go: no host of three may fail."""

        class Failover:
            def __init__(self, cloud, advance):
                pass

            def find_lost(_, future, empty):
                self.assertIs(future, self.cloud.supposed)
                if len(empty) > 2:
                    return 'hostc'
                return 'hosta' if 'hostd' in empty else None

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.plan.failover.Failover', Failover
            )
        )
        self.make('abcd', 'd1')
        self.assertEqual(['ab', 'c'], self.plan(None, keeps_failover=True))
        [kept] = self.found.not_emptied
        self.assertEqual(('hostd', 'hosta'), (kept.host, kept.lost))

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
        self.deleted = {'a0'}
        found = maintain.make(self.cloud, {'hosta', 'hostb', 'hostc'})
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
        names = {state.host for state in self.cloud.states.values()}
        self.assertEqual(
            [sentence], [*maintain.describe(self.cloud, names, self.found)]
        )
        self.cloud.states['a'].service = {'disabled': True}
        self.assertEqual(
            'hosta is disabled and not done, and takes no server until '
            'enabled.',
            [*maintain.describe(self.cloud, names, self.found)][1],
        )

    def test_disabled_hosts_as_people_count_them(self):
        self.make('ab', 'a1')
        self.plan()
        for uuid, name in (('a', 'host10'), ('b', 'host9')):
            state = self.cloud.states[uuid]
            state.host, state.service = name, {'disabled': True}
        found = maintain.describe(self.cloud, {'host9', 'host10'}, self.found)
        self.assertIn('host9, host10 are disabled', [*found][1])


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
