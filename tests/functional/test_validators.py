# SPDX-License-Identifier: Apache-2.0
"""nova-api, from microversion 2.86 on, with our validators loaded."""

import ddt
from nova.tests.functional.api import client

from tests.functional import base


@ddt.ddt
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

    @ddt.data('*', '~', '!', '<or> 1 <or> ~', '<or> * <or> ~', '>= 4', 'a b')
    def test_accepted(self, value):
        key = 'aggregate_instance_extra_specs:hw:cpu_policy'
        self.assertEqual({key: value}, self.create(**{key: value}))
        self.admin_api.put_extra_spec(self.flavor_id, key, {key: value})

    @ddt.data('<or>', '! 1', '<or> ! <or> 1', '>= x', '<in>')
    def test_rejected(self, value):
        key = 'aggregate_instance_extra_specs:key'
        create = {'extra_specs': {key: value}}
        for call, *args in (
            (self.admin_api.post_extra_spec, create),
            (self.admin_api.put_extra_spec, key, {key: value}),
        ):
            message = self.reject(call, self.flavor_id, *args)
            self.assertIn(f"extra spec '{key}': expected '", message)
            self.assertIn(f"got '{value}'", message)
        self.assertEqual({}, self.admin_api.get_extra_specs(self.flavor_id))

    def test_numbers_are_read_as_their_text(self):
        key = 'aggregate_instance_extra_specs:cores'
        self.create(**{key: 4})

    def test_what_the_api_cannot_reject(self):
        # Unscoped keys and scopes that nova does not know.
        self.create(**{'key': '<or>', 'myscope:key': '<or>'})
        # A scope that nova knows has nova's own validator.
        self.reject(
            self.admin_api.post_extra_spec,
            self.flavor_id,
            {'extra_specs': {'hw:cpu_policy': '<or> shared <or> ~'}},
        )

    def test_before_2_86_nothing_is_validated(self):
        self.admin_api.microversion = '2.85'
        key = 'aggregate_instance_extra_specs:key'
        self.assertEqual({key: '<or>'}, self.create(**{key: '<or>'}))
