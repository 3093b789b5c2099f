# SPDX-License-Identifier: Apache-2.0

"""Random clouds in trouble, and requests that fail: the first act helps.

What explain says first is done, and nova makes the server. No act that was
tried fails to help; at most one in ten is said untried.

NOVA_EXT_SCHED_TEST_ADVICE is the number of clouds, 20 by default.
"""

import collections
import os

import ddt
from nova import context as nova_context
from nova import objects
from nova.cmd import manage

from tests.functional import advice
from tests.functional import explain
from tests.long import test_promises_random

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_ADVICE', '20'))
#: The clouds of one test, which share their services.
TOGETHER = 10
REQUESTS = 5
SPECS = (
    *([{}] * 5),
    test_promises_random.LICENSED,
    test_promises_random.LEASED,
    {'trait:CUSTOM_WINDOWS': 'forbidden'},
    {'trait:CUSTOM_GIVEN': 'required'},
    {'ssd': '1'},
)


@ddt.ddt
class RandomTestCase(advice.RowsMixin, test_promises_random.TroubledCloud):
    host_filters = (
        *test_promises_random.TroubledCloud.host_filters,
        'NumInstancesFilter',
        'SameHostFilter',
        'DifferentHostFilter',
        'AggregateImagePropertiesIsolation',
    )
    test_rows = None

    def setUp(self):
        super().setUp()
        self.flags(server_groups=-1, group='quota')
        self.counts = collections.Counter()
        self.failed = []

    @ddt.data(*range(0, CASES, TOGETHER))
    def test_advice(self, begin):
        for seed in range(begin, min(begin + TOGETHER, CASES)):
            self.begin(seed)
            self.fill()
            for _ in range(REQUESTS):
                self.ask_and_do(seed, self.any_request())
            self.restore()
        print('ADVICE', begin, dict(self.counts))
        self.assertEqual([], self.failed, '\n'.join(self.failed))
        self.assertGreater(self.counts['worked'], 0)
        self.assertLessEqual(10 * self.counts['untried'], self.counts['asked'])

    def fill(self):
        """Boot servers of several sizes on each host that takes them."""
        for host in self.hosts:
            for vcpu in self.random.sample([1, 2, 3, 4, 5], 3):
                flavor = self.flavor(vcpu=vcpu, memory_mb=500 * vcpu)
                asked = self.arguments(flavor=flavor, host=host)
                if explain.read(*asked).status == 0:
                    self.boot(host=host, flavor=flavor)

    def any_request(self):
        choice = self.random.choice
        hints = choice(self.hints)
        if choice([True] + [False] * 4):
            server = choice(self.api.get_servers())
            hints = {choice(['same_host', 'different_host']): server['id']}
        zones = {
            one['availability_zone']
            for one in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
            if one['hosts'] and one['availability_zone']
        }
        return {
            'flavor': self.flavor(
                vcpu=choice([1, 2, 4, 6, 8, 9, 10, 11]),
                memory_mb=choice([64, 64, 2000, 6000]),
                specs=choice(SPECS),
            ),
            'hints': hints,
            'az': choice([None, None, None, *sorted(zones)]),
            'host': choice([None] * 8 + self.hosts),
            'image': choice([None] * 4 + [self.image(os_distro='fedora')]),
        }

    def ask_and_do(self, seed, server):
        """Do what is said first of a request that fails, and make it."""
        given = {key: one for key, one in server.items() if one}
        answer = explain.read(*self.arguments(**given)).document['answer']
        if answer['finds_host']:
            self.boot(**given)
            return
        self.counts['asked'] += 1
        if not answer['advice']:
            self.counts['no act'] += 1
            print('NO ACT', seed, answer['sentence'])
            return
        first = answer['advice'][0]
        if first['hosts'] is None:
            self.counts['untried'] += 1
            print('UNTRIED', seed, first['act'], answer['sentence'])
            return
        said = f'{seed}: {answer["sentence"]} {first} {given}'
        print('ACT', said)
        try:
            self.boot(**self.do(first, given))
        except Exception as exc:
            self.failed.append(f'{said}: {exc}')
        else:
            self.counts['worked'] += 1

    def trouble_disabled_itself(self, host):
        reason = 'AUTO: failed to build'
        self.set_service(host, status='disabled', disabled_reason=reason)

    def trouble_unmapped(self, host):
        ctxt = nova_context.get_admin_context()
        objects.HostMapping.get_by_host(ctxt, host).destroy()
        self.execute(
            'UPDATE compute_nodes SET mapped = 0 WHERE host = :host', host=host
        )
        self.undone.append(lambda: manage.CellV2Commands().discover_hosts())

    def trouble_zone(self, host):
        # nova-api takes no host with servers into a zone.
        for server in self.api.get_servers():
            if self.host_of(server) == host:
                self.servers = [
                    one for one in self.servers if one['id'] != server['id']
                ]
                self._delete_server(server)
        self.aggregate('west', [host], zone='west')

    def trouble_many(self, _):
        self.option('filter_scheduler', max_instances_per_host=3)

    def trouble_image(self, host):
        self.aggregate('debian', [host], os_distro='debian')

    def trouble_language(self, host):
        self.aggregate('fast', [], ssd='1')
