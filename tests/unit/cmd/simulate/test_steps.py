# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from nova_ext_sched.cmd.simulate import scenario
from nova_ext_sched.cmd.simulate import steps


class EvacuateTest(unittest.TestCase):
    def test_server_on_no_host_takes_none_down(self):
        cloud = mock.Mock(readable=list)
        cloud.explanations.take.return_value = {}
        cloud.warnings.take.return_value = []
        api = cloud.client.return_value
        api.get_server.side_effect = lambda server: {
            'status': 'ACTIVE',
            steps.TASK: None,
            steps.HOST: {'placed': 'a'}.get(server),
        }
        api.get_instance_actions.return_value = [
            {'action': 'evacuate', 'request_id': 'r'}
        ]
        api.get_instance_action_details.return_value = {
            'events': [{'result': 'Success'}]
        }
        api.get_services.return_value = [{'id': 'the only service'}]
        declared = cloud.declared = scenario.parse(
            {
                'hosts': ['a'],
                'flavors': {},
                'steps': [{'evacuate': ['placed', 'nowhere']}],
            }
        )
        running = steps.Steps(cloud)
        running._ids = {'placed': 'placed', 'nowhere': 'nowhere'}

        outcome = running.run(declared.steps[0])

        api.get_services.assert_called_once_with('nova-compute', 'a')
        self.assertEqual({'a': 1}, outcome.hosts)
