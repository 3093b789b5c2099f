# SPDX-License-Identifier: Apache-2.0

import contextlib
import importlib.metadata
import io
import os
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

import ddt

from nova_ext_sched import exception
from nova_ext_sched.cli import main
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import runner

PREFIX = 'nova-ext-sched simulate: '
SCENARIO = """
description: It does.
hosts: [a, b]
flavors: {small: {}}
steps: [{boot: x, flavor: small, expect: a}]
"""


class CommandTestCase(unittest.TestCase):
    """Without a cloud; the rest is a functional test."""

    def setUp(self):
        super().setUp()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, 's.yaml')
        pathlib.Path(self.file).write_text(SCENARIO)

    def run_command(self, *arguments):
        err = io.StringIO()
        out = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            try:
                status = main.main(['simulate', *arguments])
            except SystemExit as exc:
                status = exc.code
        return status, out.getvalue(), err.getvalue()

    def cloud_does(self, *hosts, **kwargs):
        """Let the server land on these hosts, one in each run."""
        placements = [expectation.Placement('x', host=host) for host in hosts]
        runs = [
            expectation.Run([expectation.Outcome([placement])], ['look out'])
            for placement in placements
        ]
        self.enterContext(
            mock.patch.object(runner, 'run', return_value=runs, **kwargs)
        )


@ddt.ddt
class UsageTest(CommandTestCase):
    @ddt.unpack
    @ddt.data(
        ((), 'SCENARIO'),
        (('a.yaml', '--list'), 'not allowed'),
        (('a.yaml', '-f', 'xml'), 'xml'),
        (('/nonexistent.yaml',),
         'expected a file or the name of a scenario that --list shows, '
         'got /nonexistent.yaml\n'),
        (('windows_licencing',), 'did you mean windows_licensing?\n'),
        (('/dev/null',), '/dev/null: (top): expected a mapping with the keys'),
        (('/',), '/: (top): expected a file that can be read'),
        (('rebuild', '-c', 'Hosts'),
         'There is no column Hosts. The columns are'),
    )  # fmt: skip
    def test_refused(self, arguments, words):
        status, out, err = self.run_command(*arguments)
        self.assertEqual((2, ''), (status, out), err)
        self.assertIn(words, err)
        self.assertNotIn('Traceback', err)

    def test_log_that_cannot_be_written(self):
        status, out, err = self.run_command(
            'rebuild', '--nova-log', '/nonexistent/nova.log'
        )
        self.assertEqual((1, ''), (status, out), err)
        self.assertIn("No such file or directory: '/nonexistent/nova.log", err)

    def test_list(self):
        status, out, err = self.run_command('--list')
        self.assertEqual((0, ''), (status, err))
        self.assertIn(
            'windows_licensing\n  Licences, a reservation and racks', out
        )
        status, out, _ = self.run_command('--list', '-f', 'value')
        self.assertIn('rebuild A rebuild cannot bring', out)

    def test_shipped_scenario(self):
        self.cloud_does(side_effect=ValueError('here'))
        self.assertEqual(
            (1, '', f'{PREFIX}here\n'), self.run_command('windows_licensing')
        )

    def test_missing_extra(self):
        real = importlib.metadata.version

        def version(name):
            if name in ('PyYAML', 'openstack-placement'):
                raise importlib.metadata.PackageNotFoundError(name)
            return real(name)

        self.enterContext(
            mock.patch.object(importlib.metadata, 'version', version)
        )
        self.assertEqual(
            (
                2,
                '',
                f'{PREFIX}The packages of the extra "simulator" are missing: '
                'openstack-placement, PyYAML. Install them: in a clone of '
                "nova-ext-sched, pip install '.[simulator]'; from a wheel, "
                "pip install './nova_ext_sched-VERSION-py3-none-any.whl"
                "[simulator]'\n",
            ),
            self.run_command('--list'),
        )


@ddt.ddt
class ResultTest(CommandTestCase):
    def test_held(self):
        self.cloud_does('a')
        status, out, err = self.run_command(self.file)
        self.assertEqual((0, ''), (status, err))
        self.assertIn('1 of 1 step as expected.\nIt does.\n\nwarning ', out)

    def test_differs(self):
        self.cloud_does('b', 'a')
        status, out, _ = self.run_command(self.file, '--compare')
        self.assertEqual(3, status)
        self.assertIn('nova-ext-sched  DIFFERS     b\n', out)

    @ddt.unpack
    @ddt.data(
        (
            exception.SimulationFailed(cloud='plain nova', cause='fire'),
            'the cloud of plain nova: expected the steps to run, got: fire\n',
        ),
        (KeyboardInterrupt(), 'interrupted\n', 130),
        (BrokenPipeError(), 'the output was closed before its end\n'),
        (OSError(28, 'No space left'), '[Errno 28] No space left\n'),
        (RuntimeError('a'), 'a\n'),
    )
    def test_anything_else(self, raised, line, status=1):
        self.addCleanup(
            signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)
        )
        self.cloud_does(side_effect=raised)
        said = line if status == 130 else f'{PREFIX}{line}'
        self.assertEqual((status, '', said), self.run_command(self.file))
