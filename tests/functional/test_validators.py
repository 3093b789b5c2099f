# SPDX-License-Identifier: Apache-2.0
"""nova-api, from microversion 2.86 on, with our validators loaded."""

from nova.tests.functional.api import client

from tests.functional import base


class ValidatorsTestCase(base.CloudTestCase):
    microversion = '2.86'

    def setUp(self):
        super().setUp()
        self.flavor_id = self._create_flavor()

    def create(self, **extra_specs):
        self.admin_api.post_extra_spec(
            self.flavor_id, {'extra_specs': extra_specs}
        )
        return self.admin_api.get_extra_specs(self.flavor_id)

    def reject(self, call, *args):
        error = self.assertRaises(client.OpenStackApiException, call, *args)
        self.assertEqual(400, error.response.status_code)
        return error.response.json()['badRequest']['message']

    def test_accepted_and_rejected(self):
        """Which values are: tests/unit/policy/test_expression.py."""
        key = 'aggregate_instance_extra_specs:hw:cpu_policy'
        value = '<or> 1 <or> ~'
        self.assertEqual({key: value}, self.create(**{key: value}))
        # A number is read as its text.
        cores = 'aggregate_instance_extra_specs:cores'
        before = self.create(**{cores: 4})
        for call, *args in (
            (self.admin_api.post_extra_spec, {'extra_specs': {cores: '<or>'}}),
            (self.admin_api.put_extra_spec, cores, {cores: '<or>'}),
        ):
            message = self.reject(call, self.flavor_id, *args)
            self.assertIn(f"extra spec '{cores}': expected '", message)
            self.assertIn("got '<or>'", message)
        self.assertEqual(
            before, self.admin_api.get_extra_specs(self.flavor_id)
        )
        # The API rejects neither unscoped keys nor scopes unknown to nova.
        self.create(**{'key': '<or>', 'myscope:key': '<or>'})
