# SPDX-License-Identifier: Apache-2.0

"""Services that are away, as openstacksdk sees them over HTTP."""

import fixtures
from keystoneauth1 import exceptions as ks_exc
import openstack
from openstack import exceptions
import requests
from requests_mock.contrib import fixture
import testtools

from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_cloud
from tests.unit.osc import test_moves_step

KEYSTONE = 'http://keystone/v3'
NOVA, PLACEMENT = 'http://nova/v2.1', 'http://placement'
SERVER = f'{NOVA}/servers/server%201'
REFUSED = {'exc': requests.exceptions.ConnectionError('refused')}
DOWN = {'status_code': 503, 'text': 'No server is available.'}
FAULT = {'status_code': 500, 'json': {'computeFault': {'message': 'DB'}}}


class CloudTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        for name, new in (('sleep', self.sleep), ('monotonic', self.clock)):
            self.useFixture(fixtures.MockPatchObject(waiting.time, name, new))
        self.http = self.useFixture(fixture.Fixture())
        catalog = [
            {
                'type': type_,
                'name': type_,
                'id': type_,
                'endpoints': [
                    {
                        'interface': 'public',
                        'region': 'r',
                        'region_id': 'r',
                        'id': type_,
                        'url': url,
                    }
                ],
            }
            for type_, url in (('compute', NOVA), ('placement', PLACEMENT))
        ]
        self.token = {
            'headers': {'X-Subject-Token': 'token'},
            'json': {
                'token': {
                    'catalog': catalog,
                    'user': {
                        'id': 'me',
                        'name': 'me',
                        'domain': {'id': 'd', 'name': 'd'},
                    },
                    'methods': ['password'],
                    'expires_at': '2999-01-01T00:00:00.000000Z',
                    'issued_at': '2026-01-01T00:00:00.000000Z',
                }
            },
        }
        self.version = {
            'json': {
                'version': {
                    'id': 'v2.1',
                    'status': 'CURRENT',
                    'version': '2.96',
                    'min_version': '2.1',
                    'links': [{'rel': 'self', 'href': f'{NOVA}/'}],
                }
            }
        }
        keystone = {
            'version': {
                'id': 'v3.14',
                'status': 'stable',
                'links': [{'rel': 'self', 'href': f'{KEYSTONE}/'}],
            }
        }
        self.http.get(KEYSTONE, json=keystone)
        self.http.post(f'{KEYSTONE}/auth/tokens', [self.token])
        self.http.get(f'{NOVA}/', [self.version])
        self.http.get(NOVA, [self.version])
        self.http.get(
            PLACEMENT,
            json={
                'versions': [
                    {
                        'id': 'v1.0',
                        'status': 'CURRENT',
                        'max_version': '1.39',
                        'min_version': '1.0',
                        'links': [{'rel': 'self', 'href': ''}],
                    }
                ]
            },
        )
        self.said = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def connect(self):
        connection = openstack.connection.Connection(
            auth={
                'auth_url': KEYSTONE,
                'username': 'me',
                'password': 'secret',
                'project_name': 'p',
                'user_domain_id': 'd',
                'project_domain_id': 'd',
            },
            region_name='r',
        )
        return moves_cloud.Cloud(connection, self.said.append)

    def assertWaited(self, *services):
        """Check which were said to be away, and to answer again."""
        self.assertEqual(
            [
                f'{one} {what}'
                for one in services
                for what in ('does not answer', 'answers again,')
            ],
            [
                ' '.join(line.split()[:n])
                for line, n in zip(
                    self.said, (4, 3) * len(services), strict=True
                )
            ],
        )

    def test_a_poll(self):
        self.http.get(
            SERVER,
            [DOWN, DOWN, REFUSED, FAULT, {'json': {'server': {'id': 'x'}}}],
        )
        found = self.connect().read_server('server 1')
        self.assertEqual('x', found.id)
        self.assertWaited('nova')
        self.assertIn('nova does not answer (503). Retrying', self.said[0])
        self.assertNotIn('secret', str(self.said))

    def test_a_server_that_is_gone(self):
        self.http.get(SERVER, status_code=404)
        self.assertIsNone(self.connect().read_server('server 1'))
        self.assertEqual([], self.said)

    def test_migrations_of_which_a_cell_is_silent(self):
        url = f'{NOVA}/os-migrations'
        self.http.get(url, [FAULT, FAULT, {'json': {'migrations': []}}])
        self.assertEqual([], self.connect().read_migrations('server 1'))
        self.assertWaited('nova')

    def test_placement(self):
        self.http.get(
            f'{PLACEMENT}/allocations/uuid',
            [DOWN, DOWN, {'json': {'allocations': {'a': {}}}}],
        )
        own = test_moves_step.make_migration(uuid='uuid')
        self.assertTrue(self.connect().holds(own))
        self.assertWaited('placement')

    def test_it_is_away_from_the_beginning(self):
        """The client has no version of nova then."""
        for url in (NOVA, f'{NOVA}/'):
            self.http.get(url, [REFUSED, DOWN, DOWN, self.version])
        self.http.get(
            SERVER, [REFUSED] * 6 + [{'json': {'server': {'id': 'x'}}}]
        )
        self.assertEqual('x', self.connect().read_server('server 1').id)
        self.assertWaited('nova')

    def test_keystone(self):
        self.http.post(f'{KEYSTONE}/auth/tokens', [REFUSED, DOWN, self.token])
        self.assertEqual('me', self.connect().user)
        self.assertWaited('keystone')

    def test_a_token_is_revoked_while_keystone_is_away(self):
        cloud = self.connect()
        self.http.get(
            SERVER,
            [{'status_code': 401}, {'json': {'server': {'id': 'x'}}}],
        )
        self.http.post(
            f'{KEYSTONE}/auth/tokens', [REFUSED, REFUSED, self.token]
        )
        self.assertEqual('x', cloud.read_server('server 1').id)
        self.assertWaited('keystone')

    def test_for_too_long(self):
        self.http.get(SERVER, **DOWN)
        cloud = self.connect()
        self.assertRaises(
            exceptions.HttpException, cloud.read_server, 'server 1'
        )
        self.assertIn(self.now, range(600, 603))
        self.assertEqual(cloud.lost, self.now)
        self.assertEqual(1, len(self.said))

    def test_what_is_refused(self):
        self.http.get(SERVER, status_code=403)
        self.assertRaises(
            exceptions.ForbiddenException,
            self.connect().read_server,
            'server 1',
        )
        self.assertEqual([], self.said)

    def test_requests_are_made_once(self):
        """Whether one arrived that has no answer, a look shows."""
        url = f'{NOVA}/servers/server 1/action'
        for answer, error in (
            (DOWN, exceptions.HttpException),
            (REFUSED, ks_exc.ConnectFailure),
        ):
            self.http.post(url, [answer, {'status_code': 202}])
            cloud, move = self.connect(), test_moves_step.make_move()
            before = self.http.call_count
            self.assertRaises(error, cloud.begin, move)
            posts = [
                one
                for one in self.http.request_history[before:]
                if one.url.endswith('/action')
            ]
            self.assertEqual(1, len(posts))
            self.assertEqual(
                {'os-migrateLive': {'host': 'b', 'block_migration': 'auto'}},
                posts[0].json(),
            )
        self.assertEqual([], self.said)

    def test_a_host_is_disabled_all_the_same(self):
        url = f'{NOVA}/os-services/uuid'
        self.http.put(url, [DOWN, DOWN, {'json': {'service': {}}}])
        self.connect().set_disabled('uuid', 'why')
        self.assertEqual(
            {'status': 'disabled', 'disabled_reason': 'why'},
            self.http.last_request.json(),
        )
        self.assertWaited('nova')
