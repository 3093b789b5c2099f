# SPDX-License-Identifier: Apache-2.0

"""What the client says about each fault, over real HTTP on loopback.

The server is a script of answers: these faults come from proxies and broken
networks, not from placement.
"""

import socket
import unittest
import uuid

import ddt
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from keystoneauth1.identity import v3
import requests_mock

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from tests.unit.placement import fault_server

TOKEN = 'S3cr3tT0k3n'
JSON = 'application/json'
JSON_HEADERS = {'Content-Type': JSON}
PROXY = (
    '<html><head><title>502 Bad Gateway</title></head>'
    '<body><h1>Bad Gateway</h1></body></html>'
)
HANG_UP = fault_server.HANG_UP
HANG = fault_server.HANG

SHORT = objects.RequestGroup()
# A candidate query is not split.
LONG = objects.RequestGroup(
    resources={'VCPU': 1},
    forbidden_aggregates={str(uuid.UUID(int=n)) for n in range(50)},
)

# The answer to a short query; the error; what its text has.
FAULTS = [
    ((200, 'text/html', PROXY), errors.UnexpectedAnswer,
     'got text/html: 502 Bad Gateway (ValueError: no JSON object)'),
    ((200, JSON, '{"resource_prov'), errors.UnexpectedAnswer, 'resource_prov'),
    ((200, JSON, '{}'), errors.UnexpectedAnswer, "KeyError: 'resource_prov"),
    ((200, JSON, '{"resource_providers": [{"name": "host1"}]}'),
     errors.UnexpectedAnswer, "KeyError: 'uuid'"),
    ((204, JSON, ''), errors.UnexpectedAnswer, 'TypeError'),
    ((400, 'text/html', PROXY), errors.Refused, ': 502 Bad Gateway ('),
    ((401, 'text/plain', 'who?'), errors.Refused, 'the test: who? ('),
    ((403, JSON, '{}'), errors.Refused, 'of the test: Forbidden ('),
    ((404, 'text/html', PROXY), errors.UnexpectedAnswer, 'got text/html'),
    ((404, JSON, '{"errors": [{"detail": "no such"}]}'), errors.Refused,
     ': no such ('),
    ((409, JSON, '{"errors": [{"title": "Conflict"}]}'), errors.Refused,
     ': Conflict ('),
    ((414, 'text/html', ''), errors.QueryTooLong, '0 aggregates in 0 bytes'),
    ((418, 'text/plain', 'tea'), errors.UnexpectedAnswer, 'text/plain: tea'),
    ((500, JSON, '{"message": "oops"}'), errors.Refused, 'failed: oops ('),
    ((503, 'text/html', PROXY), errors.Refused, ': 502 Bad Gateway ('),
    ((504, 'text/html', ''), errors.Refused, ': Gateway Timeout ('),
    ((500, 'text/plain', 'a' * 5000), errors.Refused,
     f"failed: '{'a' * 200}'... ("),
    ((500, 'text/plain', f'X-Auth-Token: {TOKEN}, password=hunter2'),
     errors.Refused, 'X-Auth-Token: ***'),
    (HANG_UP, errors.ConnectionFailed, 'closed connection without response'),
    (HANG, errors.TimedOut, 'the timeout of the test is 0.3 s'),
]  # fmt: skip

# The answer to a long query; the error.
LONG_FAULTS = [
    ((400, 'text/html', PROXY), errors.QueryTooLong),
    ((413, 'text/plain', ''), errors.QueryTooLong),
    ((431, 'text/html', PROXY), errors.QueryTooLong),
    ((500, 'text/html', PROXY), errors.QueryTooLong),
    ((502, 'text/html', PROXY), errors.QueryTooLong),
    (HANG_UP, errors.QueryTooLong),
    (
        (
            400,
            JSON,
            '{"errors": [{"detail": "There must be at least one '
            'resources or resources[$S] parameter."}]}',
        ),
        errors.QueryTooLong,
    ),
    # These are placement's own, or say that it was not the length.
    ((400, JSON, '{"errors": [{"detail": "bad"}]}'), errors.Refused),
    ((500, JSON, '{"errors": [{"detail": "bad"}]}'), errors.Refused),
    ((503, 'text/html', PROXY), errors.Refused),
    (HANG, errors.TimedOut),
]


def make_client(of, **options):
    """Return a client on a session, with the options of an adapter."""
    made = adapter.Adapter(of, service_type='placement', **options)
    return placement.PlacementClient(made, 'the test')


