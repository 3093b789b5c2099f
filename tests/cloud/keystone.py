# SPDX-License-Identifier: Apache-2.0

"""keystone, and what the other services are in it."""

import functools
import getpass
import grp
import os
import shutil

from tests.cloud import cloud
from tests.cloud import service
from tests.cloud import web


class Keystone(service.Service):
    """The identity service; clouds.yaml has its users."""

    name = 'keystone'
    packages = ('keystone',)
    #: How long a token lives.
    token_seconds = 3600

    def start(self):
        self._conf = self.write(
            'keystone.conf',
            {
                'database': {
                    'connection': self.cloud.mariadb.create('keystone')
                },
                # Users are created all the time, and give their passwords.
                'identity': {'password_hash_rounds': '4'},
                'token': {'expiration': str(self.token_seconds)},
                'fernet_tokens': {'key_repository': self.folder / 'fernet'},
                'credential': {'key_repository': self.folder / 'credential'},
            },
        )
        self.fill('keystone', self._conf, 'keystone-manage', 'db_sync')
        self._create_keys('fernet_setup')
        self._create_keys('credential_setup')
        self.run()
        self.url = f'http://127.0.0.1:{self.port}/v3'
        self.cloud.processes.run(
            [
                self.program('keystone-manage'),
                '--config-file',
                self._conf,
                'bootstrap',
                '--bootstrap-username',
                cloud.ADMINISTRATOR,
                '--bootstrap-project-name',
                cloud.ADMINISTRATOR,
                '--bootstrap-service-name',
                'keystone',
                '--bootstrap-region-id',
                cloud.REGION,
                *(
                    word
                    for interface in ('public', 'internal', 'admin')
                    for word in (f'--bootstrap-{interface}-url', self.url)
                ),
            ],
            OS_BOOTSTRAP_PASSWORD=self.cloud.password,
        )
        self.cloud.write_clouds_file(self.url)
        self._create_users()

    def run(self):
        """Start the API, on the port that it had."""
        self.process, self.port = web.start(
            self,
            'keystone.wsgi.api',
            'keystone-wsgi-public',
            OS_KEYSTONE_CONFIG_DIR=self.folder,
        )

    @functools.cached_property
    def _identity(self):
        return self.cloud.connect().identity

    def forget_tokens(self):
        """Make all tokens invalid: the keys that they are read with go."""
        shutil.rmtree(self.folder / 'fernet')
        self._create_keys('fernet_setup')

    def _create_keys(self, command):
        self.manage(
            'keystone-manage',
            self._conf,
            command,
            '--keystone-user',
            getpass.getuser(),
            '--keystone-group',
            grp.getgrgid(os.getgid()).gr_name,
        )

    def _role(self, name):
        return self._identity.find_role(name) or self._identity.create_role(
            name=name
        )

    def _create_users(self):
        identity = self._identity
        self._services = identity.create_project(
            name='service', domain_id='default'
        )
        for name in cloud.MEMBERS:
            project = identity.create_project(name=name, domain_id='default')
            self.create_user(name, project, 'member')

    def create_user(self, name, project, *roles):
        """Create a user with roles in a project; return the user."""
        user = self._identity.create_user(
            name=name,
            password=self.cloud.password,
            domain_id='default',
            default_project_id=project.id,
        )
        for role in roles:
            self._identity.assign_project_role_to_user(
                project, user, self._role(role)
            )
        return user

    def create_service_user(self, name, roles=('admin', 'service')):
        """Create the user that a service is to the others; return it."""
        return self.create_user(name, self._services, *roles)

    def register(self, name, type_, url):
        """Put a service's address into the catalogue."""
        entry = self._identity.create_service(name=name, type=type_)
        for interface in ('public', 'internal', 'admin'):
            self._identity.create_endpoint(
                service_id=entry.id,
                interface=interface,
                url=url,
                region_id=cloud.REGION,
            )

    def credentials(self, name):
        """Return the options of keystoneauth for a service's user."""
        return {
            'auth_type': 'password',
            'auth_url': self.url,
            'username': name,
            'password': self.cloud.password,
            'project_name': 'service',
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        }

    def middleware(self, name):
        """Return the section by which a service's API knows its users."""
        return {
            'keystone_authtoken': {
                **self.credentials(name),
                'www_authenticate_uri': self.url,
                'region_name': cloud.REGION,
                'service_token_roles': 'service',
                'service_token_roles_required': 'True',
            }
        }
