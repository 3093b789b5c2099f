# SPDX-License-Identifier: Apache-2.0

"""What explain says would help, done by its commands on a real nova."""

import shlex

from nova.cmd import manage

from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_WINDOWS'


class AdviceTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'AggregateMultiTenancyIsolation',
        'NumInstancesFilter',
        'SameHostFilter',
        'DifferentHostFilter',
    )
    options = explain.OPTIONS
    allocation_ratio = 1.0
    HOSTS = tuple(weights)

    def setUp(self):
        super().setUp()
        self.openstack = self.use_client()
        self.rows = 0

    def ask(self, **server):
        """Explain a request that has no host; return its answer."""
        args = ['--flavor', server.get('flavor') or self.plain_flavor]
        args += ['--project', self.api.project_id]
        if zone := server.get('az'):
            args += ['--availability-zone', zone]
        for key, value in server.get('hints', {}).items():
            args += ['--hint', f'{key}={value}']
        answer = explain.read(*args)
        return answer.document['answer']

    def run_commands(self, commands):
        """Do what a shell would do with the lines."""
        for line in commands:
            program, *words = shlex.split(line)
            if program == 'openstack':
                status, said = self.openstack.run(*words)
                self.assertEqual(0, status, f'{line}: {said}')
            elif words == ['placement', 'sync_aggregates']:
                self.assertEqual(
                    0, manage.PlacementCommands().sync_aggregates()
                )
            else:
                self.assertEqual(['cell_v2', 'discover_hosts'], words)
                manage.CellV2Commands().discover_hosts()

    def check(self, act, *others, kind='repair', hosts=1, do=None, **server):
        """Check the first act of a request, do it, and make the request.

        :param others: the acts after it
        :param do: what does it, where no command does; its server is deleted
        :returns: the answer before
        """
        request = {key: server[key] for key in server if key != 'then'}
        answer = self.ask(**request)
        self.assertFalse(answer['left'])
        said = [one['act'] for one in answer['advice']]
        self.assertEqual([act, *others], said)
        first = answer['advice'][0]
        self.assertEqual((kind, hosts), (first['kind'], first['hosts']))
        self.assertNoValidHost(**request)
        if do is None:
            self.assertNotEqual([], first['commands'])
            self.run_commands(first['commands'])
        else:
            self.assertEqual([], first['commands'])
            do()
        booted = self.boot(**(request | server.get('then', {})))
        self._delete_server(booted)
        self.rows += 1
        return answer

    def test_services(self):
        enable = 'enable host1, host2, host3, if meant to take servers again'
        for host in self.HOSTS:
            self.set_service(host, status='disabled')
        self.check(
            enable,
            kind='policy',
            hosts=3,
            do=lambda: self.set_service('host1', status='enabled'),
        )
        self.set_service(
            'host1', status='disabled', disabled_reason='AUTO: gone'
        )
        self.check(
            'enable host1, where nova-compute disabled itself',
            enable.replace('host1, ', ''),
        )
        # What a plan empties is nobody's to enable.
        for host in self.HOSTS:
            self.set_service(
                host,
                status='disabled',
                disabled_reason='nova-ext-sched: being emptied, by the plan',
            )
        self.assertEqual([], self.ask()['advice'])
        for host in self.HOSTS:
            self.set_service(host, status='enabled')
            self.set_service(host, forced_down=True)
        self.check(
            'evacuate host1, host2, host3, or lift the forced state when it '
            'is known to be well',
            kind='policy',
            hosts=3,
            do=lambda: self.set_service('host3', forced_down=False),
        )

    def test_aggregates(self):
        for one in self.HOSTS[1:]:
            self.set_service(one, status='disabled')
        enable = 'enable host2, host3, if meant to take servers again'
        # One isolated aggregate, and two.
        self._create_trait(TRAIT)
        self.isolate('windows', ['host1'], TRAIT)
        answer = self.check(
            enable,
            'take host1 out of windows',
            kind='policy',
            hosts=2,
            do=lambda: self.remove_host('windows', 'host1'),
        )
        self.assertEqual('windows', answer['unasked'])
        for host in self.HOSTS:
            self.set_service(host, status='enabled')
        self.aggregate('a b', self.HOSTS, zone='west')
        self.isolate('-x', ['host1', 'host2', 'host3'], TRAIT)
        self.isolate('$(touch x)', ['host1'], TRAIT)
        self.add_host('windows', 'host2')
        self.add_host('windows', 'host3')
        answer = self.check(
            'take host2, host3 out of -x, windows',
            'take host1 out of $(touch x), -x',
            kind='policy',
            hosts=2,
        )
        self.assertIn(
            '3 are isolated (-x and windows 2, $(touch x) and -x 1)',
            answer['sentence'],
        )

    def test_reserved_and_language(self):
        self.aggregate(
            'mine', ['host1', 'host2'], **{'metadata': {'reservation:a': 'x'}}
        )
        self.aggregate('gold', ['host3'], level='gold')
        flavor = self.flavor(specs={'reservation:a': 'x', 'level': 'gold'})
        self.check(
            'put host1, host2 into gold',
            'put host3 into mine',
            kind='policy',
            hosts=2,
            flavor=flavor,
        )

    def test_full(self):
        """VCPU and memory are both used up, on every host."""
        large = self.flavor(vcpu=9, memory_mb=7000)
        small = self.flavor(vcpu=1, memory_mb=500)
        servers = [
            self.boot(az=f'nova:{host}', flavor=small)
            for host in self.HOSTS
            for _ in range(2)
        ]
        free = 'free 320 MEMORY_MB, 1 VCPU on host1, host2, host3'
        answer = self.ask(flavor=large)
        [room, another] = answer['advice']
        self.assertEqual(
            (free, 1, 'add a host like host1', 1),
            (room['act'], room['hosts'], another['act'], another['hosts']),
        )
        # It looks for moves, and there are none.
        [line] = room['commands']
        self.assertEqual(
            ['nova-ext-sched', 'make-room', f'--flavor={large}'],
            shlex.split(line)[:3],
        )
        self.assertNoValidHost(flavor=large)
        self._delete_server(servers[0])
        self._delete_server(self.boot(flavor=large))
        # A further host is one like that.
        self.boot(az='nova:host1', flavor=small)
        self.assertNoValidHost(flavor=large)
        self._start_compute('host4')
        self.assertEqual('host4', self.host_of(self.boot(flavor=large)))

    def test_groups(self):
        group = self.create_group()
        member = self.boot(hints={'group': group}, az='nova:host1')
        for host in self.HOSTS[1:]:
            self.set_service(host, status='disabled')
        hints = {'group': group}
        # There is no other host for the member.
        enable = 'enable host2, host3, if meant to take servers again'
        said = [one['act'] for one in self.ask(hints=hints)['advice']]
        self.assertEqual([enable], said)
        self.set_service('host2', status='enabled')
        # It may go to one that is full for the new server.
        large = self.flavor(vcpu=9)
        self.boot(az='nova:host2', flavor=self.flavor(vcpu=2))
        self.check(
            'move a server of the group away from host1',
            'free 1 VCPU on host2',
            'add a host like host2',
            enable.replace('host2, ', ''),
            hints=hints,
            flavor=large,
        )
        self.assertEqual('host2', self.host_of(member))

    def test_requests(self):
        self.aggregate('z', ['host1'], zone='west')
        self.boot(az='west:host1', flavor=self.flavor(vcpu=10))
        self.check(
            'ask for no availability zone',
            'free 1 VCPU on host1',
            'add a host like host1',
            'put host2, host3 into z',
            hosts=2,
            az='west',
            do=lambda: None,
            then={'az': None},
        )
        server = self.boot(az='nova:host2')
        # nova-api answers 409 for a host that has servers.
        said = [one['act'] for one in self.ask(az='west')['advice']]
        self.assertIn('put host3 into z', said)
        self.set_service('host2', status='disabled')
        self.check(
            'ask without the hint same_host',
            'enable host2, if meant to take servers again',
            hints={'same_host': server['id']},
            do=lambda: None,
            then={'hints': {}},
        )
        self.set_service('host2', status='enabled')
        self.set_service('host3', status='disabled')
        self.check(
            'ask without the hint different_host',
            'free 1 VCPU on host1',
            'add a host like host1',
            'enable host3, if meant to take servers again',
            hints={'different_host': server['id']},
            do=lambda: None,
            then={'hints': {}},
        )
