# SPDX-License-Identifier: Apache-2.0
from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova.api.validation.extra_specs import aggregate_instance_extra_specs
from nova.api.validation.extra_specs import validators as nova_validators
import testtools

from nova_ext_sched import validators

SCOPED = 'aggregate_instance_extra_specs:key'


@ddt.ddt
class ValidatorsTestCase(testtools.TestCase):
    """Which values are accepted: tests/unit/policy/test_expression.py.

    Which keys are ours to judge: tests/functional/test_validators.py.
    """

    @ddt.data(
        (validators, aggregate_instance_extra_specs),
        (aggregate_instance_extra_specs, validators),
    )
    def test_ours_is_asked_whichever_loads_first(self, plugins):
        """As nova-api loads them, from packages in a given order."""
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
        for key in (SCOPED, 'aggregate_instance_extra_specs:hw:cpu_policy'):
            for value in ('<or> 1 <or> ~', ''):
                nova_validators.validate(key, value)
            args = nova_validators.validate, key, '<or>'
            error = self.assertRaises(nova_exception.ValidationError, *args)
            self.assertEqual(
                f"Validation failed; extra spec '{key}': expected "
                "'<or> VALUE [<or> VALUE ...]', got '<or>'",
                error.format_message(),
            )

    def test_what_people_wrote_stays_on_its_line(self):
        (validator, _) = validators.register()
        args = f'{SCOPED}\u2028', '<or>\u2028' + '\n' * 999
        error = self.assertRaises(
            nova_exception.ValidationError, validator.validate, *args
        )
        message = error.format_message()
        self.assertTrue(message.isprintable(), ascii(message))
        self.assertLess(len(message), 1500)
