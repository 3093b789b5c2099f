# SPDX-License-Identifier: Apache-2.0

"""The order of moves, on clouds of plain data; nova is asked in functional.

A toy cloud has hosts with a capacity and a label, and servers with a size,
the label that they need and perhaps a server group, of which a host may hold
one server.
"""

import collections
import dataclasses
import types
from unittest import mock

import ddt
import hypothesis
from hypothesis import strategies as st
import jsonschema
import testtools

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import movable
from nova_ext_sched.cmd.audit import plan
from nova_ext_sched.cmd.audit import servers as audit_servers
from nova_ext_sched.cmd.explain import funnel
from tests.unit.cmd.audit import test_report

SCHEMA = jsonschema.Draft202012Validator(
    {
        'properties': {'plan': test_report.SCHEMA['properties']['plan']},
        '$defs': test_report.SCHEMA['$defs'],
    }
)
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
    fixed: bool = False


class Toy:
    """Stands for HostManager, Destinations and Claims at once."""

    def __init__(self, hosts, servers):
        self.hosts, self.servers = hosts, servers
        self.moved = {}
        self.placement = None
        self.providers = types.SimpleNamespace(
            get_inventories=lambda uuid: {
                'VCPU': {'capacity': hosts[uuid].capacity, 'used': 0}
            }
        )

    # The cloud.

    def place_of(self, uuid):
        return self.moved.get(uuid, self.servers[uuid].host)

    def on_host(self, host):
        return [u for u in self.servers if self.place_of(u) == host]

    def free(self, host, *without):
        return self.hosts[host].capacity - sum(
            self.servers[uuid].size
            for uuid in self.on_host(host)
            if uuid not in without
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

    # HostManager.

    @property
    def states(self):
        return {
            host: types.SimpleNamespace(
                host=host,
                nodename=host,
                instances=dict.fromkeys(self.on_host(host)),
            )
            for host in self.hosts
        }

    @property
    def claims(self):
        return self

    def move(self, mine, source, target):
        uuid = mine.spec_obj.uuid
        assert uuid not in self.moved
        assert source.host == self.servers[uuid].host
        assert self.refusals(uuid, target.host) == []
        self.moved[uuid] = target.host

    def save(self):
        return dict(self.moved)

    def restore(self, saved):
        self.moved = dict(saved)

    # Claims.

    def copy(self):
        return Left(self)

    # Destinations.

    def judge(self, spec, whole=False):
        here = self.place_of(spec.uuid)
        found = funnel.Funnel({host: host for host in self.hosts})
        causes = {
            host: self.refusals(spec.uuid, host)
            for host in self.hosts
            if host != here
        }
        causes[here] = [funnel.IGNORED_HOST]
        for cause in (LABEL, GROUP, 'VCPU', funnel.IGNORED_HOST):
            found.add(
                'placement',
                cause,
                refused={
                    host: funnel.Refusal(
                        f'are {cause}', lifts=cause != funnel.IGNORED_HOST
                    )
                    for host, mine in causes.items()
                    if cause in mine
                },
            )
        return found, [
            state
            for host, state in sorted(self.states.items())
            if not causes[host]
        ]


class Policies:
    on = {
        name: types.SimpleNamespace(counts_group=name == GROUP)
        for name in (LABEL, GROUP)
    }

    def __init__(self, toy):
        self._toy = toy

    def judge(self, server, moved):
        assert moved is self._toy.moved
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


class Left:
    def __init__(self, toy):
        self._toy, self._back = toy, ()

    def learn(self, _):
        pass

    def give_back(self, held):
        [(_, one)] = held['allocations'].items()
        self._back = (one['uuid'],)

    def find_lacking(self, wanted):
        [(host, one)] = wanted['allocations'].items()
        free = self._toy.free(host, *self._back)
        return ['VCPU'] * (one['resources']['VCPU'] > free)


class PlanTestCase(testtools.TestCase):
    def make(self, hosts, servers, order=None, **kwargs):
        self.toy = Toy(hosts, servers)
        toy = self.toy

        def prepare(_, uuid, client):
            mine = servers[uuid]
            if mine.fixed:
                raise movable.NotMovable('it is shelved')
            return types.SimpleNamespace(
                spec_obj=types.SimpleNamespace(uuid=uuid),
                instance=types.SimpleNamespace(
                    host=mine.host, node=mine.host, project_id='p', uuid=uuid
                ),
                held={
                    'allocations': {
                        mine.host: {
                            'resources': {'VCPU': mine.size},
                            'uuid': uuid,
                        }
                    }
                },
                name=uuid,
                kind='live',
                may_move_to=lambda source, target: True,
            )

        with (
            mock.patch.object(plan.movable, 'Movable', prepare),
            mock.patch.object(
                plan.destinations, 'Destinations', lambda _: toy
            ),
            mock.patch.object(nova_scheduler, 'context'),
        ):
            auditing = types.SimpleNamespace(
                scheduler=toy, policies=Policies(toy)
            )
            wanted = {'most': None, 'make_room': False, 'project': None}
            made = plan.Plan(
                auditing, types.SimpleNamespace(**{**wanted, **kwargs})
            ).make(
                [
                    audit_servers.Server(
                        uuid,
                        '',
                        'p',
                        toy.states[servers[uuid].host],
                        None,
                        found=[(policy, 'why') for policy in violated],
                    )
                    for uuid in (order or servers)
                    if (violated := toy.violated(uuid))
                ]
            )
        SCHEMA.validate({'plan': {'sentence': '', **made}})
        return made


@ddt.ddt
class OrderTestCase(PlanTestCase):
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
        self.assertEqual(
            ['c', 'b', 'a'], [one['server'] for one in made['moves']]
        )
        self.assertEqual([], made['without_place'])

    def test_no_more_of_a_group_than_are_too_many(self):
        servers = {name: Server('h1', 1, 0, group=1) for name in 'abc'}
        hosts = {f'h{n}': Host(9, 0) for n in range(1, 5)}
        made = self.make(hosts, servers)
        self.assertEqual(2, len(made['moves']))
        self.assertEqual(1, len(made['mended_by_others']))

    def test_one_that_must_go_anyway_goes_first(self):
        servers = {
            'a': Server('h1', 1, 0, group=1),
            'b': Server('h1', 1, 1, group=1),
        }
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 0), 'h3': Host(9, 1)}
        made = self.make(hosts, servers)
        self.assertEqual(['b'], [one['server'] for one in made['moves']])
        self.assertEqual(
            ['a'], [one['server'] for one in made['mended_by_others']]
        )

    def test_why_it_has_no_place(self):
        servers = {'a': Server('h1', 2, 1), 'b': Server('h2', 1, 1)}
        hosts = {'h1': Host(2, 0), 'h2': Host(2, 1), 'h3': Host(2, 0)}
        made = self.make(hosts, servers)
        [one] = made['without_place']
        self.assertEqual('VCPU', one['cause'])
        self.assertEqual('VCPU on 1 host', one['would_help'])
        self.assertIn('1 is VCPU', one['reason'])

    def test_nova_does_not_move_it(self):
        servers = {'a': Server('h1', 2, 1, fixed=True)}
        made = self.make({'h1': Host(2, 0), 'h2': Host(2, 1)}, servers)
        [one] = made['without_place']
        self.assertEqual('state', one['cause'])
        self.assertEqual('nova cannot move it: it is shelved', one['reason'])

    def test_placement_that_does_not_answer_ends_all(self):
        fault = nova_scheduler.PlacementFailed(query='q', cause='c')
        with mock.patch.object(Toy, 'judge', side_effect=fault):
            self.assertRaises(
                nova_scheduler.PlacementFailed,
                self.make,
                {'h1': Host(2, 0)},
                {'a': Server('h1', 2, 1)},
            )

    def test_a_filter_that_fails_is_a_fault_of_one(self):
        fault = nova_scheduler.FilterFailed(name='Own', cause='KeyError')
        with mock.patch.object(Toy, 'judge', side_effect=fault):
            made = self.make({'h1': Host(2, 0)}, {'a': Server('h1', 2, 1)})
        [one] = made['without_place']
        self.assertEqual('fault', one['cause'])
        self.assertIn('KeyError', one['reason'])

    @ddt.data((1, 1, 2), (3, 3, 0), (9, 3, 0))
    @ddt.unpack
    def test_at_most(self, most, moves, left):
        servers = {name: Server('h1', 1, 1) for name in 'abc'}
        made = self.make(
            {'h1': Host(9, 0), 'h2': Host(9, 1)}, servers, most=most
        )
        self.assertEqual(moves, len(made['moves']))
        self.assertEqual(left, len(made['left_over']))


