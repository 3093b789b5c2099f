# SPDX-License-Identifier: Apache-2.0

"""explain first, then really do it: the scheduler agrees in random cases.

A case is one operation of one server in a cloud of RandomCloudTestCase. nova
must take the first host of the order that explain gave, and must end in
NoValidHost exactly where explain found no host. Where nova asks the scheduler
nothing (nova-api or conductor refuses before), there is no case.

NOVA_EXT_SCHED_TEST_CASES: how many cases there are, 10 by default.
"""

import collections
import os
import random

import ddt
from nova.tests.functional.api import client
from oslo_log import log as logging
from oslo_utils import uuidutils

from tests.functional import explain
from tests.functional import explain_cloud
from tests.functional import keystone

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_CASES', '10'))
CASES_OF_A_CLOUD = 25

LOG = logging.getLogger(__name__)

EXTRA_SPECS = (
    *([{}] * 14),
    {'trait:CUSTOM_WINDOWS': 'required'},
    {'trait:CUSTOM_WINDOWS': 'forbidden'},
    {'reservation:blue': 'true'},
    {'reservation:red': 'true'},
    {'hw:numa_nodes': '2'},
    {'hw:cpu_policy': 'dedicated'},
    {'pci_passthrough:alias': 'nic:1'},
    {'pci_passthrough:alias': 'nic:2'},
    {'resources:CUSTOM_MAGIC': '6'},
    {
        'resources1:CUSTOM_MAGIC': '4',
        'resources2:CUSTOM_MAGIC': '4',
        'group_policy': 'none',
    },
    {
        'resources1:CUSTOM_MAGIC': '1',
        'resources2:CUSTOM_MAGIC': '1',
        'group_policy': 'isolate',
    },
    {'aggregate_instance_extra_specs:ssd': 'true'},
    {'resources:VCPU': '0', 'resources:PCPU': '2'},
)
IMAGES = (
    *([{}] * 8),
    {'trait:CUSTOM_WINDOWS': 'required'},
    {'hw_architecture': 'aarch64'},
    {'os_distro': 'fedora'},
    {'os_distro': 'debian'},
)
QUERIES = (
    '[">=", "$free_ram_mb", 6000]',
    '["=", "$hypervisor_hostname", "host2"]',
    '["not", ["=", "$host", "host4"]]',
)
OPERATIONS = tuple(
    'migrate live-migrate evacuate unshelve resize rebuild'.split()
)


