# SPDX-License-Identifier: Apache-2.0

"""What placement's answer is after moves; tests/functional asks nova."""

import types
from unittest import mock

import ddt
from nova import objects
import testtools

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query
from tests.unit.cmd import test_claims

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
        self.claims = claims.Claims({})
        self.moved = {}
        self.left = set()
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
        form = mock.Mock()
        form.to_querystring.return_value = self.query
        with (
            mock.patch.object(
                destinations.placement, 'Placement'
            ) as placement,
            mock.patch.object(destinations.hosts, 'Judge') as judge,
            mock.patch.object(query, 'forms', return_value=[form]),
        ):
            placement.return_value.ask.return_value = self.answer
            judge.return_value.order = [
                types.SimpleNamespace(allocation_candidates=found, uuid=uuid)
                for uuid, found in (('a', ['x']), ('b', []))
            ]
            self.funnel, states = destinations.Destinations(
                self.scheduler
            ).judge(spec)
        self.assertEqual(
            [] if self.answer is None else ['a'],
            [state.uuid for state in states],
        )
        if self.answer is None:
            judge.assert_not_called()
            return None
        candidates = judge.call_args.args[2]
        offered = {
            uuid for one in candidates.requests for uuid in one['allocations']
        }
        self.assertEqual(offered, candidates.summaries.keys())
        # nova claims them by these summaries.
        left = claims.Claims(candidates.summaries)
        for one in candidates.requests:
            self.assertEqual([], left.find_lacking(one))
        return sorted(offered)

    def take(self, host, number):
        known = self.scheduler.claims
        known.learn(self.answer.summaries)
        known.learn(
            {'d': {'resources': self.scheduler.providers.get_inventories('d')}}
        )
        known._claimed[host, 'VCPU'] += number
        self.scheduler.moved['server'] = host
        if number < 0:
            self.scheduler.left.add(host)

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
        self.judge(spec)
        self.assertEqual(['old'], group.hosts)
        self.scheduler.moved['m'] = 'new'
        self.judge(spec)
        self.assertEqual(['new'], group.hosts)

    def test_names(self):
        found = destinations.Destinations(self.scheduler)
        states = [types.SimpleNamespace(uuid='b')]
        with (
            mock.patch.object(destinations.explain_server, 'Server') as server,
            mock.patch.object(found, 'judge', return_value=(None, states)),
        ):
            self.assertEqual(['name of b'], found.find('server'))
        server.return_value.migrate.assert_called_once_with()
