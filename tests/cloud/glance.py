# SPDX-License-Identifier: Apache-2.0

"""glance, with images in files."""

import contextlib

from tests.cloud import configuration
from tests.cloud import service
from tests.cloud import web

#: Rules of property protection: every user writes every property.
EVERYBODY = {
    '.*': dict.fromkeys(('create', 'read', 'update', 'delete'), '@'),
}


class Glance(service.Service):
    """The image service."""

    name = 'glance'
    packages = ('glance',)

    def start(self):
        keystone = self.cloud.keystone
        keystone.create_service_user('glance')
        self._protections = self.folder / 'property-protections.ini'
        self._protect(EVERYBODY)
        paste = self.prefix / 'etc/glance/glance-api-paste.ini'
        # Releases before 2025.1 do not start without it beside the other file.
        (self.folder / paste.name).symlink_to(paste)
        conf = self.write(
            'glance-api.conf',
            {
                'DEFAULT': {
                    'enabled_backends': 'files:file',
                    'property_protection_file': self._protections,
                },
                'glance_store': {'default_backend': 'files'},
                **{
                    name: {'filesystem_store_datadir': self.folder / name}
                    for name in (
                        'files',
                        'os_glance_staging_store',
                        'os_glance_tasks_store',
                    )
                },
                'database': {
                    'connection': self.cloud.mariadb.create('glance')
                },
                'paste_deploy': {'flavor': 'keystone', 'config_file': paste},
                'oslo_concurrency': {'lock_path': self.folder / 'locks'},
            },
            keystone.middleware('glance'),
        )
        self.fill('glance', conf, 'glance-manage', 'db', 'sync')
        self.run()
        keystone.register('glance', 'image', f'http://127.0.0.1:{self.port}')

    def run(self):
        """Start the API, on the port that it had."""
        self.process, self.port = web.start(
            self,
            'glance.wsgi.api',
            'glance-wsgi-api',
            '--http-chunked-input',
            '--pyargv',
            ' ',
            OS_GLANCE_CONFIG_DIR=self.folder,
        )

    def _protect(self, rules):
        configuration.write(self._protections, rules)

    @contextlib.contextmanager
    def protecting(self, rules):
        """Limit who writes properties, for a while.

        :param rules: of property protection, before those of ``EVERYBODY``
        """
        with self.away():
            self._protect({**rules, **EVERYBODY})
        try:
            yield
        finally:
            with self.away():
                self._protect(EVERYBODY)
