# SPDX-License-Identifier: Apache-2.0

"""Plans of moves, on clouds of plain data; nova is asked in functional.

A toy cloud has hosts with a capacity and a label, and servers with a size,
the label that they need and perhaps a server group, of which a host may hold
one server.
"""

import collections
import contextlib
import dataclasses
import itertools
import random
import types
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
from nova import exception as nova_exception
import nova.conf
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

conf.register_opts(nova.conf.CONF)

LABEL, GROUP = 'isolation', 'anti-affinity'


@dataclasses.dataclass(frozen=True)
class Host:
    capacity: int
    label: int


@dataclasses.dataclass(frozen=True)
class Server:
    host: str
    size: int
    label: int
    group: int = 0
    fixed: bool | str = False


class Spec(types.SimpleNamespace):
    """Stands for a RequestSpec."""

    def __contains__(self, field):
        return field in vars(self)


class Toy:
    """Stands for Snapshot, Fork and Destinations at once."""

    providers = types.SimpleNamespace(served={'disks': ()})
    #: Providers besides the host that servers take something of.
    taken = ()
    #: What servers hold and could not be given any more.
    held = ()
    #: Its states are made anew whenever they are read.
    touched = ()

    def __init__(self, hosts, servers):
        self.hosts, self.servers = hosts, servers
        self.moved, self.forks = {}, 0
        self.cloud = self.ledger = self
        # What no cell has may be in this one.
        self.silent_cells = {'cell': 'no answer'}

    # The cloud.

    def place_of(self, uuid):
        return self.moved.get(uuid, self.servers[uuid].host)

    def on_host(self, host):
        return [u for u in self.servers if self.place_of(u) == host]

    def free(self, host):
        return self.hosts[host].capacity - sum(
            self.servers[uuid].size for uuid in self.on_host(host)
        )

    def violated(self, uuid, host=None):
        mine = self.servers[uuid]
        host = host or self.place_of(uuid)
        beside = [
            self.servers[other].group
            for other in self.on_host(host)
            if other != uuid
        ]
        return [LABEL] * (mine.label != self.hosts[host].label) + [GROUP] * (
            mine.group > 0 and mine.group in beside
        )

    def refusals(self, uuid, host):
        causes = self.violated(uuid, host)
        if self.free(host) < self.servers[uuid].size:
            causes.append('VCPU')
        return causes

    # Snapshot.

    @contextlib.contextmanager
    def fork(self):
        self.forks += 1
        yield self
        self.forks -= 1

    def ask_cells(self, select, *args):
        return {}

    def services_of(self, hosts):
        return dict.fromkeys(hosts, 'uuid')

    @property
    def states(self):
        return {
            host: types.SimpleNamespace(
                host=host,
                uuid=host,
                nodename=host,
                allocation_candidates=[
                    {'allocations': dict.fromkeys([host, *self.taken])}
                ],
                aggregates=[],
                instances=dict.fromkeys(self.on_host(host)),
            )
            for host in self.hosts
        }

    # Fork and ledger.

    def find_violated(self, uuid):
        return [*self.held]

    def count_under_way(self):
        assert not self.moved
        self.counts_under_way = True

    def go(self, uuid, barred, target):
        assert self.forks
        assert uuid not in self.moved
        assert self.refusals(uuid, target.host) == []
        assert target.host not in barred
        self.moved[uuid] = target.host
        return True

    # Destinations.

    def begin(self, barred):
        """Each knows its own, from where it was prepared."""

    send = destinations.Destinations.send

    def find(self, mine):
        _, states = self.judge(mine.spec_obj)
        return states[0] if states else None

    def count(self, mine):
        return len(self.judge(mine.spec_obj)[1])

    def explain(self, mine):
        return self.judge(mine.spec_obj)

    def judge(self, spec):
        here = self.place_of(spec.uuid)
        found = matrix.Matrix({host: host for host in self.hosts})
        causes = {host: self.refusals(spec.uuid, host) for host in self.hosts}
        for host in {here, *spec.barred} & self.hosts.keys():
            causes[host] = [refusals.IGNORED.cause]
        for refusal in (
            refusals.Refusal('are closed', LABEL, rank=refusals.CLOSED),
            *(refusals.Refusal(f'are {one}', one) for one in (GROUP, 'VCPU')),
            refusals.IGNORED,
        ):
            found.add(
                'placement',
                refusal.cause,
                refused={
                    host: refusal
                    for host, mine in causes.items()
                    if refusal.cause in mine
                },
            )
        return found, [
            state
            for host, state in sorted(self.states.items())
            if not causes[host]
        ]


