# SPDX-License-Identifier: Apache-2.0

"""What placement's answer is after moves; tests/functional asks nova."""

import copy
import types
from unittest import mock

from nova import objects
import testtools

from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.queries import sources
from tests.unit.dryrun.cloud import test_claims
from tests.unit.dryrun.cloud import test_snapshot
from tests.unit.dryrun.plan import test_providers
from tests.unit.request_filters import base

SPEC = objects.RequestSpec(instance_group=None)


class Scheduler:
    """Hosts a to d."""

    def __init__(self):
        self.hosts = {
            uuid: types.SimpleNamespace(name=f'name of {uuid}')
            for uuid in 'abcd'
        }
        self.states = {}
        self.aggregates_copy = []
        self.silent_cells = {}
        self.placement = None


class DestinationsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scheduler = Scheduler()
        self.destinations = destinations.Destinations(self.scheduler)
        self.answer = test_providers.make_answer()

    def test_an_older_hypervisor_is_passed_over(self):
        mine = types.SimpleNamespace(
            spec_obj=SPEC, may_move_to=lambda _source, target: target == 'new'
        )
        with (
            mock.patch.object(self.destinations, '_find_source'),
            mock.patch.object(self.destinations, 'judge') as judge,
        ):
            judge.return_value = None, ['old', 'new']
            self.assertEqual('new', self.destinations.find(mine))
            judge.return_value = None, ['old']
            self.assertIsNone(self.destinations.find(mine))

    def ask(self, *_, **__):
        nowhere = {'m': frozenset(), 'x': frozenset()}
        self.places = sources.current.place(nowhere)
        return self.answer

    def judge(self, spec=SPEC):
        """Return the hosts that nova's filters would be asked about."""
        with (
            mock.patch.object(destinations.candidates, 'ask', self.ask),
            mock.patch.object(destinations.hosts, 'Hosts') as judge,
        ):
            judge.return_value.judge.return_value = [
                types.SimpleNamespace(allocation_candidates=found, uuid=uuid)
                for uuid, found in (('a', ['x']), ('b', []))
            ]
            self.matrix, states = self.destinations.judge(spec)
        self.assertEqual(
            [] if self.answer is None else ['a'],
            [state.uuid for state in states],
        )
        if self.answer is None:
            judge.assert_not_called()
            return None
        *_, self.spec, candidates = judge.call_args.args
        offered = {
            uuid for one in candidates.requests for uuid in one['allocations']
        }
        self.assertEqual(offered, candidates.summaries.keys())
        return sorted(offered)

    def take(self, host, number):
        """Let a server move to a host."""
        known = self.destinations.providers
        known._claims.learn(self.answer.summaries)
        known.move(
            test_claims.request(**{host: {'VCPU': number}}),
            {'allocations': {}},
            None,
        )
        self.destinations.moved['server'] = host

    def test_request_that_ends(self):
        self.answer = None
        self.assertIsNone(self.judge())

    def test_what_moves_fill(self):
        self.take('a', 2)
        self.take('b', 3)
        self.assertEqual(['a', 'c'], self.judge())
        [column] = self.matrix.columns
        self.assertEqual(
            {'b': (refusals.Refusal('are full (VCPU)', 'VCPU'),)},
            column.refused,
        )

    def test_a_group_stands_where_its_members_moved(self):
        group = objects.InstanceGroup(members=['m'], hosts=['old'])
        spec = objects.RequestSpec(instance_group=group)
        self.scheduler.states = {
            'b': types.SimpleNamespace(host='new', instances={'m': None}),
            'c': types.SimpleNamespace(host='other', instances={'x': None}),
        }
        self.judge(spec)
        self.assertEqual(['old'], self.spec.instance_group.hosts)
        self.take('b', 1)
        self.destinations.moved['m'] = 'new'
        self.judge(spec)
        self.assertEqual(['new'], self.spec.instance_group.hosts)
        # The request filters too see it there.
        self.assertEqual({'m': {'new'}, 'x': set()}, self.places)
        # The request itself is left as it is.
        self.assertEqual(['old'], group.hosts)


class MoveTestCase(testtools.TestCase):
    """Hosts a, where a server is, b and c."""

    def setUp(self):
        super().setUp()
        self.scheduler = Scheduler()
        self.scheduler.states = {
            uuid: test_snapshot.make_state(uuid) for uuid in 'abc'
        }
        self.scheduler.states['a'].instances = {'server': None}
        self.scheduler.states['a'].num_instances = 1
        self.destinations = destinations.Destinations(self.scheduler)
        self.destinations.providers._claims.learn(
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
                    uuid='server',
                    host='hosta',
                    node='nodea',
                    numa_topology=None,
                ),
                held=test_claims.request(a={'VCPU': 2}),
            ),
            target,
        )

    def describe(self):
        return {
            uuid: (
                sorted(state.instances),
                state.num_instances,
                state.free_ram_mb,
                self.destinations.providers._claims.get_free(uuid, 'VCPU'),
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
        self.assertEqual({'a'}, self.destinations.providers._left)
        self.assertEqual({}, before.instances)
