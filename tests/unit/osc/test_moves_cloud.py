# SPDX-License-Identifier: Apache-2.0

"""Services that are away, as openstacksdk sees them over HTTP."""

import re

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import fixture as ks_fixture
from keystoneauth1.fixture import discovery
import openstack
from openstack import exceptions
import requests
from requests_mock.contrib import fixture
import testtools

from nova_ext_sched.osc import moves_cloud
from tests import clock
from tests.unit.osc import test_moves_step

KEYSTONE = 'http://keystone/v3'
NOVA, PLACEMENT = 'http://nova/v2.1', 'http://placement'
SERVER = f'{NOVA}/servers/server%201'
REFUSED = {'exc': requests.exceptions.ConnectionError('refused')}
DOWN = {'status_code': 503, 'text': 'No server is available.'}
FAULT = {'status_code': 500, 'json': {'computeFault': {'message': 'DB'}}}
FOUND = {'json': {'server': {'id': 'x'}}}


class CloudTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(clock.Clock())
        self.http = self.useFixture(fixture.Fixture())
        token = ks_fixture.V3Token(user_id='me')
        for type_, url in (('compute', NOVA), ('placement', PLACEMENT)):
            token.add_service(type_).add_standard_endpoints(url, region='r')
        self.token = {'headers': {'X-Subject-Token': 'token'}, 'json': token}
        nova = discovery.NovaMicroversionDiscovery(
            f'{NOVA}/', 'v2.1', min_version='2.1', version='2.96'
        )
        placement = discovery.MicroversionDiscovery(
            '', 'v1.0', min_version='1.0', max_version='1.39'
        )
        self.version = {'json': {'version': nova}}
        keystone = {'version': ks_fixture.V3Discovery(KEYSTONE)}
        self.http.get(KEYSTONE, json=keystone)
        self.http.post(f'{KEYSTONE}/auth/tokens', [self.token])
        self.http.get(f'{NOVA}/', [self.version])
        self.http.get(NOVA, [self.version])
        self.http.get(PLACEMENT, json={'versions': [placement]})
        self.said = []

    def connect(self):
        connection = openstack.connection.Connection(
            region_name='r',
            auth={
                **{'auth_url': KEYSTONE, 'project_name': 'p'},
                **{'username': 'me', 'password': 'secret'},
                **{'user_domain_id': 'd', 'project_domain_id': 'd'},
            },
        )
        return moves_cloud.Cloud(connection, self.said.append)

    def assertWaited(self, *services):
        """Check which were said to be away, and to answer again."""
        said = [' '.join(re.findall('[a-z]+', one)[:3]) for one in self.said]
        expected = []
        for one in services:
            expected += [f'{one} does not', f'{one} answers again']
        self.assertEqual(expected, said)

    def test_a_poll(self):
        self.http.get(SERVER, [DOWN, DOWN, REFUSED, FAULT, FOUND])
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

    def test_all_servers_of_a_host(self):
        """Page after page, of all projects, softly deleted ones too."""
        pages = [[{'id': 'x'}], [{'id': 'y'}], []]
        answers = [{'json': {'servers': page}} for page in pages]
        self.http.get(f'{NOVA}/servers/detail', [DOWN, *answers])
        found = self.connect().read_servers_on('host 1')
        self.assertEqual(['x', 'y'], [one.id for one in found])
        self.assertEqual(
            {'all_tenants': ['1'], 'soft_deleted': ['1'], 'deleted': ['0']}
            | {'host': ['host 1'], 'marker': ['y']},
            self.http.last_request.qs,
        )

    def test_placement_before_a_move(self):
        """It is waited for; that the user may not ask it is an answer."""
        url = f'{PLACEMENT}/allocations/uuid'
        self.http.get(url, [DOWN, DOWN, {'status_code': 403}])
        self.connect().wait_for_placement('uuid')
        self.assertWaited('placement')

    def test_what_does_not_answer_now(self):
        """Each is asked once."""
        cloud = self.connect()
        for placement, nova, silent in (
            ({'json': {'allocations': {}}}, FOUND, []),
            ({'status_code': 401}, {'status_code': 404}, []),
            (DOWN, FOUND, ['placement']),
            (REFUSED, FAULT, ['placement', 'nova']),
        ):
            self.http.get(f'{PLACEMENT}/allocations/server 1', [placement])
            self.http.get(SERVER, [nova])
            self.assertEqual(silent, cloud.find_silent('server 1'))
        # keystoneauth of nova 29's day asks once more, half a second later.
        self.assertIn(self.clock.now, (0, 0.5))

    def test_it_is_away_from_the_beginning(self):
        """The client has no version of nova then."""
        for url in (NOVA, f'{NOVA}/'):
            self.http.get(url, [REFUSED, DOWN, DOWN, self.version])
        self.http.get(SERVER, [REFUSED] * 6 + [FOUND])
        self.assertEqual('x', self.connect().read_server('server 1').id)
        self.assertWaited('nova')

    def test_keystone(self):
        self.http.post(f'{KEYSTONE}/auth/tokens', [REFUSED, DOWN, self.token])
        self.assertEqual('me', self.connect().user)
        self.assertWaited('keystone')

    def test_a_token_is_revoked_while_keystone_is_away(self):
        cloud = self.connect()
        self.http.get(SERVER, [{'status_code': 401}, FOUND])
        tokens = [REFUSED, REFUSED, self.token]
        self.http.post(f'{KEYSTONE}/auth/tokens', tokens)
        self.assertEqual('x', cloud.read_server('server 1').id)
        self.assertWaited('keystone')

    def test_for_too_long(self):
        self.http.get(SERVER, **DOWN)
        cloud = self.connect()
        read = cloud.read_server
        self.assertRaises(exceptions.HttpException, read, 'server 1')
        self.assertIn(self.clock.now, range(600, 603))
        self.assertEqual(cloud.lost, self.clock.now)
        self.assertEqual(1, len(self.said))

    def test_what_is_refused(self):
        self.http.get(SERVER, status_code=403)
        read = self.connect().read_server
        self.assertRaises(exceptions.ForbiddenException, read, 'server 1')
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
        self.connect().set_status('uuid', 'why')
        self.assertEqual(
            {'status': 'disabled', 'disabled_reason': 'why'},
            self.http.last_request.json(),
        )
        self.assertWaited('nova')
