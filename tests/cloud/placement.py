# SPDX-License-Identifier: Apache-2.0

"""placement under gunicorn with its default limits."""

from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud import service
from tests.cloud import web


class Placement(service.Service):
    """The placement service, without authentication where no keystone is."""

    name = 'placement'
    packages = ('openstack-placement', 'gunicorn')

    def start(self):
        config = {
            'api': {'auth_strategy': 'noauth2'},
            'placement_database': {
                'connection': self.cloud.mariadb.create('placement')
            },
        }
        if self.cloud.has('keystone'):
            self.cloud.keystone.create_service_user('placement')
            config['api'] = {'auth_strategy': 'keystone'}
            config |= self.cloud.keystone.middleware('placement')
        self._conf = self.write('placement.conf', config)
        # Two workers that sync the database at their start would race.
        self.fill('placement', self._conf, 'placement-manage', 'db', 'sync')
        self.port = processes.free_port()
        self.run()
        self.url = f'http://127.0.0.1:{self.port}'
        if self.cloud.has('keystone'):
            self.cloud.keystone.register('placement', 'placement', self.url)

    def run(self):
        """Start the API, on the port that it had."""
        self.process = self.run_api('placement-api', self.port, '--workers=2')

    def run_api(self, name, port, *options):
        """Start an API on the same database; return its process."""
        application = (
            'placement.wsgi.api:application'
            if web.has_module(self, 'placement.wsgi.api')
            # Releases before 2025.1.
            else 'placement.wsgi:init_application()'
        )
        process = self.cloud.processes.start(
            name,
            [
                self.program('gunicorn'),
                f'--bind=127.0.0.1:{port}',
                *options,
                application,
            ],
            port=port,
            OS_PLACEMENT_CONFIG_DIR=self.folder,
        )
        self.cloud.processes.wait(lambda: web.answers(port), name)
        return process

    def client_options(self, name):
        """Return the section by which a service finds placement."""
        if self.cloud.has('keystone'):
            return {
                'placement': {
                    **self.cloud.keystone.credentials(name),
                    'region_name': cloud.REGION,
                }
            }
        return {
            'placement': {
                'auth_type': 'admin_token',
                'endpoint': self.url,
                'token': 'admin',
                'region_name': '',
            }
        }
