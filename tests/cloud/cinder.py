# SPDX-License-Identifier: Apache-2.0

"""cinder with volumes that store nothing."""

from tests.cloud import service
from tests.cloud import web


class Cinder(service.Service):
    """The block storage service: API, scheduler and volume service."""

    name = 'cinder'
    packages = ('cinder',)

    def start(self):
        keystone = self.cloud.keystone
        keystone.create_service_user('cinder')
        self._conf = self.write(
            'cinder.conf',
            {
                'DEFAULT': {
                    'auth_strategy': 'keystone',
                    'transport_url': self.cloud.rabbitmq.url(),
                    'state_path': self.folder,
                    'host': 'cloud',
                    'my_ip': '127.0.0.1',
                    'api_paste_config': (
                        self.prefix / 'etc/cinder/api-paste.ini'
                    ),
                    'resource_query_filters_file': (
                        self.prefix / 'etc/cinder/resource_filters.json'
                    ),
                    'glance_api_servers': (
                        f'http://127.0.0.1:{self.cloud.glance.port}'
                    ),
                    'enabled_backends': 'nothing',
                    'image_conversion_dir': self.folder / 'conversion',
                },
                'nothing': {
                    'volume_driver': 'volume_driver.StoresNothing',
                    'volume_backend_name': 'nothing',
                },
                'database': {
                    'connection': self.cloud.mariadb.create('cinder')
                },
                'service_user': {
                    **keystone.credentials('cinder'),
                    'send_service_user_token': 'True',
                },
                'coordination': {
                    'backend_url': f'file://{self.folder / "coordination"}'
                },
                'oslo_concurrency': {'lock_path': self.folder / 'locks'},
            },
            keystone.middleware('cinder'),
        )
        self.fill('cinder', self._conf, 'cinder-manage', 'db', 'sync')
        self.run()
        url = f'http://127.0.0.1:{self.port}/v3'
        keystone.register('cinder', 'block-storage', url)
        keystone.register('cinderv3', 'volumev3', url)
        for program in ('cinder-scheduler', 'cinder-volume'):
            self.run_service(
                program,
                self._conf,
                says=f'Starting {program} node',
                PYTHONPATH=service.DRIVERS,
            )

    def run(self):
        """Start the API, on the port that it had."""
        self.process, self.port = web.start(
            self,
            'cinder.wsgi.api',
            'cinder-wsgi',
            '--pyargv',
            f'--config-file {self._conf}',
        )
