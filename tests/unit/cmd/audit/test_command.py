# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import subprocess
import sys
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd.audit import command


@ddt.ddt
class UsageTestCase(testtools.TestCase):
    def run_command(self, *argv):
        err = io.StringIO()
        audit = command.Audit(mock.Mock(), None, cmd_name='audit')
        with contextlib.redirect_stderr(err):
            try:
                parsed = audit.get_parser('audit').parse_args(argv)
            except SystemExit as exc:
                return exc.code, err.getvalue()
            with mock.patch.object(audit, 'configure') as configure:
                status = audit.run(parsed)
            configure.assert_not_called()
        return status, err.getvalue()

    @ddt.data(
        (['--policy', 'isolatoin'], 'isolation'),
        (['--option', 'debug'], '[group.]name=value'),
        (['--aggregate-property', 'gpu'], '2 arguments'),
        (['-c', 'Reasons'], 'No recognized column names in'),
        (['-c', 'Where'], 'No recognized column names in'),
    )
    @ddt.unpack
    def test_wrong(self, argv, part):
        status, err = self.run_command(*argv)
        self.assertEqual(2, status)
        self.assertIn(part, err)

    def test_no_nova_conf(self):
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'nova_ext_sched.cmd.main',
                'audit',
                '--config-file',
                '/nonexistent',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn('/nonexistent', done.stderr)
        self.assertNotIn('Traceback', done.stderr)
