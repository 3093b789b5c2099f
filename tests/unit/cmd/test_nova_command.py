# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import io
import logging
import subprocess
import sys
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd.explain import command as explain


class WithoutNovaTestCase(testtools.TestCase):
    def test_the_command_says_where_to_run(self):
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                'import sys; sys.modules["nova"] = None; '
                'from nova_ext_sched.cmd import main; '
                'sys.exit(main.main(["explain", "--flavor", "x"]))',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertIn("nova-scheduler's environment", done.stderr)
        # No sentence names the command twice.
        self.assertEqual(1, done.stderr.count('nova-ext-sched'))


class MonkeyPatchTestCase(testtools.TestCase):
    """How nova's threads work is chosen where nova lets one choose."""

    def configure(self, patch):
        command = explain.Explain(mock.Mock(), None)
        command.app_args = argparse.Namespace(debug=True)
        parsed_args = argparse.Namespace(config_file=[], config_dir=[])
        with (
            mock.patch('nova.monkey_patch.patch', patch, create=True),
            mock.patch('nova_ext_sched.cmd.nova_scheduler.configure') as call,
        ):
            command.configure(parsed_args)
        call.assert_called_once_with([], [])

    def test_from_nova_33_on(self):
        calls = []

        def patch(backend='eventlet'):
            calls.append(backend)

        self.configure(patch)
        self.assertEqual(['threading'], calls)

    def test_eventlet_s_complaint_is_not_shown(self):
        """Of locks older than its patch; by a logger without a parent."""

        def patch():
            logging.Logger('eventlet').error('1 RLock(s) were not greened')

        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.configure(patch)
            self.assertEqual('', err.getvalue())
            patch()
            self.assertIn('greened', err.getvalue())

    def test_nova_32(self):
        calls = []

        def patch():
            calls.append(None)

        self.configure(patch)
        self.assertEqual([None], calls)


@ddt.ddt
class LogTestCase(testtools.TestCase):
    """nova has a traceback for each cell that does not answer."""

    @ddt.data((False, False), (True, True))
    @ddt.unpack
    def test_a_cell_that_does_not_answer(self, debug, is_logged):
        for name in ('nova', 'nova.context', 'neutronclient'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.NOTSET)
        command = explain.Explain(mock.Mock(), None)
        command.app_args = argparse.Namespace(debug=debug)
        parsed_args = argparse.Namespace(config_file=[], config_dir=[])
        with (
            mock.patch('nova.monkey_patch.patch', create=True),
            mock.patch('nova_ext_sched.cmd.nova_scheduler.configure'),
        ):
            command.configure(parsed_args)
        logger = logging.getLogger('nova.context')
        self.assertEqual(is_logged, logger.isEnabledFor(logging.ERROR))
