# SPDX-License-Identifier: Apache-2.0

import io
import unittest

from nova_ext_sched.simulator import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressTest(unittest.TestCase):
    def run_for(self, stream, seconds):
        now = 0.0
        with progress.Progress(10, stream, lambda: now) as shown:
            for second in range(seconds + 1):
                now = float(second)
                shown.update(second)
        return stream.getvalue()

    def test_short_runs_show_nothing(self):
        self.assertEqual('', self.run_for(io.StringIO(), 1))
        self.assertEqual('', self.run_for(Terminal(), 1))

    def test_lines(self):
        self.assertEqual(
            [
                'Simulating: 2 of 10 hosts and servers after 2 s',
                'Simulating: 12 of 10 hosts and servers after 12 s',
            ],
            self.run_for(io.StringIO(), 15).splitlines(),
        )

    def test_bar(self):
        text = self.run_for(Terminal(), 3)
        self.assertIn('Simulating', text)
        self.assertNotIn('hosts and servers', text)
