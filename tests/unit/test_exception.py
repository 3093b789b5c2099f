#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
