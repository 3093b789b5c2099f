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

import contextlib
import io
import unittest.mock

import testtools

from nova_ext_sched.cmd import status


class WithoutNovaTestCase(testtools.TestCase):
    def test_says_where_to_run(self):
        errors = io.StringIO()
        with (
            unittest.mock.patch('importlib.util.find_spec', lambda name: None),
            contextlib.redirect_stderr(errors),
        ):
            self.assertEqual(255, status.main())
        self.assertIn(
            'expected to run where nova-scheduler runs, got a Python without '
            'nova',
            errors.getvalue(),
        )
