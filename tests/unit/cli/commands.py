# SPDX-License-Identifier: Apache-2.0

"""Commands of the tests, and how they are run."""

import contextlib
import io
from unittest import mock

import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.cli import report


def run(kind, *argv, **kwargs):
    """Run a command named count; return status, output and what it says."""
    out, err = io.StringIO(), io.StringIO()
    app = mock.Mock(spec=['command_manager'], stdout=out)
    command = kind(app, None, cmd_name='count', **kwargs)
    command.app_args = None
    parsed = command.get_parser('count').parse_args([*map(str, argv)])
    with contextlib.redirect_stderr(err):
        return command.run(parsed), out.getvalue(), err.getvalue()


class Lister(report.Lister):
    """A command with a text, two rows, and a document in subclasses."""

    document = None

    def get_columns(self, parsed_args):
        return ('Name', 'Values')

    def make_report(self, parsed_args):
        text = [report.Section('A text of words that people read')]
        rows = [
            ('b', report.Cell(['x, y', 'z'])),
            ('a', report.Cell({'x': 1}, 'one x')),
        ]
        return report.Report(
            'Two rows.',
            iter(text),
            iter(rows),
            self.document,
            status=base.SOME_FOUND,
        )


class CommandTestCase(testtools.TestCase):
    """:ivar err: what the last command said beside its output"""

    def run_command(self, *argv, kind=Lister, status=base.SOME_FOUND):
        """Run a command that ends so; return its output."""
        found, text, self.err = run(kind, *argv)
        self.assertEqual(status, found, self.err)
        return text
