# SPDX-License-Identifier: Apache-2.0

"""Random clouds, each with five kinds of trouble: the promises hold.

See :mod:`tests.functional.promises`.

NOVA_EXT_SCHED_TEST_PROMISES is the number of clouds, 20 by default.
"""

import os
import random

import ddt

from tests.functional import explain
from tests.functional import promises
from tests.functional import reservations

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_PROMISES', '20'))
ISOLATED = {'windows': 'CUSTOM_WINDOWS', 'linux': 'CUSTOM_LINUX'}
LICENSED = {'trait:CUSTOM_WINDOWS': 'required'}
LEASED = {'reservation:lease': 'true'}


class TroubledCloud(promises.CloudRow):
    """Servers stand before anything happens."""

    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'AggregateMultiTenancyIsolation',
        'FailureDomainFilter',
    )
    options = {
        **explain.OPTIONS,
        'request_filters': [
            *explain.OPTIONS['request_filters'],
            'failure_domains',
        ],
    }
    # Of a row.
    test_promises = None

    def begin(self, seed):
        """Let servers stand, and five things happen."""
        self.random = random.Random(seed)
        self.hosts = sorted(self.weights)
        self.hints = [
            {},
            {},
            *(
                {'group': self.create_group(policy=policy)}
                for policy in ('affinity', 'anti-affinity')
            ),
        ]
        self.servers = [self.boot_somewhere() for _ in range(4)]
        troubles = self.random.sample(
            sorted(one for one in dir(self) if one.startswith('trouble_')), 5
        )
        print('TROUBLES', seed, *troubles)
        for one in troubles:
            getattr(self, one)(self.random.choice(self.hosts))

    def boot_somewhere(self):
        """Boot a plain server; nothing has happened yet."""
        return self.boot(
            flavor=self.flavor(vcpu=self.random.choice([1, 2, 3])),
            az=f'nova:{self.random.choice(self.hosts)}',
        )

    def fullest(self):
        """Return the host with most servers, of those with any."""
        hosts = [one['OS-EXT-SRV-ATTR:host'] for one in self.api.get_servers()]
        return max(sorted({*hosts} - {None}), key=hosts.count)

    def trouble_disabled(self, host):
        self.set_service(host, status='disabled')

    def trouble_down(self, host):
        self.set_service(host, forced_down=True)

    def trouble_isolated(self, host):
        self.isolate('windows', [host], 'CUSTOM_WINDOWS')

    def trouble_unlabelled(self, host):
        required = {'trait:CUSTOM_LINUX': 'required'}
        self.aggregate('linux', [host], metadata=required)
        self._create_trait('CUSTOM_LINUX')

    def trouble_reserved(self, host):
        self.aggregate('lease', [host], metadata=LEASED)

    def trouble_forced(self, host):
        self.aggregate('ssd', [host], force_metadata_check='true', ssd='1')

    def trouble_tenant(self, host):
        self.aggregate(
            'tenant', [host], filter_tenant_id=reservations.OTHER_PROJECT
        )

    def trouble_overcommitted(self, host):
        self.limit(host, 'VCPU', allocation_ratio=1.5)

    def trouble_overfull(self, host):
        self.limit(host, 'VCPU', allocation_ratio=0.2)

    def trouble_large(self, host):
        self.limit(host, 'VCPU', max_unit=2)

    def trouble_unheld(self, host):
        self.allocate(host, {'MEMORY_MB': 4000})

    def trouble_paused(self, _):
        server = self.random.choice(self.servers)
        self.servers.remove(server)
        self.act(server, 'pause', 'PAUSED')

    def trouble_stopped(self, _):
        server = self.random.choice(self.servers)
        self.servers.remove(server)
        self.act(server, 'os-stop', 'SHUTOFF')

    def trouble_resized(self, _):
        server = self.random.choice(self.servers)
        self.servers.remove(server)
        # There may be no host for it.
        self.act(server, 'resize', flavorRef=self.flavor(vcpu=4))
        self.wait_until_idle(server)

    def trouble_failed(self, _):
        server = self.random.choice(self.servers)
        self.servers.remove(server)
        self.reset_state(server, 'error')


@ddt.ddt
class RandomTestCase(TroubledCloud):
    """What the commands say of such clouds, nova then does."""

    @ddt.data(*range(CASES))
    def test_cloud(self, seed):
        self.begin(seed)
        for _ in range(3):
            _, server = self.explain(
                flavor=self.any_flavor(), hints=self.random.choice(self.hints)
            )
            if server['status'] == 'ERROR':
                self._delete_server(server)
        joined = self.random.sample(self.hosts, 2)
        self.assertIsolates(*joined, ready=joined[: self.random.randrange(2)])
        self.assertListed()
        self.assertMended(kinds=None, stuck=None)
        drained = {self.fullest(), self.random.choice(self.hosts)}
        plan = self.assertDrained(*sorted(drained), kinds=None, stuck=None)
        print('PLAN', seed, plan['answer']['sentence'])
        self.promise_room(random.Random(seed))
        [failure] = self.survive('--host', self.fullest())['failures']
        self.fail_hosts(failure)
        self.assertCounted(
            0, flavor=self.flavor(vcpu=self.random.choice([3, 4, 6]))
        )

    def promise_room(self, choose):
        """Let large servers come, and go again."""
        plan, made = self.assertRoom(
            choose.choice([2, 3, 4]),
            flavor=self.flavor(vcpu=choose.choice([5, 6, 7, 8])),
            hints=choose.choice(self.hints),
        )
        print('ROOM', len(plan['moves']), plan['answer']['sentence'])
        for server in made:
            self._delete_server(server)

    def assertListed(self):
        """Let the list name the hosts that placement does not offer."""
        for name, trait in ISOLATED.items():
            if name in self.aggregate_ids:
                found = self.admin_api.api_get(
                    f'/os-aggregates/{self.aggregate_ids[name]}'
                ).body['aggregate']
                self.assertEqual(
                    {*found['hosts']} - self._offered(trait),
                    self._list_faults('trait-missing', name=name),
                )

    def any_flavor(self):
        return self.flavor(
            vcpu=self.random.choice([1, 2, 3, 4]),
            memory_mb=self.random.choice([64, 1024, 3000]),
            specs=self.random.choice([{}, {}, {}, LICENSED, LEASED]),
        )
