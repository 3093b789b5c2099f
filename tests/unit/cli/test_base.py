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

GPU = types.SimpleNamespace(id=1, uuid='uuid1', name='gpu')
ONE = types.SimpleNamespace(id=2, uuid='uuid2', name='1')


@ddt.ddt
class DescribeTestCase(testtools.TestCase):
    @ddt.data(
        # A database, without its statement.
        (
            db_exception.DBError(
                "(OperationalError) (2003, 'no route')\n[SQL: SELECT 1]"
            ),
            '[api_database] connection in nova.conf: expected an answer of '
            "the database, got DBError: (OperationalError) (2003, 'no "
            "route')",
        ),
        (KeyError(), 'KeyError'),
        (OSError('no'), 'no'),
    )
    @ddt.unpack
    def test_words(self, error, expected):
        self.assertEqual(expected, base._describe(error))

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
            base._describe(error),
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


@ddt.ddt
class FindAggregateTestCase(testtools.TestCase):
    def find(self, name):
        return base.find_aggregate([GPU, ONE], name)

    @ddt.data('gpu', 'uuid1')
    def test_name_and_uuid(self, name):
        self.assertIs(GPU, self.find(name))

    def test_id(self):
        self.assertIs(ONE, self.find('2'))

    @ddt.data(('gpus', 'gpu, 1'), ('11', '1, gpu'), ('', '1, gpu'))
    @ddt.unpack
    def test_none(self, name, known):
        error = self.assertRaises(exception.InvalidValue, self.find, name)
        self.assertEqual(
            f'aggregate: expected the name, UUID or ID of an aggregate: '
            f"{known}, got '{name}'",
            str(error),
        )

    def test_name_that_is_the_id_of_another(self):
        error = self.assertRaises(exception.InvalidValue, self.find, '1')
        self.assertEqual(
            'aggregate: expected the UUID of one aggregate, such as uuid1, '
            "because 2 aggregates have this name, got '1'",
            str(error),
        )