class Policies:
    on = (LABEL, GROUP)

    def __init__(self, toy):
        self._toy = toy

    def counts_group(self, name):
        return name == GROUP

    def judge(self, server):
        assert self._toy.forks
        violated = self._toy.violated(server.uuid)
        # What stands beside it is what the policies are shown.
        beside = {
            other
            for other in self._toy.on_host(server.host_state.host)
            if other != server.uuid
        }
        assert beside == set(server.host_state.instances)
        for name in violated:
            yield name, 'why'


class PlanTestCase(testtools.TestCase):
    group_policy = 'anti-affinity'
    told = 'their hypervisors are older'

    @contextlib.contextmanager
    def cloud(self, hosts, servers):
        """Let nova's part be played by a toy."""
        self.toy = toy = Toy(hosts, servers)

        def prepare(_, uuid, barred=()):
            mine = servers[uuid]
            found = types.SimpleNamespace(
                uuid=uuid,
                spec_obj=Spec(
                    uuid=uuid,
                    flavor=types.SimpleNamespace(
                        memory_mb=mine.size, vcpus=mine.size
                    ),
                    barred=barred,
                    instance_group=mine.group
                    and types.SimpleNamespace(
                        uuid=mine.group,
                        name=f'group {mine.group}',
                        policy=self.group_policy,
                        members=[
                            other
                            for other in servers
                            if servers[other].group == mine.group
                        ],
                    ),
                ),
                method='live',
                why_cold='',
                go=lambda future, target: future.go(uuid, barred, target),
                tell_refused=lambda nodes: self.told,
            )
            if mine.fixed:
                then = found if mine.fixed == 'asked' else None
                raise admission.NotMovable(
                    'it is shelved', 'unshelve it', then
                )
            return found

        with (
            mock.patch.object(movable, 'migrate', prepare),
            mock.patch.object(destinations, 'Destinations', lambda _: toy),
            mock.patch.object(
                mend.departures,
                'prepare',
                lambda _, leaving, _barred: departures.prepare_each(
                    leaving,
                    lambda one: movable.migrate(toy, one.server),
                ),
            ),
        ):
            yield toy

    def make(self, hosts, servers):
        """Return the plan that mends what the policies find."""
        with self.cloud(hosts, servers) as toy:
            found = [
                policies.Standing(
                    uuid,
                    '',
                    'p',
                    toy.states[one.host],
                    None,
                    violated=[(policy, 'why') for policy in violated],
                )
                for uuid, one in servers.items()
                if (violated := toy.violated(uuid))
            ]
            made = mend.make(
                types.SimpleNamespace(
                    cloud=toy,
                    policies=Policies(toy),
                    count=lambda: len(found),
                    judge=lambda advance: found,
                )
            )
        self.assertTrue(toy.counts_under_way)
        return made

    def empty(self, hosts, servers, barred):
        """Return the plan after which hosts are empty, the hardest first."""
        with self.cloud(hosts, servers) as toy:
            return self.plan(
                [
                    plans.Leaving(uuid, '', 'p', one.host, [])
                    for uuid, one in servers.items()
                    if one.host in barred
                ],
                lambda uuid: movable.migrate(toy, uuid, barred),
            )

    def plan(self, leaving, prepare):
        advance = mock.Mock()
        made = planner.plan(
            self.toy,
            planner.Goal(leaving=leaving, never_given_up=(LABEL, GROUP)),
            lambda leaving, _: departures.prepare_each(
                leaving, lambda one: prepare(one.server)
            ),
            advance,
        )
        # Each of which something is known, once.
        self.assertEqual(len(leaving), advance.call_count)
        return made


