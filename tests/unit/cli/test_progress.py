# SPDX-License-Identifier: Apache-2.0

import io

import testtools

from nova_ext_sched.cli import progress


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
