# SPDX-License-Identifier: Apache-2.0

"""Plans of drain and mend on small clouds; nova is asked in functional."""

import collections
import dataclasses
import functools
import itertools
import random
import types
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
from nova import exception as nova_exception
from nova import objects
import testtools

from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small
from tests.unit.dryrun.plan.small import GROUP
from tests.unit.dryrun.plan.small import Host
from tests.unit.dryrun.plan.small import LABEL
from tests.unit.dryrun.plan.small import Server


class Policies:
    """Judges servers by their labels and groups."""

    on = (LABEL, GROUP)

    def __init__(self, paper):
        self._paper = paper

    def counts_group(self, name):
        return name == GROUP

    def judge(self, server):
        # What stands beside it is what the policies are shown.
        for uuid in self._paper.servers:
            if uuid in server.host_state.instances:
                self._paper.on[uuid] = server.host
            elif self._paper.on[uuid] == server.host != server.uuid:
                self._paper.on[uuid] = ''
        self._paper.on[server.uuid] = server.host
        for name in self._paper.find_violated(server.uuid):
            yield name, 'why'


class PlanTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.small = self.useFixture(small.Small())

    def mend(self, hosts, servers):
        """Return the plan that mends what the policies find."""
        cloud = self.small.build(hosts, servers)
        paper = small.Paper(hosts, servers)
        found = [
            policies.Standing(
                *(uuid, '', 'p', cloud.states[one.host], None),
                violated=[(policy, 'why') for policy in violated],
            )
            for uuid, one in servers.items()
            if (violated := paper.find_violated(uuid))
        ]
        return mend.make(
            types.SimpleNamespace(
                cloud=cloud,
                policies=Policies(small.Paper(hosts, servers)),
                count=lambda: len(found),
                judge=lambda advance: found,
            )
        )

    def drain(self, hosts, servers, *names, change=lambda cloud: None):
        """Return the plan after which hosts are empty.

        :param change: is called with the cloud before
        """
        cloud = self.small.build(hosts, servers)
        change(cloud)
        advance = mock.Mock()
        made = drain.make(cloud, {*names}, advance)
        # After the total, each of which something is known, once.
        number = sum(one.host in names for one in servers.values())
        self.assertEqual(1 + number, advance.call_count)
        return made

    def explain(self, kind='live', change=lambda cloud: None, **fields):
        """Return why the server of a host has no place, as a plan says it."""
        hosts = {'h1': Host(9), 'h2': Host(9), 'h3': Host(1)}
        mine = Server('h1', 2, kind=kind, **fields)
        made = self.drain(hosts, {'a': mine}, 'h1', change=change)
        self.assertEqual([], made.moves)
        [one] = made.without_place
        return one


