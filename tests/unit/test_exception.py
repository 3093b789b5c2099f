# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched import exception


class ErrorTestCase(testtools.TestCase):
    def test_data_and_text(self):
        error = exception.InvalidValue(where='a.b', expected='c', got='{x}')
        self.assertIsInstance(error, ValueError)
        self.assertEqual('a.b', error.where)
        # Braces in data are text.
        self.assertEqual("a.b: expected c, got '{x}'", str(error))
