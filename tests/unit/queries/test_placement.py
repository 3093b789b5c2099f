# SPDX-License-Identifier: Apache-2.0

import socket
from unittest import mock

import ddt
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import exception as nova_exception
from nova.scheduler.client import report

from nova_ext_sched.queries import gets
from nova_ext_sched.queries import placement
from tests.unit.placement import fault_server
from tests.unit.request_filters import base as test_base

NAMED = '/resource_providers?name=a%26b+c'
AGGREGATES = '/resource_providers/u/aggregates'
KNOWN = {NAMED: {'resource_providers': [{'uuid': 'u'}]}}


@ddt.ddt
class NodeTestCase(test_base.RequestFilterTestCase):
    """tests/functional/test_isolation.py has a real placement."""

    def read(self, answers):
        """Return the aggregates of the node ``a&b c``.

        :param answers: of placement, by URL; None for an error of its own
        """

        def get(url, version, global_request_id):
            self.assertEqual(self.ctxt.global_id, global_request_id)
            answer = answers[url]
            status = 500 if answer is None else 200
            return mock.Mock(
                status_code=status, text='away', json=lambda: answer
            )

        self.replace('queries.placement._client._client', mock.Mock(get=get))
        return placement.get_aggregates_of_node(self.ctxt, 'a&b c')

    def test_aggregates(self):
        found = self.read(KNOWN | {AGGREGATES: {'aggregates': ['x', 'y']}})
        self.assertEqual({'x', 'y'}, found)
        self.assertEqual(set(), self.read({NAMED: {'resource_providers': []}}))

    @ddt.data({NAMED: None}, KNOWN | {AGGREGATES: None})
    def test_placement_is_away(self, answers):
        """The request then ends: no aggregate would be forbidden."""
        kind = nova_exception.NovaException
        error = self.assertRaises(kind, self.read, answers)
        self.assertEqual('status 500: away', str(error))


@ddt.ddt
class AnswerTestCase(test_base.RequestFilterTestCase):
    """nova's client over HTTP, and a server that answers as it is told."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = fault_server.FaultServer()
        cls.server.setUp()
        cls.addClassCleanup(cls.server.cleanUp)

    def setUp(self):
        super().setUp()
        self.use(self.server.url)

    def use(self, url, **options):
        auth = token_endpoint.Token(url, 'admin')
        made = adapter.Adapter(
            session.Session(auth=auth, **options),
            service_type='placement',
            raise_exc=False,
        )
        self.client = report.SchedulerReportClient(adapter=made)
        self.replace('queries.placement._client._client', self.client)

    def get(self, answer=None):
        if answer is not None:
            self.server.answer(answer)
        return placement._client.send(self.ctxt, '/allocations/x')

    def test_found(self):
        body = '{"allocations": {"p": {"resources": {"VCPU": 1}}}}'
        self.server.answer([200, 'application/json', body])
        self.replace('queries.placement.current', gets.Gets(self.send))
        self.sent = []
        found = placement.get_providers(self.ctxt, ['a', 'b'])
        self.assertEqual({'a': {'p'}, 'b': {'p'}}, found)
        urls = ['/allocations/a', '/allocations/b']
        self.assertEqual(urls, sorted(self.sent))
        self.assertEqual({}, placement.get_providers(self.ctxt, []))

    def send(self, ctxt, url):
        self.sent.append(url)
        return placement._client.send(ctxt, url)

    @ddt.data(502, 503, 504)
    def test_a_status_of_a_restart(self, status):
        error = self.assertRaises(
            gets.Away, self.get, [status, 'text/html', '<b>\nx']
        )
        self.assertIn(f'status {status}: ', str(error))
        self.assertNotIn('\n', str(error))

    @ddt.data(204, 300, 400, 401, 403, 404, 408, 409, 429, 499, 500, 501)
    def test_a_status_that_is_no_answer(self, status):
        """Not that nothing is allocated, and not one to ask again."""
        body = '{"allocations": {}}'
        error = self.assertRaises(
            nova_exception.NovaException,
            self.get,
            [status, 'application/json', body],
        )
        self.assertNotIsInstance(error, gets.Away)
        self.assertIn(f'status {status}', str(error))

    def test_no_json(self):
        answer = [200, 'text/html', '<html>']
        error = self.assertRaises(ValueError, self.get, answer)
        self.assertNotIsInstance(error, gets.Away)

    def test_no_connection(self):
        self.assertRaises(gets.Away, self.get, fault_server.HANG_UP)
        self.use(self.server.url, timeout=0.2)
        self.assertRaises(gets.Away, self.get, fault_server.HANG)
        with socket.create_server(('127.0.0.1', 0)) as closed:
            port = closed.getsockname()[1]
        self.use(f'http://127.0.0.1:{port}')
        error = self.assertRaises(gets.Away, self.get)
        self.assertIn('Placement does not answer: ConnectFailure', str(error))

    @ddt.data(
        # In the middle of an answer, or of TLS.
        (ks_exc.UnknownConnectionError('', None), True),
        (ks_exc.SSLError(), True),
        # keystone's.
        (ks_exc.DiscoveryFailure(), True),
        (ks_exc.ServiceUnavailable(), True),
        (ks_exc.GatewayTimeout(), True),
        (ks_exc.InternalServerError(), False),
        (ks_exc.Unauthorized(), False),
        (ks_exc.MissingAuthPlugin(), False),
        (ks_exc.EndpointNotFound(), False),
    )
    @ddt.unpack
    def test_what_nova_s_client_raises(self, exc, is_away):
        with mock.patch.object(self.client, 'get', side_effect=exc):
            self.assertRaises(gets.Away if is_away else type(exc), self.get)
        # nova reads a new catalog where it misses placement in the old one.
        kept = placement._client._client is self.client
        self.assertEqual(not isinstance(exc, ks_exc.EndpointNotFound), kept)

    def test_a_client_of_our_own(self):
        """nova's has few connections; all of ours share one client."""
        made = mock.Mock(side_effect=[ks_exc.ConnectFailure(), self.client])
        self.replace('queries.placement._client._client', None)
        self.replace('queries.placement.report.SchedulerReportClient', made)
        self.assertRaises(gets.Away, self.get)
        for _ in range(2):
            self.get([200, 'application/json', '{}'])
        self.assertEqual(2, made.call_count)
        self.assertIsNot(placement._client._client, report.PLACEMENTCLIENT)

    def test_which_answers_are_waited_for(self):
        """Without the names of traits a request goes another way."""
        self.assertEqual(gets.SECONDS, placement.current.seconds)
        self.server.answer([503, 'text/plain', ''])
        self.assertRaises(gets.Away, placement.get_traits, self.ctxt)