@ddt.ddt
class PlannerTestCase(PlanTestCase):
    @ddt.data(
        (
            {
                'a': Server('h1', 2, 1),
                'b': Server('h2', 2, 2),
                'c': Server('h3', 2, 3),
            },
            # What one leaves another takes.
            {
                'h1': Host(2, 9),
                'h2': Host(2, 1),
                'h3': Host(2, 2),
                'h4': Host(2, 3),
            },
            (['c', 'b', 'a'], []),
        ),
        (
            # One that must go anyway goes first.
            {
                'a': Server('h1', 1, 0, group=1),
                'b': Server('h1', 1, 1, group=1),
            },
            {'h1': Host(9), 'h2': Host(9), 'h3': Host(9, 1)},
            (['b'], ['a']),
        ),
    )
    @ddt.unpack
    def test_mend(self, servers, hosts, expected):
        made = self.mend(hosts, servers)
        self.assertEqual(
            expected,
            tuple(
                [one.server for one in some]
                for some in (made.moves, made.mended_by_others)
            ),
        )
        self.assertEqual([], made.without_place)

    @ddt.data('', 'a', 'b', 'c', 'abc')
    def test_servers_that_were_deleted_meanwhile(self, gone):
        """What is known of the others stays: they leave their hosts too."""
        servers = {
            'a': Server('h1', 1, group=1),
            'b': Server('h1', 1, 1, group=1),
            'c': Server('h1', 1, 2),
        }
        hosts = {'h1': Host(9), 'h2': Host(9), 'h3': Host(9, 1)}
        self.small.deleted = {*gone}
        made = self.mend(hosts, servers)
        for name, uuid in (
            ('moves', 'b'),
            ('mended_by_others', 'a'),
            ('without_place', 'c'),
        ):
            self.assertEqual(
                [uuid] if uuid not in gone else [],
                [one.server for one in getattr(made, name)],
            )
        self.assertEqual(
            [*gone], [one.server for one in made.deleted_meanwhile]
        )
        self.assertEqual('b' not in gone, bool(made.services))
        self.assertEqual({True}, self.small.asked_softly)

    def test_nobody_is_asked_to_give_up_a_policy(self):
        hosts, servers = (
            {'h1': Host(), 'h2': Host()},
            {'a': Server('h1', 2, 1)},
        )
        for made, helps in (
            (self.mend(hosts, servers), ''),
            # nova.conf has no such policy.
            (
                self.drain(hosts, servers, 'h1'),
                f'make {LABEL} accept h2:nodeh2',
            ),
        ):
            [one] = made.without_place
            self.assertEqual((LABEL, helps), (one.cause, one.would_help))

    def test_what_conductor_or_placement_refuse(self):
        """The scheduler leaves hosts."""

        def age(cloud):
            cloud.states['h1'].hypervisor_version = 2

        def bound(cloud):
            cloud.server.providers['h1'].limits = {'max_unit': 127}

        one = self.explain(change=age)
        self.assertIn('the hypervisors of all hosts left are', one.reason)
        self.assertEqual('hypervisor', one.cause)
        one = self.explain(change=bound)
        self.assertIn('it holds 128 of MEMORY_MB', one.reason)
        self.assertEqual('MEMORY_MB', one.cause)
        self.assertIn('max_unit', one.would_help)

    @ddt.data(
        (
            nova_exception.UnsupportedPolicyException(reason='x'),
            'server group',
            'server group ends the request: ServerGroup policy is not '
            'supported: x',
        ),
        (
            nova_exception.NoValidHost(reason='x'),
            'image traits',
            'image traits ends the request: x',
        ),
        (LookupError('x'), plans.FAULT, 'LookupError: x'),
    )
    @ddt.unpack
    def test_refused_before_the_scheduler(self, problem, cause, reason):
        """By conductor, as explain says it; else nobody knows."""
        one = self.explain(problem)
        self.assertEqual((cause, reason), (one.cause, one.reason))
        then = self.explain('shelved', then=problem)
        self.assertEqual(
            (plans.STATE, cause, 'unshelve it'),
            (then.cause, then.cause_then, then.would_help),
        )
        self.assertTrue(then.has_no_room)
        self.assertTrue(then.reason.endswith(f'. Even then: {reason}'))

    @ddt.data('h2', None)
    def test_a_host_that_only_nova_can_choose(self, to):
        """A request that names a host gets nothing that hosts share."""

        def share(cloud):
            cloud.server.add('pool', traits=[clouds.SHARES], MEMORY_MB=9999)
            if to is None:
                cloud.server.hold('a', h1={'VCPU': 1}, pool={'MEMORY_MB': 64})
                for name in hosts:
                    del cloud.server.providers[name].inventory['MEMORY_MB']

        hosts = {'h1': Host(9), 'h2': Host(9)}
        servers = {'a': Server('h1', 1)}
        [one] = self.drain(hosts, servers, 'h1', change=share).moves
        self.assertEqual(
            (to, 'h2', 'live'), (one.to, one.expected, one.method)
        )

    def test_hosts_that_are_to_be_empty(self):
        """Nothing goes there, whatever room the others leave."""
        servers = {
            'a': Server('h1', 2),
            'b': Server('h2', 2),
            'c': Server('h2', 1, kind='shelved'),
            'd': Server('h3', 1),
        }
        hosts = {f'h{n}': Host() for n in range(1, 4)}
        held = plans.Stuck('e', '', 'p', 'h1', [], 'its resize', 'state', '')
        self.small.held = [held]
        made = self.drain(hosts, servers, 'h1', 'h2')
        [move] = made.moves
        self.assertEqual(('a', 'h3'), (move.server, move.to))
        self.assertEqual(
            [('b', 'VCPU'), ('c', 'state'), ('e', 'state')],
            [(one.server, one.cause) for one in made.without_place],
        )
        self.assertEqual('unshelve it', made.without_place[1].would_help)
        self.assertEqual(['h1', 'h2'], made.to_be_empty)
        self.assertEqual(0, made.room_for_last)
        # One that was deleted softly has its host yet.
        self.assertEqual({False}, self.small.asked_softly)

    def test_whether_there_would_be_room_otherwise(self):
        """They go last, the hardest first, each beside those before it."""

        shelved = {'kind': 'shelved', 'then': 'live'}
        servers = {
            'a': Server('h1', 1, **shelved),
            'b': Server('h1', 2, **shelved),
            'c': Server('h1', 3),
            'd': Server('h1', 1, **shelved),
            'e': Server('h1', 1, 1, **shelved),
            'f': Server('h1', 1, kind='shelved'),
            'g': Server('h1', 3, 1),
            'h': Server('h1', 1, 1),
        }
        made = self.drain({'h1': Host(9), 'h2': Host(6)}, servers, 'h1')
        self.assertEqual(['c'], [one.server for one in made.moves])
        found = {one.server: one for one in made.without_place}
        self.assertEqual([*'ghebadf'], [*found])
        self.assertEqual(
            {'e': LABEL, 'b': '', 'a': '', 'd': 'VCPU', 'f': ''},
            {uuid: found[uuid].cause_then for uuid in 'ebadf'},
        )
        del found['g'], found['h']
        self.assertEqual({plans.STATE}, {one.cause for one in found.values()})
        self.assertEqual([*'ed'], [u for u in found if found[u].has_no_room])
        why = 'nova cannot move it: it is shelved'
        self.assertEqual(
            (why, 'unshelve it'), (found['a'].reason, found['a'].would_help)
        )
        self.assertIn(f'{why}. Even then: 0 of 2 hosts', found['d'].reason)
        self.assertEqual(
            'unshelve it; then free VCPU on h2:nodeh2', found['d'].would_help
        )

    def test_what_a_group_loses(self):
        """A host that none of its members had before is no loss."""
        racks = {'h1': 'r1', 'h2': 'r2', 'h3': 'r2', 'h4': 'r1,r3'}
        servers = {
            'a': Server('h1', 1, group=1),
            'b': Server('h2', 1, group=2),
            'c': Server('h3', 1, group=2),
            'd': Server('h4', 1, group=2),
            'e': Server('h4', 1),
            # As many hosts, of fewer racks.
            'f': Server('h1', 1, group=3),
            'g': Server('h3', 1, group=3),
        }
        hosts = {host: Host(9) for host in racks}

        def rack(cloud):
            for host, name in racks.items():
                rack = objects.Aggregate(
                    id=1, metadata={'failure_domain': name}
                )
                cloud.states[host].aggregates = [rack]
            # h2 is the best: d goes where b is, and f where none of its is.
            cloud.states['h2'].free_ram_mb = 9000

        self.small.host_filters = [small.LabelFilter()]
        self.small.policy = 'soft-anti-affinity'
        made = self.drain(hosts, servers, 'h1', 'h4', change=rack)
        self.assertEqual(4, len(made.moves))
        self.assertEqual(
            [
                plans.Group('2', 'group 2', 2, 3, 1, 3),
                plans.Group('3', 'group 3', 2, 2, 1, 2),
            ],
            made.groups,
        )
        for self.small.policy in ('affinity', 'soft-affinity'):
            united = self.drain(hosts, servers, 'h1', 'h4', change=rack)
            self.assertEqual([], united.groups)

    def test_the_hardest_to_place_first(self):
        """One host takes the third; the second is larger than the first."""
        servers = {
            'a': Server('h1', 1),
            'b': Server('h1', 2),
            'c': Server('h1', 1, 1),
            'd': Server('h1', 1, 2, kind='shelved'),
        }
        hosts = {
            'h1': Host(9, 9),
            'h2': Host(2),
            'h3': Host(2),
            'h4': Host(1, 1),
        }
        made = self.drain(hosts, servers, 'h1')
        self.assertEqual(['c', 'b', 'a'], [one.server for one in made.moves])

    def test_placement_that_does_not_answer_ends_all(self):
        """Whichever question it is."""

        hosts = {'h1': Host(2), 'h2': Host(1), 'h3': Host(2, 1)}
        servers = {'a': Server('h1', 1, group=1), 'b': Server('h1', 2)}
        self.drain(hosts, servers, 'h1')
        number = len(self.small.cloud.server.asked)
        self.assertLess(5, number)
        fault = placement.PlacementFailed(query='q', cause='c')

        def break_down(turn, cloud):
            get = cloud.server.get
            cloud.server.get = mock.Mock(
                wraps=get, side_effect=[mock.DEFAULT] * turn + [fault]
            )

        for turn in range(number):
            self.assertRaises(
                placement.PlacementFailed,
                *(self.drain, hosts, servers, 'h1'),
                change=functools.partial(break_down, turn),
            )

    def test_a_filter_that_fails_is_a_fault_of_one(self):
        class Failing(clouds.KnownFilter):
            __module__ = 'nova.x'

            def host_passes(self, host_state, spec_obj):
                return {}['key']

        self.small.host_filters = [Failing()]
        one = self.explain()
        self.assertEqual('fault', one.cause)
        self.assertIn('KeyError', one.reason)


