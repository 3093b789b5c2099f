# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import steps


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


class FailureTest(unittest.TestCase):
    def test_words_of_nova(self):
        """A fault has the sentence; an event's traceback the class."""
        for detail, expected in (
            ('No valid host was found. ', expectation.NO_VALID_HOST),
            ('nova.exception_Remote.NoValidHost_Remote: No', 'no_valid_host'),
            ('Disk is full', expectation.FAILED),
        ):
            found = steps._failure('vm', detail)
            self.assertEqual((expected, detail), (found.failure, found.detail))


class AggregateTest(unittest.TestCase):
    def test_a_key_that_is_unset(self):
        """nova-api removes a key whose value is null."""
        self.assertEqual(
            [{'set_metadata': {'metadata': {'a': '1', 'b': None}}}],
            steps._aggregate_actions({'set': {'a': '1'}, 'unset': ['b']}),
        )
