# SPDX-License-Identifier: Apache-2.0
from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova.api.validation.extra_specs import aggregate_instance_extra_specs
from nova.api.validation.extra_specs import hw
from nova.api.validation.extra_specs import null
from nova.api.validation.extra_specs import validators as nova_validators
import testtools

from nova_ext_sched import validators

SCOPED = 'aggregate_instance_extra_specs:key'


class LoadedMixin:
    """Load validators as nova-api does, from packages in a given order."""

    def load(self, *plugins):
        for name, value in (('VALIDATORS', {}), ('NAMESPACES', set())):
            self.useFixture(
                fixtures.MockPatchObject(nova_validators, name, value)
            )
        extensions = [mock.Mock(plugin=plugin) for plugin in plugins]
        with mock.patch.object(
            nova_validators.extension,
            'ExtensionManager',
            return_value=extensions,
        ):
            nova_validators.load_validators()

    def reject(self, name, value):
        error = self.assertRaises(
            nova_exception.ValidationError,
            nova_validators.validate,
            name,
            value,
        )
        return error.format_message()


@ddt.ddt
class OrderTestCase(LoadedMixin, testtools.TestCase):
    @ddt.data(
        (validators, aggregate_instance_extra_specs),
        (aggregate_instance_extra_specs, validators),
    )
    def test_ours_is_asked_whichever_loads_first(self, plugins):
        self.load(*plugins)
        nova_validators.validate(SCOPED, '<or> 1 <or> ~')
        self.assertIn("expected '<or> VALUE", self.reject(SCOPED, '<or>'))
        # An operator's key cannot reach nova's registry by its name.
        nova_validators.validate('aggregate_instance_extra_specs:a:b', '1')

    def test_novas_alone_accepts_everything(self):
        self.load(aggregate_instance_extra_specs)
        nova_validators.validate(SCOPED, '<or>')


@ddt.ddt
class ValidatorsTestCase(LoadedMixin, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.load(aggregate_instance_extra_specs, hw, null, validators)

    @ddt.data(SCOPED, 'aggregate_instance_extra_specs:hw:cpu_policy')
    def test_accepted_and_rejected(self, key):
        """Which values are: tests/unit/policy/test_expression.py."""
        for value in ('<or> 1 <or> ~', ''):
            nova_validators.validate(key, value)
        self.assertEqual(
            f"Validation failed; extra spec '{key}': expected "
            "'<or> VALUE [<or> VALUE ...]', got '<or>'",
            self.reject(key, '<or>'),
        )

    def test_what_people_wrote_stays_on_its_line(self):
        (validator, _) = validators.register()
        error = self.assertRaises(
            nova_exception.ValidationError,
            validator.validate,
            f'{SCOPED}\u2028',
            '<or>\u2028' + '\n' * 999,
        )
        message = error.format_message()
        self.assertTrue(message.isprintable(), ascii(message))
        self.assertLess(len(message), 1500)

    @ddt.data('key', 'scope:key', 'group_policy_x')
    def test_other_keys_are_not_ours_to_judge(self, key):
        nova_validators.validate(key, '<or>')

    def test_novas_validators_of_other_scopes_stay(self):
        # Their keys cannot hold the language; the documentation says so.
        self.reject('hw:cpu_policy', '<or> shared <or> ~')
        self.reject('group_policy', '*')

    def test_documented(self):
        for validator in validators.register():
            for form in ('*', '~', '!', '<or>', '<all-in>', 's=='):
                self.assertIn(f'``{form}', validator.description)
