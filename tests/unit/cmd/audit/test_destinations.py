# SPDX-License-Identifier: Apache-2.0

"""What placement's answer is after moves; tests/functional asks nova."""

import copy
import types
from unittest import mock
from urllib import parse

import ddt
from nova import objects
import testtools

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query
from tests.unit.cmd import test_claims
from tests.unit.cmd import test_kept_hosts
from tests.unit.request_filters import base

SPEC = objects.RequestSpec(instance_group=None)


def inventory(capacity, used, **limits):
    return {
        'capacity': capacity,
        'used': used,
        'min_unit': 1,
        'max_unit': capacity,
        'step_size': 1,
        **limits,
    }


class Scheduler:
    """Hosts a to d; d is full, and in no answer of placement."""

    def __init__(self):
        self.hosts = {
            uuid: types.SimpleNamespace(name=f'name of {uuid}')
            for uuid in 'abcd'
        }
        self.states = {}
        self.aggregates_copy = []
        self.silent_cells = {}
        self.providers = mock.Mock(
            get_inventories={
                'd': {'VCPU': inventory(4, 4)},
                'a': {'VCPU': inventory(4, 0)},
            }.__getitem__,
            find_lacking=lambda part, hosts: (
                hosts & {'d'} if part.value == 'NOT_D' else set()
            ),
        )


@ddt.ddt
class DestinationsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scheduler = Scheduler()
        self.destinations = destinations.Destinations(self.scheduler)
        self.query = 'resources=VCPU:2&required=TRAIT'
        self.answer = types.SimpleNamespace(
            requests=[
                test_claims.request(**{host: {'VCPU': 2}}) for host in 'abc'
            ],
            summaries={
                host: test_claims.summary(VCPU=(4, 0)) for host in 'abc'
            },
        )

    def judge(self, spec=SPEC):
        """Return the hosts that nova's filters would be asked about."""
        parts = dict(parse.parse_qsl(self.query))
        form = mock.Mock()
        form.to_querystring.return_value = self.query
        form.get_num_of_suffixed_groups.return_value = 'resources1' in parts
        form.merged_resources.return_value = {
            name: int(amount)
            for name, amount in (
                one.split(':') for one in parts['resources'].split(',')
            )
        }
        with (
            mock.patch.object(
                destinations.placement, 'Placement'
            ) as placement,
            mock.patch.object(destinations.hosts, 'Judge') as judge,
            mock.patch.object(query, 'forms', return_value=[form]),
        ):
            placement.return_value.ask.return_value = self.answer
            judge.return_value.judge.return_value = [
                types.SimpleNamespace(allocation_candidates=found, uuid=uuid)
                for uuid, found in (('a', ['x']), ('b', []))
            ]
            self.funnel, states = self.destinations.judge(spec)
        self.assertEqual(
            [] if self.answer is None else ['a'],
            [state.uuid for state in states],
        )
        if self.answer is None:
            judge.assert_not_called()
            return None
        self.spec = judge.return_value.judge.call_args.args[1]
        candidates = judge.call_args.args[2]
        offered = {
            uuid for one in candidates.requests for uuid in one['allocations']
        }
        self.assertEqual(offered, candidates.summaries.keys())
        for one in candidates.requests:
            self.assertEqual([], self.destinations.claims.find_lacking(one))
        return sorted(offered)

    def take(self, host, number):
        known = self.destinations.claims
        known.learn(self.answer.summaries)
        known.learn(
            {'d': {'resources': self.scheduler.providers.get_inventories('d')}}
        )
        known._claimed[host, 'VCPU'] += number
        self.destinations.moved['server'] = host
        if number < 0:
            self.destinations._left.add(host)

    def test_no_moves(self):
        self.assertEqual(['a', 'b', 'c'], self.judge())

    def test_request_that_ends(self):
        self.answer = None
        self.assertIsNone(self.judge())

    def test_what_moves_fill(self):
        self.take('a', 2)
        self.take('b', 3)
        self.assertEqual(['a', 'c'], self.judge())
        [constraint] = self.funnel.constraints
        self.assertEqual(
            {'b': (funnel.Refusal('are full (VCPU)', 'VCPU'),)},
            constraint.refused,
        )

    @ddt.data(
        # What left d, the query, whether it is a candidate then.
        (2, 'resources=VCPU:2', True),
        (2, 'resources=VCPU:2&required=TRAIT', True),
        (2, 'resources=VCPU:2&required=NOT_D', False),
        (1, 'resources=VCPU:2', False),
        (2, 'resources=VCPU:2,CUSTOM_A:1', False),
        (2, 'resources=VCPU:2&resources1=CUSTOM_A:1', False),
    )
    @ddt.unpack
    def test_what_moves_open(self, left, text, opened):
        self.take('d', -left)
        self.query = text
        self.assertEqual(['d'] * opened, self.judge()[3:])

    @ddt.data(({}, True), ({'max_unit': 1}, False), ({'step_size': 3}, False))
    @ddt.unpack
    def test_units(self, limits, opened):
        self.scheduler.providers.get_inventories = {
            'd': {'VCPU': inventory(4, 4, **limits)}
        }.__getitem__
        self.take('d', -4)
        self.assertEqual(['d'] * opened, self.judge()[3:])

    def test_what_is_opened_is_refused_no_more(self):
        found = funnel.Funnel({'d': 'name of d'})
        found.add('placement', 'VCPU', refused={'d': funnel.Refusal('x')})
        self.take('d', -2)
        with mock.patch.object(
            destinations.explanation, 'start', return_value=found
        ):
            self.judge()
        self.assertEqual({'d'}, found.left)
        self.assertEqual({}, found.causes)

    def test_a_group_stands_where_its_members_moved(self):
        group = objects.InstanceGroup(members=['m'], hosts=['old'])
        spec = objects.RequestSpec(instance_group=group)
        self.scheduler.states = {
            'b': types.SimpleNamespace(host='new', instances={'m': None}),
            'c': types.SimpleNamespace(host='other', instances={'x': None}),
        }
        for hosts in (['old'], ['new']):
            self.judge(spec)
            self.assertEqual(hosts, self.spec.instance_group.hosts)
            self.destinations.moved['m'] = 'new'
        # The request itself is left as it is.
        self.assertEqual(['old'], group.hosts)

    def test_names(self):
        found = self.destinations
        states = [types.SimpleNamespace(uuid='b')]
        with (
            mock.patch.object(destinations.explain_server, 'Server') as server,
            mock.patch.object(found, 'judge', return_value=(None, states)),
        ):
            self.assertEqual(['name of b'], found.find('server'))
        server.return_value.migrate.assert_called_once_with()


