# SPDX-License-Identifier: Apache-2.0

"""Plans of drain and mend on small clouds; nova is asked in functional."""

import collections
import dataclasses
import functools
import itertools
import random
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
from nova import exception as nova_exception
from nova import objects

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import stuck
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small
from tests.unit.dryrun.plan.small import GROUP
from tests.unit.dryrun.plan.small import Host
from tests.unit.dryrun.plan.small import LABEL
from tests.unit.dryrun.plan.small import Server


class PlanTestCase(small.TestCase):
    def explain(self, change=lambda cloud: None, **fields):
        """Return why the server of a host has no place, as a plan says it."""
        self.small.change = change
        hosts, servers = small.parse('h1=9; h2=9; h3=1')
        servers['a'] = Server('h1', 2, **fields)
        made = self.small.drain((hosts, servers), 'h1')
        self.assertEqual([], made.moves)
        [one] = made.stuck
        return one


@ddt.ddt
class PlannerTestCase(PlanTestCase):
    @ddt.data(
        # What one leaves another takes.
        ('h1=2/9 a=2/1; h2=2/1 b=2/2; h3=2/2 c=2/3; h4=2/3',
         'c:h4 b:h3 a:h2', ''),
        # Each may stay once the other has left.
        ('h1=9 a=1+g b=1+g; h2=9', 'a:h2', 'b'),
        # One that must go anyway goes first.
        ('h1=9 a=1+g b=1/1+g; h2=9; h3=9/1', 'b:h3', 'a'),
        # So does the one that violates most.
        ('h1=9 a=1/1 b=1/1+g c=1+g; h2=1/1; h3=9/1', 'b:h2 a:h3', 'c'),
    )  # fmt: skip
    @ddt.unpack
    def test_mend(self, cloud, moves, mended):
        made = self.small.mend(cloud)
        found = small.say(made.moves), small.name(made.mended), made.stuck
        self.assertEqual((moves, mended, []), found)

    def test_a_host_that_refused_is_asked_again_once_a_server_left(self):
        self.small.filter.most = 2
        made = self.small.mend('h1=9 a=2/1 c=3/1; h2=9/1 b=1')
        self.assertEqual('a:h2 b:h1 c:h2', small.say(made.moves))

    @ddt.data('', 'a', 'b', 'c', 'abc')
    def test_servers_that_were_deleted_meanwhile(self, gone):
        """What is known of the others stays: they leave their hosts too."""
        self.small.deleted = {*gone}
        made = self.small.mend('h1=9 a=1+g b=1/1+g c=1/2; h2=9; h3=9/1')
        found = made.moves, made.mended, made.stuck, made.gone
        expected = ['' if one in gone else one for one in 'bac']
        expected.append(' '.join(gone))
        self.assertEqual(expected, [*map(small.name, found)])
        self.assertEqual('b' not in gone, bool(made.services))
        self.assertEqual({True}, self.small.asked_softly)

    def test_servers_whose_deletion_has_not_ended(self):
        """They have their hosts, whatever nova would do with them."""
        self.small.deleting = {'a': False, 'b': True}
        made = self.small.drain('h1=9 a=1 b=1:shelved c=1; h2=9', 'h1')
        self.assertEqual('c:h2', small.say(made.moves))
        self.assertEqual('a:state b:state', small.say(made.stuck))
        waits, again = (one.helps for one in made.stuck)
        self.assertEqual('wait until it is deleted', waits)
        self.assertIn('openstack server delete b); if that', again)
        self.assertEqual([], made.gone)

    def test_like_servers_in_other_states(self):
        """The state of each decides how nova moves it."""
        made = self.small.drain('h1=9 a=1 b=1:stopped c=1; h2=9', 'h1')
        methods = {one.uuid: one.how for one in made.moves}
        self.assertEqual({'a': 'live', 'b': 'cold', 'c': 'live'}, methods)

    def test_one_that_left_while_it_is_being_deleted(self):
        """It is told once, with what ends its deletion."""
        self.small.deleting, self.small.now_on = {'a': False}, {'a': 'h2'}
        found = self.small.drain('h1=4 a=1; h2=4', 'h1')
        self.assertEqual(([], []), (found.moves, found.moved))
        self.assertEqual('a', small.name(found.stuck))

    def test_servers_that_were_moved_meanwhile(self):
        """Beside an applier; another host that is to be empty is none."""
        self.small.now_on = {'a': 'h3', 'b': 'h3', 'c': 'h2'}
        cloud = 'h1=9 a=1 b=1:shelved c=1 d=1; h2=9; h3=9'
        made = self.small.drain(cloud, 'h1', 'h2')
        self.assertEqual(
            ('c:h3 d:h3', 'a b'),
            (small.say(made.moves), small.name(made.moved)),
        )
        self.assertEqual([], made.stuck)

    @ddt.data(
        # Of equal ones, that with the fewest hosts, then the largest.
        ({}, 'a'),
        ({'a': '501'}, 'b'),
        ({'a': 'high', 'b': '999'}, 'c'),
        ({'c': 'low', 'b': '251'}, 'c'),
        # What cannot be read is none.
        ({'a': 'urgent', 'b': '501'}, 'a'),
    )
    @ddt.unpack
    def test_who_comes_first_has_the_last_places(self, first, stuck):
        hosts, servers = small.parse('h1=9 a=1 b=2 c=3; h2=3; h3=3')
        for name, value in first.items():
            servers[name] = dataclasses.replace(servers[name], first=value)
        self.small.filter.most = 1
        drained = self.small.drain((hosts, servers), 'h1')
        survived = self.small.survive((hosts, servers))
        maintained = self.small.maintain((hosts, servers))
        [failed] = survived.failed
        for made in (drained, failed):
            self.assertEqual(stuck, small.name(made.stuck))
            self.assertEqual(2, len(made.moves))
        kept = {one.on: one.stuck for one in maintained.kept}
        self.assertEqual(stuck, small.name(kept['h1']))
        remarks = [
            '1 server counts as without a restart priority: expected 1 to '
            '1000, highest to lowest, yes or no in '
            "instanceha:restart_priority, got 'urgent'."
        ] * ('urgent' in first.values())
        for found in (drained, survived, maintained):
            self.assertEqual(remarks, found.remarks)

    def test_who_comes_first_need_not_have_the_fewest_hosts(self):
        """One host takes a, and two take the others."""
        hosts, servers = small.parse('h1=9 a=3 b=1 c=1; h2=3; h3=1')
        self.small.filter.most = 1
        for first, left in (('500', 'c'), ('501', 'a')):
            for name in 'bc':
                changed = dataclasses.replace(servers[name], first=first)
                servers[name] = changed
            made = self.small.drain((hosts, servers), 'h1')
            self.assertEqual(left, small.name(made.stuck))

    def test_nobody_is_asked_to_give_up_a_policy(self):
        cloud = 'h1=4 a=2/1; h2=4'
        for made, helps in (
            (self.small.mend(cloud), ''),
            # nova.conf has no such policy.
            (self.small.drain(cloud, 'h1'), 'label h2:nodeh2 (not tried)'),
        ):
            [one] = made.stuck
            self.assertEqual((LABEL, helps), (one.cause, one.helps))
            # Its own host is none, whatever else refuses it there.
            self.assertIn('1 is excluded by the request', one.said)

    def test_what_would_help_takes_little(self):
        """All plans of a command share a part of the time that it takes."""
        now, asked = [100.0], []

        def find(judged, trials, bounds, without):
            asked.append(bounds.seconds)
            now[0] += 3
            return []

        with (
            mock.patch.object(stuck.advice, 'find', find),
            mock.patch.object(process, 'count_seconds', lambda: now[0]),
        ):
            self.small.drain('h1=30 a=5 b=6 c=7 d=8; h2=4', 'h1')
        # Of a hundred seconds eight: three times three are more.
        *before, last = asked
        self.assertEqual([1.0, 1.0, 1.0], before)
        self.assertLess(last, 0)

    def test_what_placement_refuses(self):
        """The scheduler leaves hosts."""

        def bound(cloud):
            cloud.server.providers['h1'].limits = {'max_unit': 127}

        one = self.explain(bound)
        self.assertIn('it holds 128 of MEMORY_MB', one.said)
        self.assertEqual('MEMORY_MB', one.cause)
        self.assertIn('max_unit', one.helps)

    @ddt.data(
        (nova_exception.UnsupportedPolicyException(reason='x'), 'server group',
         'server group ends the request: ServerGroup policy is not supported: '
         'x'),
        (nova_exception.NoValidHost(reason='x'), 'image traits',
         'image traits ends the request: x'),
        (LookupError('x'), 'fault', 'LookupError: x'),
    )  # fmt: skip
    @ddt.unpack
    def test_refused_before_the_scheduler(self, problem, cause, reason):
        """By conductor, as explain says it; else nobody knows."""
        one = self.explain(problem=problem)
        self.assertEqual((cause, reason), (one.cause, one.said))

    def test_a_filter_that_fails_is_a_fault_of_one(self):
        self.small.host_filters = [small.Filter(lambda *_: {}['key'])]
        one = self.explain()
        self.assertEqual('fault', one.cause)
        self.assertIn('KeyError', one.said)

    @ddt.data('h2', None)
    def test_a_host_that_only_nova_can_choose(self, to):
        """A request that names a host gets nothing that hosts share."""

        def share(cloud):
            cloud.server.add('pool', traits=[clouds.SHARES], MEMORY_MB=9999)
            if to is None:
                cloud.server.hold('a', h1={'VCPU': 1}, pool={'MEMORY_MB': 64})
                for name in ('h1', 'h2'):
                    del cloud.server.providers[name].inventory['MEMORY_MB']

        self.small.change = share
        [one] = self.small.drain('h1=9 a=1; h2=9', 'h1').moves
        self.assertEqual((to, 'h2', 'live'), (one.to, one.expected, one.how))

    def test_hosts_that_are_to_be_empty(self):
        """Nothing goes there, whatever room the others leave."""
        cloud = 'h1=4 a=2; h2=4 b=2 c=1:shelved; h3=4 d=1'
        self.small.held = [('e', 'h1')]
        made = self.small.drain(cloud, 'h1', 'h2')
        found = (small.say(made.moves), small.say(made.stuck))
        self.assertEqual(('a:h3', 'b:VCPU c:state e:state'), found)
        self.assertEqual('unshelve it', made.stuck[1].helps)
        self.assertEqual((['h1', 'h2'], 0), (made.empty, made.last))
        # One that was deleted softly has its host yet.
        self.assertEqual({False}, self.small.asked_softly)
        # Others that get no server.
        self.small.held = []
        made = self.small.drain('h1=4 a=2; h2=4; h3=4', 'h1', not_to={'h2'})
        self.assertEqual('a:h3', small.say(made.moves))

    def test_what_a_group_loses(self):
        """A host that none of its members had before is no loss."""
        racks = {'h1': 'r1', 'h2': 'r2', 'h3': 'r2', 'h4': 'r1,r3'}

        def rack(cloud):
            for host, name in racks.items():
                domain = {'failure_domain': name}
                cloud.states[host].aggregates = [
                    objects.Aggregate(id=1, metadata=domain)
                ]
            # h2 is the best: d goes where b is, and f where none of its is.
            cloud.states['h2'].free_ram_mb = 900_000
            # The same is known of hosts where servers arrive.
            cloud.under_way = {'e': {'h2', 'h4'}}

        self.small.change = rack
        self.small.host_filters = [clouds.KnownFilter()]
        cloud = 'h1=9 a=1+1 f=1+3; h2=9 b=1+2; h3=9 c=1+2 g=1+3; h4=9'
        cloud += ' d=1+2 e=1'
        for self.small.policy, expected in (
            # Of the first as many hosts, of fewer racks.
            ('soft-anti-affinity', 'group 3 2 2 1 2 group 2 2 3 1 3'),
            ('affinity', ''),
            ('soft-affinity', ''),
        ):
            made = self.small.drain(cloud, 'h1', 'h4')
            self.assertEqual(4, len(made.moves))
            said = [[*vars(one).values()][1:] for one in made.closer]
            found = ' '.join(map(str, itertools.chain(*said)))
            self.assertEqual(expected, found)

    def test_the_hardest_to_place_first(self):
        """One host takes the third; the second is larger than the first."""
        made = self.small.drain(
            'h1=9/9 a=1 b=2 c=1/1 d=1/2; h2=2; h3=2; h4=1/1', 'h1'
        )
        self.assertEqual('c:h4 b:h2 a:h3', small.say(made.moves))
        # What was left for the last of them.
        self.assertEqual(1, made.last)

    def test_placement_that_does_not_answer_ends_all(self):
        """Whichever question it is."""
        cloud = 'h1=3 a=1+g b=2; h2=1; h3=2/1'
        self.small.drain(cloud, 'h1')
        number = len(self.small.cloud.server.asked)
        self.assertLess(5, number)
        fault = placement.PlacementFailed(query='q', cause='c')

        def break_down(turn, cloud):
            get = cloud.server.get
            cloud.server.get = mock.Mock(
                wraps=get, side_effect=[mock.DEFAULT] * turn + [fault]
            )

        asked = placement.PlacementFailed, self.small.drain, cloud, 'h1'
        for turn in range(number):
            self.small.change = functools.partial(break_down, turn)
            self.assertRaises(*asked)


