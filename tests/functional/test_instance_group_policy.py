# SPDX-License-Identifier: Apache-2.0

"""Policy and rules in nova's API."""

from nova.tests.functional.api import client

from nova_ext_sched import exception
from nova_ext_sched import objects
from tests.functional import server_groups

BAD = [
    {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 0}},
    {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 'x'}},
    {'policy': 'anti-affinity', 'rules': {'max_server_per_host': True}},
    {'policy': 'anti-affinity', 'rules': {'max_server_per_rack': 2}},
    {'policy': 'anti-affinity', 'rules': [2]},
    {'policy': 'affinity', 'rules': {'max_server_per_host': 2}},
    {'policy': 'legacy'},
    {'rules': {'max_server_per_host': 2}},
]
# Policy and rules as they are sent; the rules as they are shown.
GOOD = [
    ({'policy': 'anti-affinity'}, {}),
    (
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': '3'}},
        {'max_server_per_host': 3},
    ),
    ({'policy': 'affinity', 'rules': {}}, {}),
]


class RulesInTheApiTest(server_groups.AntiAffinityTestCase):
    microversion = '2.64'

    def test_nova_and_we_take_the_same(self):
        for policy in BAD:
            group = {'name': 'test', **policy}
            error = self.assertRaises(
                client.OpenStackApiException,
                self.api.post_server_groups,
                group,
            )
            self.assertEqual(400, error.response.status_code, policy)
            self.assertRaises(
                exception.InvalidValue,
                objects.InstanceGroupPolicy.from_nova_body,
                {'server_group': group},
            )
        for policy, rules in GOOD:
            body = {'server_group': {'name': 'test', **policy}}
            created = self.api.post_server_groups(body['server_group'])
            ours = objects.InstanceGroupPolicy.from_nova_body(body)
            self.assertEqual(rules, created['rules'])
            self.assertEqual(
                ours.to_nova_body('test')['server_group'],
                {key: created[key] for key in ('name', 'policy', 'rules')},
            )
