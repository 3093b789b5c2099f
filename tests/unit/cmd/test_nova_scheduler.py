# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock

import ddt
from keystoneauth1 import exceptions as ks_exc
from nova import context
from nova.objects import cell_mapping
from nova.volume import cinder
from oslo_db import exception as db_exception
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import nova_scheduler

NOVA_GET = 'nova.scheduler.client.report.SchedulerReportClient.get'


def response(status, body, text=''):
    return mock.Mock(
        status_code=status, text=text, json=mock.Mock(side_effect=[body])
    )


@ddt.ddt
class ReportClientTestCase(testtools.TestCase):
    def get(self, answer):
        client = object.__new__(nova_scheduler.ReportClient)
        with mock.patch(NOVA_GET, side_effect=[answer]):
            return client, client.get('/traits')

    def test_an_answer(self):
        answer = response(200, {})
        self.assertIs(answer, self.get(answer)[1])

    @ddt.data(
        (response(400, {'errors': [{'detail': ' no\n'}]}), '400 no'),
        (response(400, {}, 'no JSON'), '400 no JSON'),
    )
    @ddt.unpack
    def test_a_query_that_is_refused(self, answer, refusal):
        client, found = self.get(answer)
        self.assertIs(answer, found)
        self.assertEqual(refusal, client.refusal)

    @ddt.data(
        (response(503, ValueError('no JSON'), 'busy'), '503 busy'),
        (ks_exc.ConnectFailure('no route'), 'ConnectFailure: no route'),
    )
    @ddt.unpack
    def test_a_fault(self, answer, cause):
        error = self.assertRaises(
            nova_scheduler.PlacementFailed, self.get, answer
        )
        self.assertEqual(
            f'[placement] in nova.conf: expected an answer to GET /traits, '
            f'got: {cause}',
            str(error),
        )


@ddt.ddt
class CredentialsTestCase(testtools.TestCase):
    """Of any auth type; Glance's as the user, and Cinder's without its own."""

    def context(self, **variables):
        nova_scheduler._user_auth.cache_clear()
        self.addCleanup(nova_scheduler._user_auth.cache_clear)
        kept = {k: v for k, v in os.environ.items() if k[:3] != 'OS_'}
        with mock.patch.dict(os.environ, kept | variables, clear=True):
            return nova_scheduler.context()

    @ddt.data(
        {'OS_AUTH_URL': 'http://k', 'OS_USERNAME': 'a', 'OS_PASSWORD': 'b'},
        {'OS_AUTH_TYPE': 'none', 'OS_ENDPOINT': 'http://c'},
        {'OS_ENDPOINT': 'http://c', 'OS_AUTH_TYPE': 'admin_token',
         'OS_TOKEN': 't'},
        {'OS_AUTH_TYPE': 'v3applicationcredential', 'OS_AUTH_URL': 'http://k',
         'OS_APPLICATION_CREDENTIAL_ID': 'i',
         'OS_APPLICATION_CREDENTIAL_SECRET': 's'},
    )  # fmt: skip
    def test_of_the_environment(self, variables):
        ctxt = self.context(**variables)
        self.assertIsNotNone(ctxt.user_auth_plugin)
        self.assertIs(ctxt.user_auth_plugin, cinder._get_auth(ctxt))
        # Also in the contexts of cells and of an administrator.
        self.assertIs(ctxt.user_auth_plugin, cinder._get_auth(ctxt.elevated()))

    def test_without(self):
        self.assertIsNone(self.context().user_auth_plugin)

    def test_cinder_s_own_come_first(self):
        conf = nova_scheduler.CONF
        conf.set_override('auth_type', 'password', 'cinder')
        self.addCleanup(conf.clear_override, 'auth_type', 'cinder')
        ctxt = self.context(OS_AUTH_TYPE='none', OS_ENDPOINT='http://c')
        with mock.patch.object(cinder, '_load_auth_plugin') as load:
            self.assertIs(load.return_value, cinder._get_auth(ctxt))

    def test_malformed(self):
        self.assertRaises(
            exception.InvalidValue, self.context, OS_AUTH_TYPE='absent'
        )

    def test_whose_they_are(self):
        variables = {'OS_AUTH_URL': 'http://k', 'OS_USERNAME': 'ann',
                     'OS_PASSWORD': 's3cret'}  # fmt: skip
        with mock.patch.dict(os.environ, variables, clear=True):
            error = nova_scheduler.CredentialsFailed(
                service='Glance', cause='401'
            )
        self.assertEqual(
            'Glance: expected an answer with the credentials of '
            'OS_AUTH_URL=http://k, OS_USERNAME=ann, got 401',
            str(error),
        )
        with mock.patch.dict(os.environ, {'OS_CLOUD': 'lab'}, clear=True):
            self.assertIn('cloud lab', nova_scheduler.describe_credentials())


class CellTestCase(testtools.TestCase):
    def test_a_database_that_is_down(self):
        cell = cell_mapping.CellMapping(
            uuid='x', name='cell1', database_connection='sqlite://',
            transport_url='fake://',
        )  # fmt: skip

        def fail():
            with nova_scheduler.target_cell(context.get_admin_context(), cell):
                raise db_exception.DBError('gone\n[SQL: SELECT 1]')

        error = self.assertRaises(nova_scheduler.CellFailed, fail)
        self.assertIn('cell cell1', str(error))
        self.assertNotIn('SELECT', str(error))