NUMBER = st.integers(0, 2)
HOSTS = st.builds(Host, st.integers(3, 8), NUMBER)
KINDS = st.sampled_from(['live'] * 9 + ['shelved'])
SERVERS = st.tuples(
    st.integers(0, 5), st.integers(1, 3), NUMBER, NUMBER, KINDS
)
CLOUDS = st.tuples(
    st.lists(HOSTS, min_size=1, max_size=6), st.lists(SERVERS, max_size=12)
)


@ddt.ddt
class RandomTestCase(PlanTestCase):
    """Each move is right when its turn comes: :meth:`.small.Paper.go`."""

    @ddt.data('drain', 'mend')
    def test_any_cloud(self, command):
        @hypothesis.settings(max_examples=25)
        @hypothesis.given(CLOUDS)
        def check(cloud):
            hosts = {f'h{number}': one for number, one in enumerate(cloud[0])}
            servers = {
                f's{number}': Server(f'h{at % len(hosts)}', *rest)
                for number, (at, *rest) in enumerate(cloud[1])
            }
            self.check(command, hosts, servers)

        check()

    def check(self, command, hosts, servers):
        paper, barred = small.Paper(hosts, servers), {'h0', 'h3'}
        leaving = [u for u in servers if servers[u].host in barred]
        if command == 'mend':
            barred, leaving = set(), [*filter(paper.find_violated, servers)]
        named = barred if command == 'drain' else ()
        made = getattr(self.small, command)((hosts, servers), *named)
        names = [one.uuid for one in (*made.moves, *made.stuck, *made.mended)]
        # Each that must leave is moved, named or mended, once; no other is.
        self.assertEqual(sorted(leaving), sorted(names))
        for one in made.moves:
            paper.go(self, one, barred)
        # No one that is named could go now, though it could before.
        for one in made.stuck:
            for host in hosts.keys() - barred - {one.at}:
                if servers[one.uuid].kind == 'live':
                    self.assertTrue(paper.find_refused(one.uuid, host))
        if command == 'drain':
            return
        # What is found then is what was named, and nothing else.
        stuck = {one.uuid for one in made.stuck}
        self.assertEqual(stuck, {*filter(paper.find_violated, servers)})
        # Of a group that is too many on a host, no more go than must.
        number = collections.Counter(
            (one.host, one.group) for one in servers.values()
        )
        number.subtract(
            (one.at, servers[one.uuid].group)
            for one in made.moves
            if one.violated == [GROUP]
        )
        self.assertNotIn(0, number.values())
        # What is shared says what each by itself would.
        filters = self.small.host_filters
        other = small.Unknown(lambda *_: True)
        self.small.host_filters = (*filters, other)
        alone = self.small.mend((hosts, servers))
        self.small.host_filters = filters
        self.assertEqual(small.say(alone.moves), small.say(made.moves))

    def test_batches(self):
        """Full clouds: half of the servers need what others leave."""
        rnd, lengths = random.Random(1), collections.Counter()
        needing = 0
        for _ in range(20):
            hosts = {f'h{n}': Host(4, n % 3) for n in range(6)}
            servers = {}
            for n in range(12):
                numbers = (rnd.randrange(most) for most in (6, 2, 3, 3))
                host, cpus, label, group = numbers
                servers[f's{n}'] = Server(f'h{host}', cpus + 1, label, group)
            moves = self.small.mend((hosts, servers)).moves
            batches = collections.Counter(one.batch for one in moves)
            lengths.update(batches.values())
            # Each of a batch has a place while no other has left its host.
            now = dict(servers)
            for _, batch in itertools.groupby(moves, lambda one: one.batch):
                gone = {
                    one.uuid: dataclasses.replace(now[one.uuid], host=one.to)
                    for one in batch
                }
                for uuid, mine in gone.items():
                    there = {f'new {u}': gone[u] for u in gone if u != uuid}
                    paper = small.Paper(hosts, now | there)
                    self.assertEqual([], paper.find_refused(uuid, mine.host))
                now |= gone
            # Each that needs nothing of a move that fails has its place.
            failed = {rnd.choice(moves).uuid} if moves else {''}
            paper = small.Paper(hosts, servers)
            for one in moves:
                if one.uuid in failed or not failed.isdisjoint(one.needed):
                    failed.add(one.uuid)
                else:
                    paper.go(self, one)
            needing += len(failed) - 1
        self.assertLess(10, lengths[1])
        self.assertLess(10, lengths.total() - lengths[1])
        self.assertLess(10, needing)


