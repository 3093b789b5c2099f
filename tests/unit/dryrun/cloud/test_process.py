# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import io
import logging
import os
import pathlib
import subprocess
import sys
from unittest import mock

from cinderclient import exceptions as cinder_exception
import ddt
import fixtures
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import plugin
from nova import conf as nova_conf
from nova import context
from nova.image import glance
from nova.volume import cinder
import testtools

from nova_ext_sched.cmd.explain import command as explain
from nova_ext_sched.dryrun.cloud import process


class ProcessTestCase(testtools.TestCase):
    def test_without_nova(self):
        """The command says where to run it, in a process of its own."""
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                'import sys; sys.modules["nova"] = None; '
                'from nova_ext_sched.cli import main; '
                'sys.exit(main.main(["explain", "--flavor", "x"]))',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertNotIn('Traceback', done.stderr)
        self.assertIn("nova-scheduler's environment", done.stderr)
        # No sentence names the command twice.
        self.assertEqual(1, done.stderr.count('nova-ext-sched'))


@ddt.ddt
class ConfigureTestCase(testtools.TestCase):
    def configure(self, patch=lambda: None, debug=True):
        """Configure a command where this patches nova's threads."""
        command = explain.Explain(mock.Mock(), None)
        command.app_args = argparse.Namespace(debug=debug)
        parsed_args = argparse.Namespace(config_file=[], config_dir=[])
        with (
            mock.patch('nova.monkey_patch.patch', patch, create=True),
            mock.patch(
                'nova_ext_sched.dryrun.cloud.process.configure'
            ) as call,
        ):
            command.configure(parsed_args)
        call.assert_called_once_with([], [])

    def test_of_each_release(self):
        """Up to nova 32 there is no choice."""
        calls = []
        self.configure(lambda backend='eventlet': calls.append(backend))
        self.configure(lambda: calls.append(None))
        self.assertEqual(['threading', None], calls)

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

    @ddt.data((False, False), (True, True))
    @ddt.unpack
    def test_a_cell_that_does_not_answer(self, debug, is_logged):
        """nova has a traceback for each."""
        for name in ('nova', 'nova.context', 'neutronclient'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.NOTSET)
        self.configure(debug=debug)
        logger = logging.getLogger('nova.context')
        self.assertEqual(is_logged, logger.isEnabledFor(logging.ERROR))


@ddt.ddt
class CredentialsTestCase(testtools.TestCase):
    """Glance is asked as openstacksdk says, Cinder as nova.conf says."""

    def context(self, **variables):
        clear = process._load_user_auth.cache_clear
        clear()
        self.addCleanup(clear)
        kept = {k: v for k, v in os.environ.items() if k[:3] != 'OS_'}
        # openstacksdk 4.5 takes no empty file.
        file = self.useFixture(fixtures.TempDir()).join('clouds.yaml')
        pathlib.Path(file).write_text('clouds: {}\n')
        variables['OS_CLIENT_CONFIG_FILE'] = file
        environ = mock.patch.dict(os.environ, kept | variables, clear=True)
        environ.start()
        self.addCleanup(environ.stop)
        return process.context()

    def copies(self, ctxt):
        with context.target_cell(ctxt, None) as target:
            return ctxt.elevated(), target

    def test_glance_s(self):
        ctxt = self.context(OS_AUTH_TYPE='none', OS_ENDPOINT='http://c')
        session, auth = glance._session_and_auth(ctxt)
        self.assertEqual('http://c', session.get_endpoint(auth))
        # Also in the contexts of cells and of an administrator.
        for one in self.copies(ctxt):
            _, auth = glance._session_and_auth(one)
            self.assertIsInstance(
                auth.get_token.__self__, plugin.BaseAuthPlugin
            )

    @ddt.data(
        ({}, ks_exc.MissingRequiredOptions),
        ({'OS_AUTH_TYPE': 'absent'}, ks_exc.NoMatchingPlugin),
    )
    @ddt.unpack
    def test_none_are_a_fault_only_where_glance_is_asked(
        self, variables, expected
    ):
        ctxt = self.context(**variables)
        session, auth = glance._session_and_auth(ctxt)
        self.assertRaises(expected, session.get_endpoint, auth)

    def test_cinder_s(self):
        conf = nova_conf.CONF
        ctxt = self.context(OS_AUTH_TYPE='none', OS_ENDPOINT='http://c')
        self.assertIsNone(conf.cinder.auth_type)
        self.assertRaises(
            cinder_exception.Unauthorized, cinder._get_auth, ctxt
        )
        with mock.patch.object(cinder, '_load_auth_plugin') as load:
            for one in (ctxt, *self.copies(ctxt)):
                self.assertIs(load.return_value, cinder._get_auth(one))


class OverrideTestCase(testtools.TestCase):
    def test_default_and_a_group(self):
        conf = nova_conf.CONF
        for name, group in (('host', None), ('workers', 'scheduler')):
            self.addCleanup(conf.clear_override, name, group)
        process.override({'host': 'here', 'scheduler.workers': '7'})
        self.assertEqual(('here', 7), (conf.host, conf.scheduler.workers))
