# SPDX-License-Identifier: Apache-2.0

"""Tempest against a cloud."""

import io
import os
import re
import subprocess

import subunit
import testtools

from tests.cloud import configuration
from tests.cloud import processes
from tests.cloud import service

TESTS = r'^tempest\.api\.compute\.'


class Tempest(service.Service):
    """Tempest, with what it needs on the cloud."""

    name = 'tempest'
    packages = ('tempest', 'blazar-tempest-plugin')

    def start(self):
        self.workspace = self.folder / 'workspace'
        self.cloud.processes.run(
            [
                self.program('tempest'),
                'init',
                '--workspace-path',
                self.folder / 'workspaces.yaml',
                self.workspace,
            ]
        )

    def prepare(self):
        """Create images, flavors and a network; write tempest.conf."""
        admin = self.cloud.connect()
        images = [
            admin.create_image(
                f'tempest-{number}',
                data=b'nothing',
                disk_format='raw',
                container_format='bare',
                visibility='public',
                wait=True,
            ).id
            for number in (1, 2)
        ]
        flavors = [
            admin.compute.create_flavor(
                name=f'tempest-{number}', ram=64 * number, vcpus=1, disk=1
            ).id
            for number in (1, 2)
        ]
        network = admin.network.create_network(name='tempest', is_shared=True)
        admin.network.create_subnet(
            network_id=network.id, ip_version=4, cidr='10.2.0.0/16'
        )
        configuration.write(
            self.workspace / 'etc' / 'tempest.conf',
            {
                'DEFAULT': {'log_file': self.folder / 'tempest.log'},
                'auth': {
                    'admin_username': 'admin',
                    'admin_password': self.cloud.password,
                    'admin_project_name': 'admin',
                    'admin_domain_name': 'Default',
                    'use_dynamic_credentials': 'True',
                    'create_isolated_networks': 'False',
                },
                'identity': {
                    'uri_v3': self.cloud.keystone.url,
                    'auth_version': 'v3',
                    'region': 'RegionOne',
                },
                'compute': {
                    'image_ref': images[0],
                    'image_ref_alt': images[1],
                    'flavor_ref': flavors[0],
                    'flavor_ref_alt': flavors[1],
                    'fixed_network_name': 'tempest',
                    'min_compute_nodes': '2',
                    'min_microversion': '2.1',
                    'max_microversion': 'latest',
                    'build_timeout': '300',
                },
                'compute-feature-enabled': {
                    'resize': 'True',
                    'cold_migration': 'True',
                    'live_migration': 'True',
                    'console_output': 'False',
                    'vnc_console': 'False',
                    'rescue': 'False',
                    # nova's fake driver uploads none.
                    'snapshot': 'False',
                    'suspend': 'False',
                    'change_password': 'False',
                    'personality': 'False',
                    'attach_encrypted_volume': 'False',
                    'ide_bus': 'False',
                },
                'network': {
                    'floating_network_name': '',
                    'project_network_cidr': '10.3.0.0/16',
                },
                'network-feature-enabled': {
                    'api_extensions': 'security-group,port-security,binding',
                    'floating_ips': 'False',
                },
                'validation': {'run_validation': 'False'},
                'volume': {'volume_size': '1', 'storage_protocol': 'nothing'},
                'service_available': {
                    'cinder': self.cloud.has('cinder'),
                    'glance': 'True',
                    'neutron': 'True',
                    'nova': 'True',
                    'placement': 'True',
                    'swift': 'False',
                },
                'oslo_concurrency': {'lock_path': self.folder / 'locks'},
            },
        )

    def run(self, regex=TESTS, concurrency=2):
        """Run tests; return the result by the test's name.

        What fails is run a second time, alone: a busy machine fails a few.

        :returns: "success", "fail" or "skip" by name; of the second run where
            there was one
        """
        results = self._run(regex, concurrency)
        failed = [name for name, result in results.items() if result == 'fail']
        if failed:
            again = '|'.join(re.escape(name) for name in failed)
            results.update(self._run(rf'^({again})(\[|$)', 1))
        return results

    def _run(self, regex, concurrency):
        run = [
            self.program('tempest'),
            'run',
            '--workspace-path',
            self.folder / 'workspaces.yaml',
            '--workspace',
            'workspace',
            '--regex',
            regex,
            '--concurrency',
            concurrency,
            '--subunit',
        ]
        programs = self.cloud.programs(type(self))
        done = subprocess.run(
            [str(word) for word in run],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # It runs stestr by its name.
            env=self.cloud.processes.environment(
                PATH=os.pathsep.join([str(programs), os.defpath])
            ),
            cwd=self.workspace,
            timeout=processes.WAIT_SECONDS * 40,
        )
        results = {}

        def note(test):
            if test['status'] in ('success', 'fail', 'skip'):
                results[test['id'].partition('[')[0]] = test['status']

        stream = testtools.StreamToDict(note)
        stream.startTestRun()
        subunit.ByteStreamToStreamResult(io.BytesIO(done.stdout)).run(stream)
        stream.stopTestRun()
        return results
