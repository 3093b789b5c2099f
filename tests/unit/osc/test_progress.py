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

import io

import testtools

from nova_ext_sched.osc import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressTestCase(testtools.TestCase):
    def run_bar(self, stream):
        with progress.bar(stream, 'Changing placement', 2) as advance:
            advance()
            advance()
        return stream.getvalue()

    def test_a_terminal(self):
        self.assertIn('Changing placement', self.run_bar(Terminal()))

    def test_a_file(self):
        self.assertEqual('', self.run_bar(io.StringIO()))
