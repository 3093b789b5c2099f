# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import unittest

import ddt

from nova_ext_sched.cmd import main


@ddt.ddt
class MainTest(unittest.TestCase):
    def run_main(self, *arguments):
        out = io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            try:
                status = main.main(arguments)
            except SystemExit as exc:
                status = exc.code or 0
        return status, out.getvalue()

    @ddt.data((), ('--help',))
    def test_help(self, arguments):
        status, text = self.run_main(*arguments)
        self.assertEqual(0, status)
        for command in ('audit', 'explain', 'simulate'):
            self.assertRegex(text, rf'(?m)^  {command} +\w')

    def test_unknown_command(self):
        status, text = self.run_main('explian')
        self.assertEqual(2, status)
        self.assertIn('explain', text)
