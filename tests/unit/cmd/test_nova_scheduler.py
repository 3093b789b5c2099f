# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock

import ddt
from keystoneauth1 import exceptions as ks_exc
from nova import context
from nova.objects import cell_mapping
from nova.scheduler.client import report
from nova.volume import cinder
from oslo_db import exception as db_exception
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import nova_scheduler

NOVA_GET = 'nova.scheduler.client.report.SchedulerReportClient.get'
LONG = f'/allocation_candidates?{1000 * "x"}'


def response(status, body, text=''):
    return mock.Mock(
        status_code=status, text=text, json=mock.Mock(side_effect=[body])
    )


@ddt.ddt
class ReportClientTestCase(testtools.TestCase):
    def get(self, answer, *further, url='/traits'):
        client = object.__new__(nova_scheduler.ReportClient)
        with mock.patch(NOVA_GET, side_effect=[answer, *further]):
            return client, client.get(url)

    @ddt.data('post', 'put', 'delete')
    def test_it_writes_nothing(self, method):
        client = object.__new__(nova_scheduler.ReportClient)
        nova = 'nova.scheduler.client.report.SchedulerReportClient'
        with mock.patch(f'{nova}.{method}') as write:
            error = self.assertRaises(
                RuntimeError, getattr(client, method), '/traits/X', {}
            )
        self.assertIn('got a write to /traits/X', str(error))
        write.assert_not_called()

    def test_it_has_every_way_to_write(self):
        """Of nova's client, and of the adapter that it hands on."""
        ways = {
            name
            for name in vars(report.SchedulerReportClient)
            if name in ('post', 'put', 'patch', 'delete')
        }
        self.assertEqual({'post', 'put', 'delete'}, ways)
        self.assertLessEqual(ways, {*vars(nova_scheduler.ReportClient)})

    def test_an_answer(self):
        answer = response(200, {})
        self.assertIs(answer, self.get(answer)[1])

    def test_a_query_that_placement_refuses(self):
        """Of whatever length: it is of no use to ask again."""
        for url in ('/traits', LONG):
            answer = response(400, {'errors': [{'detail': ' no\n'}]})
            client, found = self.get(answer, url=url)
            self.assertIs(answer, found)
            self.assertEqual('400 no', client.refusal)

    @ddt.data(
        ('/traits', response(414, {}, '<html>')),
        ('/traits', response(431, ValueError('no JSON'), '<html>')),
        # A server may answer anything to a long one, if not to a short one.
        (LONG, response(400, {}, '<html>'), response(200, {})),
        (LONG, response(502, {}, '<html>'), response(400, {})),
        (LONG, ks_exc.ConnectFailure('closed'), response(200, {})),
    )
    @ddt.unpack
    def test_a_query_that_is_too_long(self, url, *answers):
        error = self.assertRaises(
            nova_scheduler.QueryRefused, self.get, *answers, url=url
        )
        self.assertIn(f'{len(url)} characters are too many', error.reason)
        self.assertIn('closed' if error.__cause__ else '<html>', error.cause)

    @ddt.data(
        (response(503, {}), response(503, {})),
        (ks_exc.ConnectFailure('x'), ks_exc.ConnectFailure('x')),
    )
    @ddt.unpack
    def test_a_long_query_while_placement_is_away(self, *answers):
        error = self.assertRaises(
            nova_scheduler.PlacementFailed, self.get, *answers, url=LONG
        )
        self.assertIs(nova_scheduler.PlacementFailed, type(error))

    @ddt.data(
        (response(503, ValueError('no JSON'), 'busy'), '503 busy'),
        (response(400, {}, 'no JSON'), '400 no JSON'),
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
            error = nova_scheduler.CredentialsFailed(
                service='Glance', cause='401'
            )
        self.assertIn(' with the credentials of OS_CLOUD=lab, ', str(error))


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


class AggregatesTestCase(testtools.TestCase):
    def test_the_copy_is_made_once(self):
        """For every server that an audit judges, and each that could move."""
        with mock.patch.object(
            nova_scheduler.ReadOnlyHostManager, '__init__', return_value=None
        ):
            scheduler = nova_scheduler.ReadOnlyHostManager()
        scheduler.aggs_by_id = {1: 'aggregate'}
        with mock.patch.object(
            nova_scheduler.aggregates, 'copy', side_effect=list
        ) as copy:
            for _ in range(2):
                self.assertEqual(['aggregate'], scheduler.aggregates_copy)
        self.assertEqual(1, copy.call_count)
