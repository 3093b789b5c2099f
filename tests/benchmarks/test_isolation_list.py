# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` on 3,000 hosts.

The whole client, nova's API and placement in one process, on SQLite.
"""

import time

import fixtures

from nova_ext_sched.osc import isolation_cloud
from tests.benchmarks import many_hosts
from tests.functional import openstackclient

HOSTS = 3000
AGGREGATES = 60
LIST = ('aggregate', 'isolation', 'list')
SYNC = ('aggregate', 'isolation', 'sync', '--dry-run')


class IsolationListTest(many_hosts.ManyHostsTestCase):
    hosts = HOSTS

    def test_list(self):
        size = HOSTS // AGGREGATES
        for number in range(AGGREGATES):
            trait = f'CUSTOM_LICENSE_{number % 10}'
            if number < 10:
                self._create_trait(trait)
            self.many(
                f'license{number}',
                range(number * size, (number + 1) * size),
                **{f'trait:{trait}': 'required'},
            )
        # The database in memory has one connection.
        self.useFixture(
            fixtures.MockPatchObject(isolation_cloud, 'WORKERS', 1)
        )
        client = self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.api.base_url,
                {'placement': self.placement.fixture.endpoint},
            )
        )
        for command in (LIST, SYNC):
            cpu = time.process_time()
            status, output, _ = client.run_apart(*command)
            print(
                f'ISOLATION {command[2]} {HOSTS} hosts: '
                f'{time.process_time() - cpu:.1f} s of CPU, status {status}; '
                f'{len(output.splitlines())} lines'
            )