@ddt.ddt
class TransportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = fault_server.FaultServer()
        cls.server.setUp()
        cls.addClassCleanup(cls.server.cleanUp)
        cls.url = cls.server.url

    def client(self, endpoint=None):
        auth = token_endpoint.Token(endpoint or self.url, TOKEN)
        return make_client(session.Session(auth=auth, timeout=0.3))

    def fault(self, answer, error_class, call):
        self.server.answer(answer)
        with self.assertRaises(error_class) as caught:
            call(self.client())
        error = caught.exception
        # The class itself: some of them are one another's.
        self.assertIs(error_class, type(error))
        self.assertEqual('GET', error.method)
        self.assertTrue(error.url.startswith(self.url), error.url)
        self.assertNotIn(TOKEN, str(error))
        self.assertNotIn('hunter2', str(error))
        if isinstance(answer, tuple):
            self.assertEqual(answer[0], error.status)
            self.assertEqual('req-1', error.request_id)
            self.assertIn(f'status {answer[0]}, request id req-1)', str(error))
        else:
            self.assertIsNone(error.status)
        return error

    @ddt.idata(FAULTS)
    @ddt.unpack
    def test_fault(self, answer, error_class, text):
        error = self.fault(
            answer, error_class, lambda c: c.resource_providers(SHORT)
        )
        self.assertIn(text, str(error))
        self.assertIn(f'GET {self.url}/resource_providers', str(error))

    @ddt.idata(LONG_FAULTS)
    @ddt.unpack
    def test_fault_of_a_long_query(self, answer, error_class):
        error = self.fault(
            answer, error_class, lambda c: c.allocation_candidates([LONG])
        )
        size = len(LONG.to_querystring())
        self.assertTrue(error.url.endswith(f'... ({size} bytes)'), error.url)
        self.assertGreater(300, len(error.url))
        if error_class is errors.QueryTooLong:
            self.assertEqual(50, error.aggregates)
            self.assertEqual(size, error.size)
            self.assertIn(f'50 aggregates in {size} bytes', str(error))

    def test_nobody_listens(self):
        with socket.socket() as sock:
            sock.bind(('127.0.0.1', 0))
            url = f'http://127.0.0.1:{sock.getsockname()[1]}'
        with self.assertRaises(errors.ConnectionFailed) as caught:
            self.client(url).allocation_candidates([LONG])
        self.assertIn('Errno 111', str(caught.exception))

    @ddt.data('http://me:hunter2@127.0.0.1/', 'https://hunter2@example.org')
    def test_a_password_in_the_endpoint(self, url):
        with self.assertNoLogs(level='DEBUG'):
            with self.assertRaises(exception.InvalidValue) as caught:
                self.client(url).resource_providers()
        self.assertNotIn('hunter2', str(caught.exception))
        self.assertIn(
            'the test: expected a URL without', str(caught.exception)
        )

    def test_no_endpoint(self):
        client = make_client(
            session.Session(auth=token_endpoint.Token(None, TOKEN)),
            interface='internal',
            region_name='here',
        )
        with self.assertRaises(errors.EndpointNotFound) as caught:
            client.resource_providers()
        self.assertIn(
            'expected an endpoint in the test or in the service catalogue, '
            'for service type placement, interface internal, region here',
            str(caught.exception),
        )

    def test_no_credentials(self):
        client = make_client(session.Session(), endpoint_override=self.url)
        with self.assertRaises(errors.AuthenticationFailed):
            client.resource_providers()

    @ddt.data(('1.38', '1.38'), ('1.39', '1.39'), ('1.99', '1.39'))
    @ddt.unpack
    def test_the_greatest_microversion_that_both_know(self, theirs, sent):
        url = 'http://placement.test'
        versions = {'min_version': '1.0', 'max_version': theirs}
        with requests_mock.Mocker() as server:
            server.get(
                f'{url}/', json={'versions': [versions]}, headers=JSON_HEADERS
            )
            asked = server.get(
                f'{url}/resource_providers',
                json={'resource_providers': []},
                headers=JSON_HEADERS,
            )
            self.client(url).resource_providers()
        self.assertEqual(
            f'placement {sent}',
            asked.last_request.headers['OpenStack-API-Version'],
        )

    @ddt.data(
        ({'version': {}}, "KeyError: 'versions'"),
        ({'versions': []}, 'IndexError'),
        *(
            ({'versions': [{'min_version': '1.0', 'max_version': text}]}, '')
            for text in ('', 'newest', '1.x', None)
        ),
    )
    @ddt.unpack
    def test_versions_that_are_none(self, answer, cause):
        url = 'http://placement.test'
        with requests_mock.Mocker() as server:
            server.get(f'{url}/', json=answer, headers=JSON_HEADERS)
            with self.assertRaises(errors.UnexpectedAnswer) as caught:
                self.client(url).traits()
        self.assertIn(cause, str(caught.exception))

    @ddt.data({'verify': '/missing.pem'}, {'cert': '/missing.pem'})
    def test_a_file_that_is_not_there(self, files):
        for auth in (
            token_endpoint.Token('https://127.0.0.1:1/', TOKEN),
            v3.Password(
                'https://127.0.0.1:1/', username='me', password='hunter2'
            ),
        ):
            client = make_client(session.Session(auth=auth, **files))
            with self.assertRaises(errors.ConnectionFailed) as caught:
                client.resource_providers()
            self.assertIn('/missing.pem', str(caught.exception))

    def test_an_endpoint_that_is_no_url(self):
        with self.assertRaises(exception.InvalidValue) as caught:
            self.client('http://me:hunter2@[::1:8778').resource_providers()
        self.assertEqual(
            "the test: expected a URL (Invalid IPv6 URL), got '[::1:8778'",
            str(caught.exception),
        )
