# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import signal
import unittest
from unittest import mock

import ddt

from nova_ext_sched.cli import completion
from nova_ext_sched.cli import main


@ddt.ddt
class MainTest(unittest.TestCase):
    def run_main(self, *arguments):
        out = io.StringIO()
        redirect = contextlib.redirect_stdout, contextlib.redirect_stderr
        with redirect[0](out), redirect[1](out):
            try:
                status = main.main(arguments)
            except SystemExit as exc:
                status = exc.code or 0
        return status, out.getvalue()

    @ddt.data((), ('--help',), ('help',))
    def test_help(self, arguments):
        """It has the commands by what they are for, then the options."""
        status, text = self.run_main(*arguments)
        self.assertEqual(0, status)
        places = []
        for title, command in (
            ('Look', 'audit'),
            ('Plan', 'make-room'),
            ('Record', 'watch'),
            ('Try', 'simulate'),
            ('Others', 'complete'),
        ):
            self.assertRegex(text, rf'(?m)^  {command} +\w')
            places += text.index(f'\n{title}:\n'), text.index(f'  {command} ')
        places.append(text.index('--debug'))
        self.assertEqual(sorted(places), places)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_wrong_usage(self):
        status, text = self.run_main('-v', '-q', 'audit')
        self.assertEqual(2, status)
        self.assertIn('not allowed with', text.splitlines()[0])
        self.assertIn("--help'.", text.splitlines()[1])

    def test_completion(self):
        """What bash sources, what it asks, and cliff's data."""
        self.assertEqual((0, completion.SCRIPT), self.run_main('complete'))
        line = 'nova-ext-sched expl'
        found = self.run_main('complete', '--line', line)
        self.assertEqual((0, 'explain\n'), found)
        status, text = self.run_main('complete', '--shell', 'none')
        self.assertRegex(text, r"cmds_explain='.*--server\b")

    def test_cliff_was_interrupted(self):
        """It ends as where nothing of cliff runs yet."""
        with (
            mock.patch('cliff.app.App.run', return_value=130),
            mock.patch('signal.signal') as ignored,
        ):
            self.assertEqual((130, 'interrupted\n'), self.run_main('audit'))
        ignored.assert_called_once_with(signal.SIGINT, signal.SIG_IGN)

    @ddt.data(
        (['--config-file', 'x', 'explain', '--all'],
         ['explain', '--config-file', 'x', '--all']),
        (['--config-dir=y', '--config-file', 'x', 'explain'],
         ['explain', '--config-dir=y', '--config-file', 'x']),
        (['--debug', 'explain'], ['--debug', 'explain']),
        ([], []),
        (['--config-file'], ['--config-file']),
    )  # fmt: skip
    @ddt.unpack
    def test_options_of_nova_before_the_subcommand(self, given, expected):
        self.assertEqual(expected, main._move_options(given))

    def test_before_and_after_are_one(self):
        """Both reach the command, which says that there is no such file."""
        before = self.run_main('--config-file', '/absent', 'explain')
        after = self.run_main('explain', '--config-file', '/absent')
        self.assertEqual(after, before)
        self.assertEqual(2, after[0])
