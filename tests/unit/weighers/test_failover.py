# SPDX-License-Identifier: Apache-2.0

from nova.scheduler import weights

from nova_ext_sched import request_state
from nova_ext_sched.weighers import failover
from tests.unit.request_filters import base as test_base
from tests.unit.weighers import preferences


class FailoverHostsWeigherTestCase(preferences.PreferenceTestCase):
    def setUp(self):
        super().setUp()
        self.states = [
            self.host('plain'),
            self.host('held', failover='yes'),
            self.host('open', failover='no'),
        ]

    def found(self, move):
        spec = test_base.request_spec()
        request_state.of(spec).move = move
        weighed = weights.HostWeightHandler().get_weighed_objects(
            [failover.FailoverHostsWeigher()], self.states, spec
        )
        return {one.obj.host: one.weight for one in weighed}

    def test_evacuations_alone(self):
        self.assertEqual(
            {'plain': 0, 'held': 10000, 'open': 0}, self.found('evacuation')
        )
        for move in ('', 'live-migration'):
            self.assertEqual({0}, {*self.found(move).values()})

    def test_last(self):
        self.set(failover_hosts_weight_multiplier=-2.0, failover_key='x')
        self.states.append(self.host('x', x='1'))
        self.assertEqual(
            {'plain': 0, 'held': 0, 'open': 0, 'x': -2},
            self.found('evacuation'),
        )