@ddt.ddt
class AgreementTestCase(explain_cloud.RandomCloudTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(keystone.Projects(self.api.project_id))
        self.counts = collections.Counter()
        self.groups = [
            self.api.post_server_groups({'name': 'g', 'policy': policy})['id']
            for policy in ('affinity', 'anti-affinity', 'soft-anti-affinity')
        ]

    @ddt.data(*range((CASES + CASES_OF_A_CLOUD - 1) // CASES_OF_A_CLOUD))
    def test_the_scheduler_agrees(self, seed):
        self.random = random.Random(seed)
        self.servers = []
        self._build_cloud()
        wanted = min(CASES_OF_A_CLOUD, CASES - seed * CASES_OF_A_CLOUD)
        while self.counts.total() < wanted:
            if len(self.servers) > 5 or (
                self.servers and self.random.random() < 0.15
            ):
                self._remove(
                    self.servers.pop(self.random.randrange(len(self.servers)))
                )
            elif self.servers and self.random.random() < 0.65:
                self._do(self.random.choice(OPERATIONS))
            else:
                self._boot()
        LOG.warning('AGREED %s: %s', seed, dict(self.counts))
        print('AGREED', seed, dict(self.counts))

    def _build_cloud(self):
        choice, sample = self.random.choice, self.random.sample
        hosts = sorted(self.weights)
        self.flags(allow_resize_to_same_host=choice([True, False]))
        self.flags(
            disable_fallback_pcpu_query=choice([True, False, False]),
            group='workarounds',
        )
        self.isolate('windows', sample(hosts[1:], 1), 'CUSTOM_WINDOWS')
        self.add_traits(choice(hosts), 'CUSTOM_WINDOWS')
        reserved = sample(hosts[1:], 1)
        self.aggregate('blue', reserved, metadata={'reservation:blue': '1'})
        self.aggregate('zone', sample(hosts, 3), zone='zone')
        self.aggregate(
            'tenant',
            choice([reserved, sample(hosts, 1)]),
            filter_tenant_id=choice(['other', self.api.project_id]),
        )
        self.aggregate('ssd', sample(hosts, 3), ssd='true')
        self.aggregate('distro', sample(hosts, 1), os_distro='debian')
        for host in sample(hosts, 2):
            self.network_providers(host)
        # host1 is refused by the filter of another package anyway.
        self.set_service(choice([*hosts, 'host1', 'host1']), status='disabled')
        self.set_service(choice([*hosts, 'host1', 'host1']), forced_down=True)

    def _flavor(self):
        return self._create_flavor(
            vcpu=self.random.choice([1, 1, 1, 2, 2, 4]),
            memory_mb=self.random.choice([256, 512, 1024, 5000]),
            disk=self.random.choice([0, 1, 1, 10, 600]),
            extra_spec=self.random.choice(EXTRA_SPECS),
        )

    def _boot(self):
        choice = self.random.choice
        flavor, image = self._flavor(), self.image(props=choice(IMAGES))
        server = self._build_server(
            name=uuidutils.generate_uuid(),
            flavor_id=flavor,
            image_uuid=image,
            networks='none',
        )
        hints = {}
        args = ['--flavor', flavor, '--image', image]
        args += ['--project', self.api.project_id]
        kind = choice(
            ['', '', 'zone', 'forced', 'host', 'several', 'query', 'group']
            + ['group', 'same', 'different', 'port']
        )
        host = choice(sorted(self.weights))
        if kind == 'zone':
            server['availability_zone'] = 'zone'
            args += ['--availability-zone', 'zone']
        elif kind == 'forced':
            zone = choice([f'nova:{host}', f'zone:{host}:{host}'])
            server['availability_zone'] = zone
            args += ['--availability-zone', zone]
        elif kind == 'host':
            server['host'] = host
            args += ['--destination', host]
        elif kind == 'several':
            server['min_count'] = server['max_count'] = choice([2, 3])
            args += ['--num-instances', str(server['min_count'])]
        elif kind == 'query':
            hints['query'] = choice(QUERIES)
        elif kind == 'group':
            hints['group'] = choice(self.groups)
            if choice([True, False]):
                server['min_count'] = server['max_count'] = 2
                args += ['--num-instances', '2']
        elif kind in ('same', 'different') and self.servers:
            hints[f'{kind}_host'] = choice(self.servers)['id']
        for key, value in hints.items():
            args += ['--hint', f'{key}={value}']
        answer = None if kind == 'port' else explain.read(*args)
        if kind == 'port':
            # Ports are known once nova bound them.
            server['networks'] = [{'port': self.port()}]
        before = len(self.decisions)
        try:
            created = self.api.post_server(
                {'server': server, 'os:scheduler_hints': hints}
            )
        except client.OpenStackApiException:
            return
        booted = [
            one
            for one in self.api.get_servers(detail=False)
            if one['name'].startswith(server['name'])
        ]
        self.assertIn(created['id'], [one['id'] for one in booted])
        self.servers += map(self._wait_for_boot, booted)
        if answer is not None:
            self._compare(f'boot {kind}', args, answer, before)
        # nova stores neither the ports nor the destination of a request.
        if len(booted) == 1 and kind not in ('host', 'port'):
            done = self.servers[-1]
            if done['status'] == 'ERROR':
                again = explain.run('--server', done['id'])
                self.assertEqual(3, again.status, again)
        for one in self.servers[-len(booted) :]:
            if one['status'] == 'ERROR':
                self.servers.remove(one)
                self._remove(one)

    def _wait_for_boot(self, server):
        def is_done():
            found = self.api.get_server(server['id'])
            self.assertIn(found['status'], ('ACTIVE', 'ERROR'))
            return found

        return self._wait_for_assert(is_done, max_retries=80, sleep=0.25)

    def _do(self, operation):
        server = self.random.choice(self.servers)
        host = self.host_of(server)
        if self.api.get_server(server['id'])['status'] != 'ACTIVE':
            return
        before = len(self.decisions)
        args = ['--server', server['id'], '--operation', operation]
        body = {
            'migrate': {'migrate': None},
            'live-migrate': {
                'os-migrateLive': {'host': None, 'block_migration': 'auto'}
            },
            'evacuate': {'evacuate': {}},
            'unshelve': {'unshelve': None},
        }.get(operation)
        if operation == 'resize':
            flavor = self._flavor()
            args += ['--flavor', flavor]
            body = {'resize': {'flavorRef': flavor}}
        elif operation == 'rebuild':
            image = self.image(props=self.random.choice(IMAGES))
            args += ['--image', image]
            body = {'rebuild': {'imageRef': image}}
        elif operation == 'unshelve':
            self._shelve_server(server)
        elif operation == 'evacuate':
            self.set_service(host, forced_down=True)
        answer = explain.read(*args)
        try:
            self.api.post_server_action(server['id'], body)
        except client.OpenStackApiException:
            pass
        else:
            self._settle(server)
            self._compare(operation, args, answer, before)
        if operation == 'evacuate':
            self.set_service(host, forced_down=False)
        status = self.api.get_server(server['id'])['status']
        if status == 'VERIFY_RESIZE':
            self._confirm_resize(server)
        elif status != 'ACTIVE':
            self.servers.remove(server)
            self._remove(server)

    def _remove(self, server):
        self.api.delete_server(server['id'])

        def is_gone():
            ids = [one['id'] for one in self.api.get_servers(detail=False)]
            self.assertNotIn(server['id'], ids)

        # nova's own helper gives up on a server in ERROR at once.
        self._wait_for_assert(is_gone, max_retries=80, sleep=0.25)

    def _settle(self, server):
        def is_settled():
            found = self.api.get_server(server['id'])
            self.assertIsNone(found['OS-EXT-STS:task_state'])
            for migration in self.api.api_get(
                f'/os-migrations?instance_uuid={server["id"]}'
            ).body['migrations']:
                self.assertNotIn(
                    migration['status'],
                    ('accepted', 'pre-migrating', 'preparing', 'running')
                    + ('migrating', 'post-migrating', 'queued'),
                )

        self._wait_for_assert(is_settled, max_retries=40, sleep=0.25)

    def _compare(self, kind, args, answer, before):
        if len(self.decisions) == before:
            # nova refused before it asked the scheduler.
            return
        found = self.decisions[before]
        shown = f'{kind} {args}\n{found}\n{answer.out}\n{answer.err}'
        self.assertEqual(0 if found.hosts else 3, answer.status, shown)
        order = answer.order
        if found.hosts:
            self.assertEqual(order[0], found.hosts[0], shown)
            if len(found.hosts) == 1:
                self.assertIn(found.hosts[0], order, shown)
        self.counts[kind, bool(found.hosts)] += 1
