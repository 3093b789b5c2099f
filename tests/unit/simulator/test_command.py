# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import unittest
from unittest import mock

from nova_ext_sched import exception
from nova_ext_sched.simulator import command
from nova_ext_sched.simulator import runner


class UsageTest(unittest.TestCase):
    """What ends before a cloud is built; the rest is a functional test."""

    def run_command(self, *arguments):
        err = io.StringIO()
        out = io.StringIO()
        with (
            contextlib.redirect_stderr(err),
            contextlib.redirect_stdout(out),
        ):
            try:
                status = command.main(arguments)
            except SystemExit as exc:
                status = exc.code
        return status, out.getvalue(), err.getvalue()

    def test_help(self):
        status, out, _ = self.run_command('--help')
        self.assertEqual(0, status)
        for text in ('SCENARIO.yaml', '--compare', '-f', 'Exit status: 0'):
            self.assertIn(text, out)

    def test_no_scenario(self):
        status, _, err = self.run_command()
        self.assertEqual(2, status)
        self.assertIn('SCENARIO.yaml', err)

    def test_no_such_file(self):
        self.assertEqual(
            (
                2,
                '',
                '/nonexistent.yaml: (top): expected a file that can be read, '
                'got No such file or directory\n',
            ),
            self.run_command('/nonexistent.yaml'),
        )

    def test_no_such_column(self):
        status, _, err = self.run_command('/nonexistent.yaml', '-c', 'Hosts')
        self.assertEqual(2, status)
        self.assertIn("No recognized column names in ['Hosts']", err)

    def test_columns_of_a_comparison(self):
        _, _, err = self.run_command(
            '/nonexistent.yaml', '-c', 'Plain Nova', '--compare'
        )
        self.assertNotIn('column', err)

    def test_log_file_that_cannot_be_written(self):
        status, _, err = self.run_command(
            '/nonexistent.yaml', '--log-file', '/nonexistent/nova.log'
        )
        self.assertEqual(2, status)
        self.assertIn('/nonexistent/nova.log', err)

    def test_the_cloud_breaks_down(self):
        with (
            mock.patch.object(command.check, 'load') as load,
            mock.patch.object(
                runner,
                'run',
                side_effect=exception.SimulationFailed(
                    cloud='plain nova', cause='fire'
                ),
            ),
        ):
            load.return_value = (mock.Mock(), mock.Mock(hosts=[], steps=[]))
            self.assertEqual(
                (
                    3,
                    '',
                    'the cloud of plain nova: expected the steps to run, '
                    'got: fire; --debug shows the log\n',
                ),
                self.run_command('s.yaml'),
            )