@ddt.ddt
class PlannerTestCase(PlanTestCase):
    def test_what_one_leaves_another_takes(self):
        servers = {
            'a': Server('h1', 2, 1),
            'b': Server('h2', 2, 2),
            'c': Server('h3', 2, 3),
        }
        hosts = {
            'h1': Host(2, 9),
            'h2': Host(2, 1),
            'h3': Host(2, 2),
            'h4': Host(2, 3),
        }
        made = self.make(hosts, servers)
        self.assertEqual(['c', 'b', 'a'], [one.server for one in made.moves])
        self.assertEqual([], made.without_place)

    def test_one_that_must_go_anyway_goes_first(self):
        servers = {
            'a': Server('h1', 1, 0, group=1),
            'b': Server('h1', 1, 1, group=1),
        }
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 0), 'h3': Host(9, 1)}
        made = self.make(hosts, servers)
        self.assertEqual(['b'], [one.server for one in made.moves])
        self.assertEqual(['a'], [one.server for one in made.mended_by_others])

    def test_why_it_has_no_place(self):
        servers = {'a': Server('h1', 2, 1), 'b': Server('h2', 1, 1)}
        hosts = {'h1': Host(2, 0), 'h2': Host(2, 1), 'h3': Host(2, 0)}
        made = self.make(hosts, servers)
        [one] = made.without_place
        self.assertEqual('VCPU', one.cause)
        self.assertEqual('make VCPU accept h2', one.would_help)
        self.assertIn('1 is VCPU', one.reason)
        # The scheduler leaves hosts.
        for self.told, reason, cause in (
            ('their hypervisors are older', 'their hyper', 'hypervisor'),
            ('', 'nova-scheduler has hosts left, but can claim', 'fault'),
        ):
            with mock.patch.object(Toy, 'find', lambda *_: None):
                [one] = self.empty(
                    hosts, {'b': Server('h1', 1, 0)}, ['h1']
                ).without_place
            self.assertIn(reason, one.reason)
            self.assertEqual(cause, one.cause)
        with (
            mock.patch.object(Toy, 'held', [('VCPU', 3)]),
            mock.patch.object(Toy, 'go', lambda *_: False),
        ):
            [one] = self.empty(
                hosts, {'b': Server('h1', 1, 0)}, ['h1']
            ).without_place
        self.assertIn('it holds 3 of VCPU', one.reason)
        self.assertEqual('VCPU', one.cause)
        self.assertIn('max_unit', one.would_help)

    def test_one_that_cannot_be_read(self):
        leaving = [plans.Leaving('a', '', 'p', 'h', [])]
        fault = mock.Mock(side_effect=LookupError('no request'))
        with self.cloud({'h': Host(1, 0)}, {}):
            [one] = self.plan(leaving, fault).without_place
        self.assertEqual('LookupError: no request', one.reason)
        self.assertEqual(plans.FAULT, one.cause)
        fault.side_effect = placement.PlacementFailed(query='q', cause='c')
        self.assertRaises(
            placement.PlacementFailed,
            departures.prepare_each,
            leaving,
            fault,
        )

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
        leaving = [plans.Leaving('a', '', 'p', 'h', [])]
        shelved = admission.NotMovable('it is shelved', 'unshelve it', problem)
        with self.cloud({'h': Host(1, 0)}, {}):
            [one], [then] = (
                self.plan(leaving, mock.Mock(side_effect=exc)).without_place
                for exc in (problem, shelved)
            )
        self.assertEqual((cause, reason), (one.cause, one.reason))
        self.assertEqual(
            (plans.STATE, cause, 'unshelve it'),
            (then.cause, then.cause_then, then.would_help),
        )
        self.assertTrue(then.has_no_room)
        self.assertTrue(then.reason.endswith(f'. Even then: {reason}'))

    @ddt.data(
        # What it takes of a host, where the move is to go.
        ((), 'h2'),
        (('nic',), 'h2'),
        (('disks',), None),
    )
    @ddt.unpack
    def test_a_host_that_only_nova_can_choose(self, taken, to):
        """A request that names a host gets nothing that hosts share."""
        servers = {'a': Server('h1', 1, 0)}
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 0)}
        with mock.patch.object(Toy, 'taken', taken):
            [one] = self.empty(hosts, servers, ['h1']).moves
        self.assertEqual(
            (to, 'h2', 'live'), (one.to, one.expected, one.method)
        )

    @ddt.data(False, LookupError('half'))
    def test_a_claim_that_fails(self, answer):
        """What it takes is asked again, after others have left."""
        servers = {'a': Server('h1', 1, 0), 'b': Server('h1', 2, 0)}
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 0)}
        answers = [answer, True, True]
        with mock.patch.object(Toy, 'go', side_effect=answers):
            made = self.empty(hosts, servers, ['h1'])
        self.assertEqual(['a', 'b'], [one.server for one in made.moves])

    def test_hosts_that_are_to_be_empty(self):
        """Nothing goes there, whatever room the others leave."""
        servers = {
            'a': Server('h1', 2, 0),
            'b': Server('h2', 2, 0),
            'c': Server('h2', 1, 0, fixed=True),
            'd': Server('h3', 1, 0),
        }
        hosts = {f'h{n}': Host(4, 0) for n in range(1, 4)}
        made = self.empty(hosts, servers, ['h1', 'h2'])
        [move] = made.moves
        self.assertEqual(('a', 'h3'), (move.server, move.to))
        self.assertEqual(
            [('b', 'VCPU'), ('c', 'state')],
            [(one.server, one.cause) for one in made.without_place],
        )
        self.assertEqual('unshelve it', made.without_place[-1].would_help)

    def test_what_holds_hosts_that_are_to_be_empty(self):
        """One that was deleted softly has its host yet."""
        leaving = [plans.Leaving('a', '', 'p', 'h1', [])]
        held = plans.Stuck('b', '', 'p', 'h1', [], 'its resize', 'state', '')
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 0), 'h3': Host(9, 0)}
        for empty, softly in (({'h1'}, False), (frozenset(), True)):
            with (
                self.cloud(hosts, {'a': Server('h1', 1, 0)}) as toy,
                mock.patch.object(planner.gone, 'find') as find,
            ):
                find.return_value = set()
                made = planner.plan(
                    toy,
                    planner.Goal(
                        leaving=leaving, to_be_empty=empty, migrating=[held]
                    ),
                    lambda *_: {'a': movable.migrate(toy, 'a')},
                )
            self.assertEqual([held], made.without_place)
            self.assertEqual(sorted(empty), made.to_be_empty)
            self.assertEqual(2, made.room_for_last)
            find.assert_called_once_with(toy, {'a', 'b'}, softly)

    def test_whether_there_would_be_room_otherwise(self):
        """They go last, the hardest first, each beside those before it."""
        servers = {
            'a': Server('h1', 1, 0, fixed='asked'),
            'b': Server('h1', 2, 0, fixed='asked'),
            'c': Server('h1', 3, 0),
            'd': Server('h1', 1, 0, fixed='asked'),
            'e': Server('h1', 1, 1, fixed='asked'),
            'f': Server('h1', 1, 0, fixed=True),
        }
        made = self.empty(
            {'h1': Host(9, 0), 'h2': Host(6, 0)}, servers, ['h1']
        )
        self.assertEqual(['c'], [one.server for one in made.moves])
        found = {one.server: one for one in made.without_place}
        self.assertEqual([*'ebadf'], [*found])
        self.assertEqual(
            {'e': LABEL, 'b': '', 'a': '', 'd': 'VCPU', 'f': ''},
            {uuid: one.cause_then for uuid, one in found.items()},
        )
        self.assertEqual({plans.STATE}, {one.cause for one in found.values()})
        self.assertEqual([*'ed'], [u for u in found if found[u].has_no_room])
        why = 'nova cannot move it: it is shelved'
        self.assertEqual(
            (why, 'unshelve it'), (found['a'].reason, found['a'].would_help)
        )
        self.assertIn(f'{why}. Even then: 0 of 2 hosts', found['d'].reason)
        self.assertEqual(
            'unshelve it; then make VCPU accept h2', found['d'].would_help
        )

    def test_what_a_group_loses(self):
        """A host that none of its members had before is no loss."""
        racks = {'h1': 'r1', 'h2': 'r2', 'h3': 'r2', 'h4': 'r1,r3'}
        servers = {
            'a': Server('h1', 1, 0, group=1),
            'b': Server('h2', 1, 0, group=2),
            'c': Server('h3', 1, 0, group=2),
            'd': Server('h4', 1, 0, group=2),
            'e': Server('h4', 1, 0),
            # As many hosts, of fewer racks.
            'f': Server('h1', 1, 0, group=3),
            'g': Server('h3', 1, 0, group=3),
        }
        hosts = {host: Host(9, 0) for host in racks}
        states = Toy.states.fget

        def get_states(toy):
            found = states(toy)
            for host, state in found.items():
                metadata = {'failure_domain': racks[host]}
                rack = types.SimpleNamespace(metadata=metadata)
                state.aggregates = [rack]
            return found

        with (
            mock.patch.object(Toy, 'states', property(get_states)),
            # The rules let them meet.
            mock.patch.object(Toy, 'violated', lambda *_: []),
        ):
            made = self.empty(hosts, servers, ['h1', 'h4'])
            for self.group_policy in ('affinity', 'soft-affinity'):
                united = self.empty(hosts, servers, ['h1', 'h4'])
                self.assertEqual([], united.groups)
        self.assertEqual(4, len(made.moves))
        self.assertEqual(
            [
                plans.Group(2, 'group 2', 2, 3, 1, 3),
                plans.Group(3, 'group 3', 2, 2, 1, 2),
            ],
            made.groups,
        )

    def test_the_hardest_to_place_first(self):
        """One host takes the third; the second is larger than the first."""
        servers = {
            'a': Server('h1', 1, 0),
            'b': Server('h1', 2, 0),
            'c': Server('h1', 1, 1),
            'd': Server('h1', 1, 2, fixed=True),
        }
        hosts = {
            'h1': Host(9, 9),
            'h2': Host(2, 0),
            'h3': Host(2, 0),
            'h4': Host(1, 1),
        }
        made = self.empty(hosts, servers, ['h1'])
        self.assertEqual(['c', 'b', 'a'], [one.server for one in made.moves])

    @ddt.data('count', 'find', 'explain')
    def test_placement_that_does_not_answer_ends_all(self, name):
        fault = placement.PlacementFailed(query='q', cause='c')
        with mock.patch.object(Toy, name, side_effect=fault):
            self.assertRaises(
                placement.PlacementFailed,
                self.empty,
                {'h1': Host(2, 0)},
                {'a': Server('h1', 2, 1)},
                ['h1'],
            )

    def test_a_filter_that_fails_is_a_fault_of_one(self):
        fault = reasons.FilterFailed(name='Own', cause='KeyError')
        with mock.patch.object(Toy, 'judge', side_effect=fault):
            made = self.make({'h1': Host(2, 0)}, {'a': Server('h1', 2, 1)})
        [one] = made.without_place
        self.assertEqual('fault', one.cause)
        self.assertIn('KeyError', one.reason)


