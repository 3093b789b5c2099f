# SPDX-License-Identifier: Apache-2.0

import dataclasses
import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched.osc import moves_hosts
from nova_ext_sched.osc import moves_plan
from tests.unit.osc import test_moves_step

OURS = f'nova-ext-sched: being emptied, by the plan of {test_moves_step.TIME}'
BEFORE = 'nova-ext-sched: being emptied, by the plan of 2026-01-01T00:00:00Z'


@ddt.ddt
class HostsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = mock.Mock()
        self.services = {
            host: types.SimpleNamespace(id=f'id {host}', status='disabled')
            for host in 'abcdef'
        }
        self.services['a'].status = 'enabled'
        # The last is not of the plan.
        reasons = None, OURS, BEFORE, 'broken\n', None, OURS
        for one, reason in zip(self.services.values(), reasons, strict=True):
            one.disabled_reason = reason

    def plan(self, *hosts, **fields):
        return moves_plan.Plan(test_moves_step.TIME, {}, hosts, [], **fields)

    def test_disable(self):
        plan = self.plan(*'abcz')
        for is_dry in (True, False):
            said = moves_hosts.disable(plan, self.cloud, self.services, is_dry)
            self.assertEqual(
                f'1 host {"would be " * is_dry}disabled: a. b, c are disabled '
                'already',
                said,
            )
            calls = [mock.call('id a', OURS)] * (not is_dry)
            self.assertEqual(calls, self.cloud.set_status.mock_calls)

    def test_a_second_time(self):
        for hosts, expected in (
            ('b', 'b is disabled already'),
            ('z', '0 hosts disabled'),
        ):
            plan = self.plan(*hosts)
            said = moves_hosts.disable(plan, self.cloud, self.services, False)
            self.assertEqual(expected, said)
        self.cloud.set_status.assert_not_called()

    def test_room(self):
        """A host that a move goes to takes servers; others wait."""
        plan = self.plan(room_on=[*'ab'])
        reason = f'nova-ext-sched: making room, by the plan of {plan.time}'
        self.services['b'].status = 'enabled'
        for moves, hosts in ((['b'], 'a'), ([], 'ab')):
            to = [types.SimpleNamespace(expected=one) for one in moves]
            plan = dataclasses.replace(plan, moves=to)
            self.cloud.reset_mock()
            moves_hosts.disable(plan, self.cloud, self.services, False)
            expected = [mock.call(f'id {host}', reason) for host in hosts]
            self.assertEqual(expected, self.cloud.set_status.mock_calls)
        for one in (self.services['a'], self.services['b']):
            one.status = 'disabled'
        self.services['a'].disabled_reason = reason
        made = moves_hosts.enable(plan, self.cloud, self.services, True)
        self.assertEqual(3, made.status)
        self.assertIn('1 host would be enabled: a. b stays', made.sentence)

    @ddt.data(
        ('abcz', 0, '2 hosts enabled: b, c.'),
        ('a', 0, '0 hosts enabled.'),
        (
            'bde',
            3,
            "1 host enabled: b. d stays disabled ('broken\\n'): openstack "
            'compute service set --enable d nova-compute. e stays disabled '
            '(without a reason): openstack compute service set --enable e '
            'nova-compute.',
        ),
    )
    @ddt.unpack
    def test_enable(self, hosts, status, said):
        """What a plan before this one disabled, too."""
        plan = self.plan(*hosts)
        made = moves_hosts.enable(plan, self.cloud, self.services, False)
        self.assertEqual((status, said), (made.status, made.sentence))
        expected = [mock.call(f'id {one}') for one in hosts if one in 'bc']
        self.assertEqual(expected, self.cloud.set_status.mock_calls)
        self.cloud.reset_mock()
        made = moves_hosts.enable(plan, self.cloud, self.services, True)
        self.assertEqual(status, made.status)
        self.cloud.set_status.assert_not_called()
