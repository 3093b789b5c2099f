# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
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

from nova_ext_sched.dryrun.cloud import process


def set_variables(test, **variables):
    """Let a test have these OS_* variables alone."""
    kept = {k: v for k, v in os.environ.items() if k[:3] != 'OS_'}
    # openstacksdk 4.5 takes no empty file.
    file = test.useFixture(fixtures.TempDir()).join('clouds.yaml')
    pathlib.Path(file).write_text('clouds: {}\n')
    kept |= {**variables, 'OS_CLIENT_CONFIG_FILE': file}
    test.enterContext(mock.patch.dict(os.environ, kept, clear=True))


@ddt.ddt
class CredentialsTestCase(testtools.TestCase):
    """Glance is asked as openstacksdk says, Cinder as nova.conf says."""

    def context(self, **variables):
        clear = process._load_user_auth.cache_clear
        clear()
        self.addCleanup(clear)
        set_variables(self, **variables)
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
            asked = auth.get_token.__self__
            self.assertIsInstance(asked, plugin.BaseAuthPlugin)

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
        denied = cinder_exception.Unauthorized
        self.assertRaises(denied, cinder._get_auth, ctxt)
        with mock.patch.object(cinder, '_load_auth_plugin') as load:
            for one in (ctxt, *self.copies(ctxt)):
                self.assertIs(load.return_value, cinder._get_auth(one))