@ddt.ddt
class MakeRoomTestCase(PlanTestCase):
    """The big one fits on h2 alone, where others stand; h3 has room for 4."""

    hosts = {'h1': Host(9, 0), 'h2': Host(7, 1), 'h3': Host(4, 1)}

    def moves(self, *sizes, **kwargs):
        servers = {'big': Server('h1', 5, 1)}
        for number, size in enumerate(sizes):
            servers[f'o{number}'] = Server('h2', size, 1)
        made = self.make(self.hosts, servers, **kwargs)
        self.assertEqual(
            ['big'] * (len(made['moves']) - 1),
            [one['room_for'] for one in made['moves'][:-1]],
        )
        return [one['server'] for one in made['moves']]

    @ddt.data(
        # The least one that is enough.
        ((4, 2), ['o0', 'big']),
        ((1, 1, 4), ['o2', 'big']),
        # One is not enough.
        ((2, 2, 2), ['o0', 'o1', 'big']),
        ((6,), []),
    )
    @ddt.unpack
    def test_who_leaves(self, sizes, expected):
        self.assertEqual([], self.moves(*sizes))
        self.assertEqual(expected, self.moves(*sizes, make_room=True))

    def test_not_beyond_the_most(self):
        self.assertEqual([], self.moves(4, 2, make_room=True, most=1))
        self.assertEqual(2, len(self.moves(4, 2, make_room=True, most=2)))

    def test_not_those_of_other_projects(self):
        self.assertEqual([], self.moves(4, 2, make_room=True, project='q'))
        self.assertEqual(2, len(self.moves(4, 2, make_room=True, project='p')))

    def test_a_member_of_its_group(self):
        servers = {
            'a': Server('h1', 1, 1, group=1),
            'b': Server('h2', 1, 1, group=1),
        }
        hosts = {'h1': Host(9, 0), 'h2': Host(9, 1), 'h3': Host(0, 1)}
        made = self.make(hosts, servers, make_room=True)
        self.assertEqual([], made['moves'])


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


