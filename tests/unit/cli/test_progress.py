# SPDX-License-Identifier: Apache-2.0

import io
from unittest import mock

from rich import progress as rich_progress
import testtools

from nova_ext_sched.cli import progress
from tests.unit.cli import test_terminal


class ProgressTestCase(testtools.TestCase):
    def run_bar(self, stream):
        with progress.bar(stream, 'Changing placement', 2) as advance:
            advance()
            advance()
            advance(label='Reading placement', total=3)
            advance()
        return stream.getvalue()

    def test_a_terminal(self):
        """What begins anew has its own number of steps."""
        shown = []
        add_task = rich_progress.Progress.add_task

        def note(bar, *args, **kwargs):
            number = add_task(bar, *args, **kwargs)
            shown.extend(bar.tasks)
            return number

        with mock.patch.object(rich_progress.Progress, 'add_task', note):
            text = self.run_bar(test_terminal.Terminal())
        self.assertIn('Reading placement', text)
        [task] = shown
        self.assertEqual(
            ('Reading placement', 1, 3),
            (task.description, task.completed, task.total),
        )

    def test_a_file(self):
        self.assertEqual('', self.run_bar(io.StringIO()))
