# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

import ddt

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


@ddt.ddt
class UnshelveTest(unittest.TestCase):
    """A server that is not unshelved stays as it was, and has no fault."""

    # The failed event, and what comes of it.
    @ddt.data(
        ({'details': 'No valid host was found. '}, 'no_valid_host'),
        ({'details': 'Quota exceeded'}, 'failed', 'Quota exceeded'),
        ({'traceback': '...\nOops\n'}, 'failed', '...\nOops'),
        ({}, 'failed', 'schedule_instances failed'),
    )
    @ddt.unpack
    def test_what_its_event_says(self, event, failure, detail=mock.ANY):
        cloud = mock.Mock()
        api = cloud.client.return_value
        api.get_server.return_value = {
            'status': 'SHELVED_OFFLOADED',
            steps.TASK: None,
            steps.HOST: None,
        }
        api.get_instance_actions.return_value = [
            {'action': 'unshelve', 'request_id': 'r'}
        ]
        event |= {'event': 'schedule_instances', 'result': 'Error'}
        details = {'events': [event]}
        api.get_instance_action_details.return_value = details
        running = steps.Steps(cloud)
        running._ids = {'web': 'uuid'}
        (step,) = scenario.parse(
            {'hosts': ['a'], 'flavors': {}, 'steps': [{'unshelve': 'web'}]}
        ).steps
        found = running._act(step)
        expected = steps.Placement('web', None, failure, detail)
        self.assertEqual([expected], found)


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
