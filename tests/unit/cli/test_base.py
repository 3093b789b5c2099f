# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import pathlib
import types

import ddt
import fixtures
from oslo_config import cfg
from oslo_db import exception as db_exception
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import base


@ddt.ddt
class DescribeTestCase(testtools.TestCase):
    @ddt.data(
        # A database, without its statement.
        (db_exception.DBError(
            "(OperationalError) (2003, 'no route')\n[SQL: SELECT 1]"),
         '[api_database] connection in nova.conf: expected an answer of the '
         "database, got DBError: (OperationalError) (2003, 'no route')"),
        (KeyError(), 'KeyError'),
        (OSError('no'), 'no'),
    )  # fmt: skip
    @ddt.unpack
    def test_words(self, error, expected):
        self.assertEqual(expected, base._say_fault(error))

    def test_an_option_of_nova_conf(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = folder / 'nova.conf'
        path.write_text('[DEFAULT]\nnumber = x\n')
        config = cfg.ConfigOpts()
        config.register_opt(cfg.IntOpt('number'))
        config(['--config-file', str(path)])
        error = self.assertRaises(
            cfg.ConfigFileValueError, getattr, config, 'number'
        )
        self.assertIn(
            f'Value for option number from {path} is not valid: ',
            base._say_fault(error),
        )


@ddt.ddt
class StatusTestCase(testtools.TestCase):
    @ddt.data(
        (base.UsageError('Say which.'), 2),
        (exception.InvalidValue(where='x', expected='y', got='z'), 2),
        (LookupError('no answer'), 1),
        (None, 3),
    )
    @ddt.unpack
    def test_how_a_command_ends(self, error, expected):
        class Command(base.Command):
            def take_action(self, parsed_args):
                if error:
                    raise error
                self.status = base.SOME_FOUND

        command = Command(types.SimpleNamespace(stdout=io.StringIO()), None)
        command.cmd_name = 'c'
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(expected, command.run(types.SimpleNamespace()))
        self.assertEqual(bool(error), str(error) in said.getvalue())

    def test_what_was_typed(self):
        class Command(base.Command):
            def take_action(self, parsed_args):
                """Do nothing."""

        app = types.SimpleNamespace(words=['drain', 'a b', '--option', 'x'])
        command = Command(app, None)
        command.cmd_name = 'drain'
        self.assertEqual(
            "nova-ext-sched drain 'a b' --option x", command.command_line
        )
        app.words[-1] = 'db=mysql://nova:secret@db/nova'
        self.assertIn('mysql://nova:***@db', command.command_line)
        command.app = types.SimpleNamespace()
        self.assertEqual('nova-ext-sched drain', command.command_line)
