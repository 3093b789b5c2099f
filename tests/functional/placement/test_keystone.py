# SPDX-License-Identifier: Apache-2.0

"""PlacementClient with real keystone: password, catalogue, roles."""

import logging
import os
import subprocess
import unittest
import unittest.mock
import uuid

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3

from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from tests.functional.placement import servers
from tests.unit.placement import support

PASSWORD = 'V3ryS3cr3tP4ssw0rd'
REGION = 'RegionOne'
A = 'aaaaaaaa-0000-4000-8000-000000000001'


class Keystone(fixtures.Fixture):
    """keystone on SQLite, under uwsgi, with the user ``admin``."""

    def _setUp(self):
        directory = self.useFixture(fixtures.TempDir()).path
        self._conf = os.path.join(directory, 'keystone.conf')
        with open(self._conf, 'w') as conf_file:
            conf_file.write(
                '[database]\n'
                f'connection = sqlite:///{directory}/keystone.db\n'
                '[fernet_tokens]\n'
                f'key_repository = {directory}/fernet\n'
                '[credential]\n'
                f'key_repository = {directory}/credential\n'
            )
        me = ['--keystone-user', str(os.getuid())]
        me += ['--keystone-group', str(os.getgid())]
        for name in ('fernet', 'credential'):
            os.mkdir(os.path.join(directory, name), 0o700)
        self._manage('db_sync')
        self._manage('fernet_setup', *me)
        self._manage('credential_setup', *me)
        self._manage(
            'bootstrap',
            '--bootstrap-password',
            PASSWORD,
            '--bootstrap-region-id',
            REGION,
        )
        command = servers.uwsgi('keystone.wsgi.api:application')
        server = self.useFixture(
            servers.Server(
                command, {'OS_KEYSTONE_CONFIG_DIR': directory}, '/v3'
            )
        )
        self.url = f'{server.url}/v3'
        self.admin = adapter.Adapter(
            session.Session(auth=self.password()), endpoint_override=self.url
        )
        # Middleware that validates tokens looks for it.
        self.add_endpoint('identity', self.url)

    def _manage(self, *words):
        subprocess.run(
            [
                servers.script('keystone-manage'),
                '--config-file',
                self._conf,
                *words,
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )

    def password(self, username='admin', password=PASSWORD):
        return v3.Password(
            self.url,
            username=username,
            password=password,
            user_domain_id='default',
            project_name='admin',
            project_domain_id='default',
        )

    def add_endpoint(self, service_type, url):
        """Add a service to the catalogue."""
        service = self.admin.post(
            '/services',
            json={'service': {'type': service_type, 'name': service_type}},
        ).json()['service']
        for interface in ('public', 'internal'):
            self.admin.post(
                '/endpoints',
                json={
                    'endpoint': {
                        'service_id': service['id'],
                        'interface': interface,
                        'region_id': REGION,
                        'url': url,
                    }
                },
            )

    def add_user(self, name, role):
        """Add a user with a role in the project ``admin``."""
        user = self.admin.post(
            '/users',
            json={
                'user': {
                    'name': name,
                    'password': PASSWORD,
                    'domain_id': 'default',
                }
            },
        ).json()['user']
        (role,) = self.admin.get(f'/roles?name={role}').json()['roles']
        project = self.admin.session.get_project_id()
        self.admin.put(
            f'/projects/{project}/users/{user["id"]}/roles/{role["id"]}'
        )


class KeystoneTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if reason := servers.missing('keystone', 'pyuwsgi', 'gunicorn'):
            raise unittest.SkipTest(reason)
        cls.keystone = Keystone()
        cls.keystone.setUp()
        cls.addClassCleanup(cls.keystone.cleanUp)
        server = servers.Placement(
            'gunicorn',
            conf=(
                '[keystone_authtoken]\n'
                f'www_authenticate_uri = {cls.keystone.url}\n'
                f'auth_url = {cls.keystone.url}\n'
                'auth_type = password\n'
                'token_cache_time = -1\n'
                'username = admin\n'
                f'password = {PASSWORD}\n'
                'user_domain_id = default\n'
                'project_name = admin\n'
                'project_domain_id = default\n'
            ),
        )
        server.setUp()
        cls.addClassCleanup(server.cleanUp)
        cls.keystone.add_endpoint('placement', server.url)
        cls.keystone.add_user('auditor', 'reader')

    def nova_conf(self, **options):
        options = {
            'auth_type': 'password',
            'auth_url': self.keystone.url,
            'username': 'admin',
            'password': PASSWORD,
            'user_domain_id': 'default',
            'project_name': 'admin',
            'project_domain_id': 'default',
            'region_name': REGION,
        } | options
        return support.read_conf(options)

    def client(self, **options):
        return placement.PlacementClient.from_conf(self.nova_conf(**options))

    def create_provider(self, client):
        provider = str(uuid.uuid4())
        response = client._transport._adapter.post(
            '/resource_providers',
            json={'name': provider, 'uuid': provider},
            microversion='1.20',
            raise_exc=False,
        )
        self.assertEqual(200, response.status_code, response.text)
        return provider

    def test_session(self):
        client = placement.PlacementClient.from_session(
            session.Session(auth=self.keystone.password()), region_name=REGION
        )
        self.assertEqual(((1, 0), (1, 39)), client._transport.microversions)

    def test_clouds_yaml(self):
        try:
            import openstack.config  # noqa: F401
        except ImportError as exc:
            self.skipTest(str(exc))
        directory = fixtures.TempDir()
        directory.setUp()
        self.addCleanup(directory.cleanUp)
        path = os.path.join(directory.path, 'clouds.yaml')
        with open(path, 'w') as clouds:
            clouds.write(
                'clouds:\n'
                '  here:\n'
                f'    region_name: {REGION}\n'
                '    auth:\n'
                f'      auth_url: {self.keystone.url}\n'
                '      username: admin\n'
                f'      password: {PASSWORD}\n'
                '      user_domain_id: default\n'
                '      project_name: admin\n'
                '      project_domain_id: default\n'
            )
        with unittest.mock.patch.dict(
            os.environ, {'OS_CLIENT_CONFIG_FILE': path}
        ):
            client = placement.PlacementClient.from_cloud('here')
            self.assertEqual(
                ((1, 0), (1, 39)), client._transport.microversions
            )

    def test_a_wrong_password(self):
        with self.assertRaises(errors.AuthenticationFailed) as caught:
            self.client(password='wrong').resource_providers()
        error = caught.exception
        self.assertEqual(401, error.status)
        self.assertRegex(error.request_id, '^req-')
        self.assertIn('[placement] of nova.conf', str(error))
        self.assertIn(f'{self.keystone.url}/auth/tokens', error.url)
        self.assertNotIn('wrong', str(error))

    def test_keystone_is_not_there(self):
        url = f'http://127.0.0.1:{servers.free_port()}/v3'
        with self.assertRaises(errors.AuthenticationFailed) as caught:
            self.client(auth_url=url, connect_retries=0).resource_providers()
        self.assertIn(url, str(caught.exception))
        self.assertIn('Errno 111', str(caught.exception))

    def test_a_region_without_placement(self):
        with self.assertRaises(errors.EndpointNotFound) as caught:
            self.client(region_name='nowhere').resource_providers()
        self.assertIn('region nowhere', str(caught.exception))

    def test_a_user_who_may_not_write(self):
        admin = self.client()
        provider = self.create_provider(admin)
        auditor = self.client(username='auditor')
        with self.assertRaises(errors.Refused) as caught:
            auditor.update_aggregates(provider, lambda _: [A])
        self.assertEqual(403, caught.exception.status)
        self.assertIn(
            'the credentials of [placement] of nova.conf',
            str(caught.exception),
        )
        self.assertEqual(
            frozenset(), admin.update_aggregates(provider, frozenset)
        )

    def test_nova_conf(self):
        """It works, and its secrets are in no log."""
        records = support.record_logs(self)
        conf = self.nova_conf()
        client = placement.PlacementClient.from_conf(conf)
        provider = self.create_provider(client)
        self.assertEqual(
            {A}, client.update_aggregates(provider, lambda _: [A])
        )
        with self.assertRaises(errors.Refused):
            client.update_traits(str(uuid.uuid4()), frozenset)
        conf.log_opt_values(logging.getLogger('conf'), logging.DEBUG)
        token = client._transport._adapter.get_token()
        self.assertTrue(any('/resource_providers' in r for r in records))
        self.assertTrue(any('placement.password' in r for r in records))
        for record in records:
            self.assertNotIn(PASSWORD, record)
            self.assertNotIn(token, record)