class MoveTestCase(testtools.TestCase):
    """Hosts a, where a server is, b and c."""

    def setUp(self):
        super().setUp()
        self.scheduler = Scheduler()
        self.scheduler.states = {
            uuid: test_kept_hosts.make_state(uuid) for uuid in 'abc'
        }
        self.scheduler.states['a'].instances = {'server': None}
        self.scheduler.states['a'].num_instances = 1
        self.destinations = destinations.Destinations(self.scheduler)
        self.destinations.claims = claims.Claims(
            {uuid: test_claims.summary(VCPU=(4, 2)) for uuid in 'abc'}
        )

    def move(self):
        spec = base.request_spec()
        spec.numa_topology = spec.pci_requests = spec.instance_group = None
        spec.requested_resources = []
        target = copy.copy(self.scheduler.states['b'])
        target.allocation_candidates = [test_claims.request(b={'VCPU': 2})]
        self.destinations.move(
            types.SimpleNamespace(
                spec_obj=spec,
                instance=types.SimpleNamespace(
                    uuid='server', numa_topology=None
                ),
                held=test_claims.request(a={'VCPU': 2}),
            ),
            self.scheduler.states['a'],
            target,
        )

    def describe(self):
        return {
            uuid: (
                sorted(state.instances),
                state.num_instances,
                state.free_ram_mb,
                self.destinations.claims.get_free(uuid, 'VCPU'),
            )
            for uuid, state in self.scheduler.states.items()
        }

    def test_move(self):
        before = self.scheduler.states['b']
        self.move()
        self.assertEqual(
            {
                'a': ([], 0, 1064, 4),
                'b': (['server'], 1, 936, 0),
                'c': ([], 0, 1000, 2),
            },
            self.describe(),
        )
        self.assertEqual({'server': 'hostb'}, self.destinations.moved)
        self.assertEqual({'a'}, self.destinations._left)
        self.assertEqual({}, before.instances)

    def test_undone_and_done_again(self):
        before = self.describe()
        for _ in range(2):
            saved = self.destinations.save()
            self.move()
            self.assertNotEqual(before, self.describe())
            self.destinations.restore(saved)
            self.assertEqual(before, self.describe())
            self.assertEqual(
                ({}, set()), (self.destinations.moved, self.destinations._left)
            )
