# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` on 3,000 hosts.

The whole client, nova's API and placement in one process, on SQLite. The time
that nova and placement take to answer is told apart.
"""

import time

import fixtures
from keystoneauth1 import session

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
                self.api_fixture.base_url,
                {'placement': self.placement.fixture.endpoint},
            )
        )
        self.spent = {}
        request = session.Session.request

        def timed(mine, url, method, *args, **kwargs):
            begin = time.monotonic()
            try:
                return request(mine, url, method, *args, **kwargs)
            finally:
                key = url.partition('?')[0].rpartition('/')[2]
                self.spent[key] = (
                    self.spent.get(key, 0) + time.monotonic() - begin
                )

        self.useFixture(
            fixtures.MonkeyPatch(
                'keystoneauth1.session.Session.request', timed
            )
        )
        for command in (LIST, SYNC):
            self.spent.clear()
            begin = time.monotonic()
            cpu = time.process_time()
            status, output, errors = client.run_apart(*command)
            total = time.monotonic() - begin
            parts = ', '.join(f'{k} {v:.1f}' for k, v in self.spent.items())
            print(
                f'ISOLATION {command[2]} {HOSTS} hosts: {total:.1f} s, '
                f'{time.process_time() - cpu:.1f} of CPU; answers: {parts}; '
                f'{len(output.splitlines())} lines'
            )
            print(output[:3000])