CLOUDS = st.integers(1, 6).flatmap(
    lambda number: st.tuples(
        st.lists(
            st.builds(Host, st.integers(0, 6), st.integers(0, 2)),
            min_size=number,
            max_size=number,
        ),
        st.lists(
            st.tuples(
                st.integers(0, number - 1),
                st.integers(1, 3),
                st.integers(0, 2),
                st.integers(0, 2),
                st.sampled_from([False] * 9 + [True]),
            ),
            max_size=12,
        ),
    )
)


@ddt.ddt
class RandomTestCase(PlanTestCase):
    """Each step is checked by Toy.go: rules, room, no server twice."""

    @ddt.data('mend', 'drain')
    def test_any_cloud(self, command):
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
        for _ in range(200):
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
            moves = self.make(hosts, servers).moves
            self.check_batches(hosts, servers, moves)
            needing += self.check_needs(hosts, servers, moves, rnd)
            lengths.update(
                collections.Counter(one.batch for one in moves).values()
            )
        self.assertLess(100, lengths[1])
        self.assertLess(100, lengths.total() - lengths[1])
        self.assertLess(100, needing)

    def check_needs(self, hosts, servers, moves, rnd):
        """Each that needs nothing of a move that fails has its place.

        :returns: how many others there are
        """
        if not moves:
            return 0
        failed = {rnd.choice(moves).server}
        now = dict(servers)
        for one in moves:
            if one.server in failed or not failed.isdisjoint(one.needs):
                failed.add(one.server)
                continue
            toy = Toy(hosts, now)
            self.assertEqual([], toy.refusals(one.server, one.to))
            now[one.server] = dataclasses.replace(now[one.server], host=one.to)
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
                toy = Toy(hosts, now | there)
                self.assertEqual([], toy.refusals(uuid, mine.host))
            now |= gone

    def check(self, command, hosts, servers, named):
        before = Toy(hosts, servers)
        if command == 'mend':
            barred, made = set(), self.make(hosts, servers)
            leaving = {u for u in servers if before.violated(u)}
        else:
            barred = named & hosts.keys()
            made = self.empty(hosts, servers, barred)
            leaving = {u for u in servers if servers[u].host in barred}
        moved = [one.server for one in made.moves]
        stuck = [one.server for one in made.without_place]
        mended = [one.server for one in made.mended_by_others]
        # Each that must leave is moved, named or mended, once; no other is.
        self.assertEqual(sorted(leaving), sorted([*moved, *stuck, *mended]))
        # No one that is named could go now, though it could before.
        self.assertEqual(
            {},
            {
                uuid: host
                for uuid in stuck
                if not servers[uuid].fixed
                for host in hosts.keys() - barred
                if host != self.toy.place_of(uuid)
                and not self.toy.refusals(uuid, host)
            },
        )
        if command != 'mend':
            self.assertEqual([], mended)
            return
        # What is found then is what was named, and nothing else.
        self.assertEqual(
            {*stuck}, {u for u in servers if self.toy.violated(u)}
        )
        # Of a group that is too many on a host, no more go than must.
        for host in hosts:
            for group, number in collections.Counter(
                servers[u].group for u in before.on_host(host)
            ).items():
                beside = [
                    one
                    for one in made.moves
                    if one.host == host
                    and servers[one.server].group == group
                    and one.policies == [GROUP]
                ]
                self.assertLessEqual(len(beside), max(0, number - 1))