CLOUDS = st.integers(1, 6).flatmap(
    lambda number: st.tuples(
        st.lists(
            st.builds(Host, st.integers(3, 8), st.integers(0, 2)),
            min_size=number,
            max_size=number,
        ),
        st.lists(
            st.tuples(
                st.integers(0, number - 1),
                st.integers(1, 3),
                st.integers(0, 2),
                st.integers(0, 2),
                st.sampled_from(['live'] * 9 + ['shelved']),
            ),
            max_size=12,
        ),
    )
)


@ddt.ddt
class RandomTestCase(PlanTestCase):
    """Each move is right when its turn comes: :meth:`.small.Paper.go`."""

    @ddt.data('mend', 'drain')
    def test_any_cloud(self, command):
        @hypothesis.settings(max_examples=30)
        @hypothesis.given(CLOUDS, st.sets(st.integers(0, 5)))
        def check(cloud, numbers):
            hosts = {f'h{n}': host for n, host in enumerate(cloud[0])}
            servers = {
                f's{n}': Server(f'h{host}', *rest)
                for n, (host, *rest) in enumerate(cloud[1])
            }
            self.check(command, hosts, servers, {f'h{n}' for n in numbers})

        check()

    def test_batches(self):
        """Full clouds: half of the servers need what others leave."""
        rnd, lengths = random.Random(1), collections.Counter()
        needing = 0
        for _ in range(20):
            hosts = {f'h{n}': Host(4, n % 3) for n in range(6)}
            servers = {
                f's{n}': Server(
                    f'h{rnd.randrange(6)}',
                    rnd.randint(1, 2),
                    rnd.randrange(3),
                    rnd.randrange(3),
                )
                for n in range(12)
            }
            moves = self.mend(hosts, servers).moves
            self.check_batches(hosts, servers, moves)
            needing += self.check_needs(hosts, servers, moves, rnd)
            lengths.update(
                collections.Counter(one.batch for one in moves).values()
            )
        self.assertLess(10, lengths[1])
        self.assertLess(10, lengths.total() - lengths[1])
        self.assertLess(10, needing)

    def check_needs(self, hosts, servers, moves, rnd):
        """Each that needs nothing of a move that fails has its place.

        :returns: how many others there are
        """
        if not moves:
            return 0
        failed = {rnd.choice(moves).server}
        paper = small.Paper(hosts, servers)
        for one in moves:
            if one.server in failed or not failed.isdisjoint(one.needs):
                failed.add(one.server)
            else:
                paper.go(self, one)
        return len(failed) - 1

    def check_batches(self, hosts, servers, moves):
        """Each of a batch has a place while no other has left its host."""
        now = dict(servers)
        for _, batch in itertools.groupby(moves, lambda one: one.batch):
            gone = {
                one.server: dataclasses.replace(now[one.server], host=one.to)
                for one in batch
            }
            for uuid, mine in gone.items():
                there = {f'new {u}': gone[u] for u in gone if u != uuid}
                paper = small.Paper(hosts, now | there)
                self.assertEqual([], paper.find_refused(uuid, mine.host))
            now |= gone

    def check(self, command, hosts, servers, named):
        before, paper = (small.Paper(hosts, servers) for _ in range(2))
        if command == 'mend':
            barred, made = set(), self.mend(hosts, servers)
            leaving = {u for u in servers if before.find_violated(u)}
        else:
            barred = named & hosts.keys()
            made = self.drain(hosts, servers, *barred)
            leaving = {u for u in servers if servers[u].host in barred}
        moved = [one.server for one in made.moves]
        stuck = [one.server for one in made.without_place]
        mended = [one.server for one in made.mended_by_others]
        # Each that must leave is moved, named or mended, once; no other is.
        self.assertEqual(sorted(leaving), sorted([*moved, *stuck, *mended]))
        for one in made.moves:
            paper.go(self, one, barred)
        # No one that is named could go now, though it could before.
        self.assertEqual(
            {},
            {
                uuid: host
                for uuid in stuck
                if servers[uuid].kind == 'live'
                for host in hosts.keys() - barred - {paper.on[uuid]}
                if not paper.find_refused(uuid, host)
            },
        )
        if command != 'mend':
            self.assertEqual([], mended)
            return
        # What is found then is what was named, and nothing else.
        self.assertEqual(
            {*stuck}, {u for u in servers if paper.find_violated(u)}
        )
        # Of a group that is too many on a host, no more go than must.
        for (host, group), number in collections.Counter(
            (one.host, one.group) for one in servers.values()
        ).items():
            beside = [
                one
                for one in made.moves
                if (one.host, servers[one.server].group) == (host, group)
                and one.policies == [GROUP]
            ]
            self.assertLessEqual(len(beside), max(0, number - 1))