class RandomTestCase(PlanTestCase):
    """Each step is checked by Toy.move, which no server passes twice."""

    @hypothesis.settings(deadline=None, max_examples=150)
    @hypothesis.given(CLOUDS, st.booleans(), st.none() | st.integers(1, 5))
    def test_any_cloud(self, cloud, make_room, most):
        hosts = {f'h{n}': host for n, host in enumerate(cloud[0])}
        servers = {
            f's{n}': Server(f'h{host}', *rest)
            for n, (host, *rest) in enumerate(cloud[1])
        }
        made = self.make(hosts, servers, make_room=make_room, most=most)
        toy, before = self.toy, Toy(hosts, servers)
        violating = {u for u in servers if before.violated(u)}
        still = {u for u in servers if toy.violated(u)}
        moved = [one['server'] for one in made['moves']]
        named = {
            one['server'] for one in made['without_place'] + made['left_over']
        }
        # What is found then is what was named, and nothing else.
        self.assertEqual(still, named)
        self.assertEqual(
            violating - still - set(moved),
            {one['server'] for one in made['mended_by_others']},
        )
        self.assertEqual(len(set(moved)), len(moved))
        if most:
            self.assertLessEqual(len(moved), most)
        rooms = [one for one in made['moves'] if one['room_for']]
        self.assertEqual(
            {one['server'] for one in rooms}, set(moved) - violating
        )
        for one in rooms:
            self.assertTrue(make_room)
            self.assertIn(one['room_for'], moved)
        if most is None:
            # No one that is named could go now.
            for uuid in still:
                if not servers[uuid].fixed:
                    self.assertEqual(
                        [],
                        [
                            host
                            for host in hosts
                            if host != toy.place_of(uuid)
                            and not toy.refusals(uuid, host)
                        ],
                    )
        # Of a group that is too many on a host, no more go than must.
        for host in hosts:
            for group, number in collections.Counter(
                servers[u].group for u in before.on_host(host)
            ).items():
                beside = [
                    one
                    for one in made['moves']
                    if one['from'] == host
                    and servers[one['server']].group == group
                    and one['policies'] == [GROUP]
                ]
                self.assertLessEqual(len(beside), max(0, number - 1))
