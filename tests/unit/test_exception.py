# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched import exception


class ErrorTestCase(testtools.TestCase):
    def test_data_and_text(self):
        error = exception.InvalidValue(
            where='policy.rules', expected='an object', got=['x']
        )
        self.assertIsInstance(error, ValueError)
        self.assertEqual('policy.rules', error.where)
        self.assertEqual(
            "policy.rules: expected an object, got ['x']", str(error)
        )

    def test_braces_in_data_are_text(self):
        error = exception.InvalidValue(where='a', expected='b', got='{x}')
        self.assertEqual("a: expected b, got '{x}'", str(error))
