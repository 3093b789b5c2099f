# SPDX-License-Identifier: Apache-2.0

"""What one stage of a policy refuses where the other has no say.

In most requests both stages refuse the same hosts, so that the break of one
cannot be seen. ``test_policies`` has two more stories of this kind: forced
hosts, which the request filters alone judge, and rebuilds, which the host
filters alone judge.
"""

from tests.cloud import nova
from tests.cloud import oracle
from tests.cloud import world

#: Of a failure domain.
ALONE = {'different_failure_domain': 'true'}


class StagesTestCase(world.WorldTestCase):
    def tearDown(self):
        world.delete_servers(self.world.admin)
        super().tearDown()

    def start_schedulers(self, *options):
        self.cloud.nova.start_schedulers(nova.EVERYTHING, *options)
        self.cloud.nova.wait_for_schedulers()

    def test_more_aggregates_than_the_query_names(self):
        """The host filter judges what the placement query has no room for.

        It has room for ``windows``, the isolated aggregate with most hosts.
        """
        small = oracle.Aggregate(
            ('compute5',), {'trait:CUSTOM_SMALL': 'required'}
        )
        with self.world.one_more_aggregate('small', small):
            self.addCleanup(self.start_schedulers)
            self.start_schedulers(
                {'nova_ext_sched': {'max_forbidden_aggregates': '1'}}
            )
            found = {}
            for host in self.world.hosts:
                (server,) = self.world.boot('plain', user='admin', host=host)
                found[host] = server.status
            allowed = self.world.allowed('plain', 'linux')
            self.assertEqual(
                {
                    host: 'ACTIVE' if host in allowed else 'ERROR'
                    for host in self.world.hosts
                },
                found,
            )

    def test_forced_host_in_a_full_failure_domain(self):
        """nova runs no host filter on a forced host."""
        hints = {
            **ALONE,
            'group': self.world.create_group('admin', policy='soft-affinity'),
        }
        found = {}
        # The first and the last are in one rack.
        for host in ('compute3', 'compute5', 'compute6'):
            (server,) = self.world.boot(
                'plain',
                user='admin',
                hints=hints,
                availability_zone=f'nova:{host}',
            )
            found[host] = server.status
        self.assertEqual(
            {'compute3': 'ACTIVE', 'compute5': 'ACTIVE', 'compute6': 'ERROR'},
            found,
        )

    def test_one_request_fills_the_failure_domains(self):
        """No member stands anywhere yet: the query forbids no domain."""
        group = self.world.create_group(policy='soft-affinity')
        # Plain servers may stand on compute3, 5 and 6: racks 3, 2 and 3.
        for count, status in ((3, 'ERROR'), (2, 'ACTIVE')):
            servers = self.world.boot(
                'plain',
                hints={**ALONE, 'group': group},
                min_count=count,
                max_count=count,
            )
            self.assertEqual(
                [status] * count,
                [server.status for server in servers],
                [server.hypervisor_hostname for server in servers],
            )
        racks = {
            self.world.racks[server.hypervisor_hostname] for server in servers
        }
        self.assertEqual({'rack-2', 'rack-3'}, racks)
