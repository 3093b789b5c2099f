# SPDX-License-Identifier: Apache-2.0

"""Which weigher decides, beside a weigher of others."""

from nova.scheduler import weights

from tests.functional import base
from tests.functional import explain


class Magnet(weights.BaseHostWeigher):
    """Draws servers to the host that the tests' own weigher puts last."""

    def weight_multiplier(self, host_state):
        return 2.0

    def _weigh_object(self, host_state, weight_properties):
        return float(host_state.host == 'host3')


class WeighersTestCase(base.CloudTestCase):
    weights = {'host1': 100, 'host2': 50, 'host3': 10}
    weigher_classes = (f'{__name__}.Magnet',)

    def test_a_weigher_of_others_decides(self):
        flavor = self.flavor()
        args = ('--flavor', flavor, '--host', 'host1', '--host', 'host2')
        found = explain.run(*args, '-f', 'json').document
        self.assertEqual(
            [{'weigher': 'Magnet', 'best': 'host1'}],
            found['answer']['deciders'],
        )
        self.assertEqual(
            [('host1', 2, {'Magnet': 2.0}), ('host2', 3, {'Magnet': 2.0})],
            [
                (one['host'], one['rank'], one['loses'])
                for one in found['hosts']
            ],
        )
        text = ' '.join(explain.run(*args).out.split())
        self.assertIn(
            'prefers host3, then host1, host2; it may be host1 without '
            'Magnet.',
            text,
        )
        self.assertIn(
            'It is choice 2 of 3, 1 behind host3; it loses most by Magnet, 2',
            text,
        )
        self.assertBootsOn('host3', flavor=flavor)
        # What is left weighs as much for it.
        self.set_service('host3', forced_down=True)
        found = explain.run(*args, '-f', 'json').document
        self.assertEqual(
            [{'weigher': 'HostNameWeigher', 'best': 'host2'}],
            found['answer']['deciders'],
        )