@ddt.ddt
class CrowdingTestCase(small.TestCase):
    """Twelve servers leave a; nova's weigher prefers b while it has memory."""

    def drain(self, room, kind='whole', number=12, others=1):
        rooms = {'a': Host(100), 'b': Host(room, ram=900_000)}
        rooms |= {name: Host(others) for name in 'cdef'}
        hints = {'different_host': ['nobody']} if kind == 'part' else None
        found = {f's{n}': Server('a', 1, hints=hints) for n in range(number)}
        if kind == 'unknown':
            self.small.host_filters += (small.Unknown(lambda *_: True),)
        made = self.small.drain((rooms, found), 'a')
        return [(*vars(one).values(),) for one in made.crowded]

    @ddt.data(*itertools.product(('whole', 'part', 'unknown'), (10, 11)))
    @ddt.unpack
    def test_by_the_weigher(self, kind, room):
        """b fills up in the end."""
        [crowded] = self.drain(room, kind)
        self.assertEqual(('b', room, 1, 'RAMWeigher'), crowded)

    @ddt.data(
        # Servers that b takes, of all servers, and that others take.
        (9, 12, 1),
        # Nobody else gets one.
        (12, 12, 1),
        # Not four times what others get.
        (11, 23, 3),
    )
    @ddt.unpack
    def test_not_crowded(self, room, number, others):
        self.assertEqual([], self.drain(room, 'whole', number, others))

    @mock.patch.object(
        destinations.Destinations, 'find_weigher', side_effect=ValueError
    )
    def test_a_weigher_that_fails(self, find):
        """The plan is made all the same; few were asked."""
        self.assertEqual([('b', 10, 1, '')], self.drain(10))
        self.assertEqual(2, find.call_count)

    @mock.patch.object(destinations.Destinations, 'find_weigher')
    def test_nobody_asks(self, find):
        """survive and maintain tell nothing of it."""
        rooms = {name: Host(100) for name in 'ab'}
        servers = {f's{n}': Server('a', 1) for n in range(12)}
        [failure] = self.small.survive((rooms, servers)).failed
        self.assertEqual(12, len(failure.moves))
        found = self.small.maintain((rooms, servers))
        self.assertEqual([0, 12], [len(one.moves) for one in found.rounds])
        find.assert_not_called()
        self.small.drain((rooms, servers), 'a')
        find.assert_called()
