# SPDX-License-Identifier: Apache-2.0

"""A RabbitMQ server of the cloud's own, with a virtual host for each cell.

Queues have the same names in every cloud and in every cell: on a shared
server one would take the other's messages.
"""

import glob
import json

from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud import service

USER = 'guest'
VIRTUAL_HOSTS = ('/', 'cell1', 'cell2')


def _server():
    """Return the path of rabbitmq-server.

    The one on PATH wants to be run as the user rabbitmq; the one in the
    folder of the package runs as anybody.
    """
    found = glob.glob('/usr/lib*/rabbitmq/bin/rabbitmq-server')
    return found[0] if found else cloud.Cloud.system_program('rabbitmq-server')


class RabbitMQ(service.Service):
    """The server, with an epmd of its own: Erlang's register of names."""

    name = 'rabbitmq'
    machine_programs = ('epmd', 'rabbitmq-server')

    def start(self):
        self.port = processes.free_port()
        self._variables = self._environment()
        self.cloud.processes.start(
            'epmd',
            [
                self.cloud.system_program('epmd'),
                '-address',
                '127.0.0.1',
                '-port',
                self._variables['ERL_EPMD_PORT'],
            ],
        )
        self.run()

    def _environment(self):
        definitions = self.folder / 'definitions.json'
        definitions.write_text(json.dumps(self._definitions()))
        conf = self.folder / 'rabbitmq.conf'
        conf.write_text(
            f'load_definitions = {definitions}\n'
            'disk_free_limit.absolute = 1MB\n'
        )
        (self.folder / 'plugins').write_text('[].\n')
        (self.folder / 'env.conf').touch()
        return {
            # Erlang's cookie stands in it.
            'HOME': self.folder,
            'ERL_EPMD_PORT': processes.free_port(),
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'RABBITMQ_CONF_ENV_FILE': self.folder / 'env.conf',
            'RABBITMQ_CONFIG_FILE': conf,
            'RABBITMQ_NODENAME': f'cloud{self.port}@localhost',
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_NODE_PORT': self.port,
            'RABBITMQ_DIST_PORT': processes.free_port(),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': (
                '-kernel inet_dist_use_interface {127,0,0,1}'
            ),
            'RABBITMQ_MNESIA_BASE': self.folder / 'data',
            'RABBITMQ_LOG_BASE': self.folder / 'log',
            'RABBITMQ_ENABLED_PLUGINS_FILE': self.folder / 'plugins',
            'RABBITMQ_PID_FILE': self.folder / 'pid',
        }

    @staticmethod
    def _definitions():
        return {
            'users': [
                {'name': USER, 'password': USER, 'tags': 'administrator'}
            ],
            'vhosts': [{'name': name} for name in VIRTUAL_HOSTS],
            'permissions': [
                {
                    'user': USER,
                    'vhost': name,
                    'configure': '.*',
                    'write': '.*',
                    'read': '.*',
                }
                for name in VIRTUAL_HOSTS
            ],
        }

    def run(self):
        """Start the server on its data and port."""
        self.process = self.cloud.processes.start(
            'rabbitmq', [_server()], port=self.port, **self._variables
        )
        self.cloud.processes.wait(
            lambda: processes.listens(self.port), 'rabbitmq'
        )

    def url(self, virtual_host='/'):
        """Return the transport URL of a virtual host."""
        path = '' if virtual_host == '/' else virtual_host
        return f'rabbit://{USER}:{USER}@127.0.0.1:{self.port}/{path}'
