# SPDX-License-Identifier: Apache-2.0

"""neutron without agents: a mechanism driver binds every port."""

from tests.cloud import service
from tests.cloud import web


class Neutron(service.Service):
    """The network service; networks exist in its database alone."""

    name = 'neutron'
    packages = ('neutron', 'neutron-lib')

    def start(self):
        keystone = self.cloud.keystone
        keystone.create_service_user('neutron')
        conf = self.write(
            'neutron.conf',
            {
                'DEFAULT': {
                    'core_plugin': 'ml2',
                    'service_plugins': '',
                    'transport_url': self.cloud.rabbitmq.url(),
                    'state_path': self.folder,
                    'api_paste_config': (
                        self.prefix / 'etc/neutron/api-paste.ini'
                    ),
                    'notify_nova_on_port_status_changes': 'False',
                    'notify_nova_on_port_data_changes': 'False',
                },
                'ml2': {
                    'type_drivers': 'local',
                    'tenant_network_types': 'local',
                    'mechanism_drivers': 'binds_every_port',
                    'extension_drivers': 'port_security',
                },
                'database': {
                    'connection': self.cloud.mariadb.create('neutron')
                },
                'oslo_concurrency': {'lock_path': self.folder / 'locks'},
            },
            keystone.middleware('neutron'),
        )
        self._python_path = self.declare(
            'neutron.ml2.mechanism_drivers',
            'binds_every_port',
            'network_driver:BindsEveryPort',
        )
        self.fill('neutron', conf, 'neutron-db-manage', 'upgrade', 'heads')
        self.run()
        keystone.register(
            'neutron', 'network', f'http://127.0.0.1:{self.port}'
        )

    def run(self):
        """Start the API, on the port that it had."""
        self.process, self.port = web.start(
            self,
            'neutron.wsgi.api',
            'neutron-api',
            '--set',
            'start-time=%t',
            OS_NEUTRON_CONFIG_DIR=self.folder,
            OS_NEUTRON_CONFIG_FILES='neutron.conf',
            PYTHONPATH=self._python_path,
        )
