# SPDX-License-Identifier: Apache-2.0

"""What pages show of commands, from one cloud for each page."""

import os
import pathlib

import fixtures

from tests import samples
from tests.functional import base
from tests.functional import capacity
from tests.functional import explain
from tests.functional import test_isolation
from tests.functional import test_osc_isolation
from tests.long import pages

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
LICENSED = {f'trait:{TRAIT}': 'required'}
RESERVED = {'reservation:gpu': 'true'}
# Names and CPUs, MiB and extra specs, of the page about capacity.
FLAVORS = (
    ('small', 1, 512, {}),
    ('medium', 2, 2048, {}),
    ('large', 4, 4096, {}),
    ('huge', 16, 2048, {}),
    ('windows', 4, 2048, LICENSED),
    ('gpu', 8, 4096, RESERVED),
)


class SamplesTestCase(pages.PagesMixin, test_osc_isolation.IsolationTestCase):
    """Three hosts."""

    def small(self):
        """Create a flavor of which each host takes ten."""
        return self.flavor(name='small', memory_mb=512, disk=1)

    def rename(self, servers, name):
        """Name servers in the order in which commands list them."""
        self.servers = {**getattr(self, 'servers', {})}
        for number, server in enumerate(
            sorted(servers, key=lambda server: server['id']), 1
        ):
            self.servers[f'{name}-{number}'] = server['id']
            self.api.put_server(
                server['id'], {'server': {'name': f'{name}-{number}'}}
            )


class AuditTestCase(SamplesTestCase):
    @samples.compares(
        'cli/audit/before.txt',
        'cli/audit/all.txt',
        'cli/audit/summary.txt',
        'cli/audit/document.txt',
        'cli/mend/mend.txt',
    )
    def test_the_page(self):
        # Otherwise nova-compute refuses what the forced host brings.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        self.flags(
            enable_isolated_aggregate_filtering=False, group='nova_ext_sched'
        )
        flavor = self.small()
        self.boot(flavor=flavor, host='host1', name='mail')
        self.rename(
            [self.boot(flavor=flavor, host='host2') for _ in range(2)], 'web'
        )
        group = self.create_group(name='db')
        self.rename(
            [
                self.boot(
                    flavor=flavor, az='nova:host3', hints={'group': group}
                )
                for _ in range(2)
            ],
            'db',
        )
        self.aggregate('windows', ['host2'])
        self.aggregate('rack1', ['host2'])
        self.show(
            'cli/audit/before.txt',
            'nova-ext-sched audit \\\n'
            '    --option nova_ext_sched.enable_isolated_aggregate_filtering='
            'True \\\n'
            f'    --aggregate-property windows trait:{TRAIT}=required \\\n'
            '    --policy isolation',
            'echo $?',
        )
        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        self.set_metadata('windows', LICENSED)
        self.show('cli/audit/all.txt', 'nova-ext-sched audit', 'echo $?')
        self.show('cli/audit/summary.txt', 'nova-ext-sched audit --summary')
        self.show(
            'cli/audit/document.txt',
            'nova-ext-sched audit -f json --host host3',
        )
        # One stays stopped, and one cannot move.
        for uuid, action, status in (
            (self.servers['web-1'], 'os-stop', 'SHUTOFF'),
            (self.servers['web-2'], 'suspend', 'SUSPENDED'),
        ):
            self.act({'id': uuid}, action, status)
        self.show('cli/mend/mend.txt', 'nova-ext-sched mend', 'echo $?')


class DrainTestCase(SamplesTestCase):
    host_filters = ('ServerGroupAntiAffinityFilter',)
    options = {}

    @samples.compares('cli/drain/drain.txt', 'cli/moves/apply.txt')
    def test_the_page(self):
        flavor = self.small()
        group = self.create_group(2, name='db')
        hints = {'group': group}
        for name, host in (('db-1', 'host1'), ('db-2', 'host2')):
            self.boot(flavor=flavor, az=f'nova:{host}', hints=hints, name=name)
        for name, action in (
            ('batch', {'os-resetState': {'state': 'error'}}),
            ('web', {'os-stop': None}),
        ):
            server = self.boot(flavor=flavor, host='host1', name=name)
            self.admin_api.post_server_action(server['id'], action)
        self._wait_for_state_change(server, 'SHUTOFF')
        self.show(
            'cli/drain/drain.txt', 'nova-ext-sched drain host1', 'echo $?'
        )
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.useFixture(fixtures.TempDir()).path)
        self.show(
            'cli/moves/apply.txt',
            'nova-ext-sched drain host1 --output plan.json',
            'openstack move plan apply plan.json --disable',
            'echo $?',
            'openstack move plan apply plan.json --enable',
        )


class MaintainTestCase(SamplesTestCase):
    host_filters = ('ServerGroupAntiAffinityFilter',)
    options = {}
    weights = {f'host{n}': 700 - n for n in range(1, 6)}

    @samples.compares('cli/maintain/maintain.txt')
    def test_the_page(self):
        flavor = self.small()
        group = self.create_group(2, name='db')
        hints = {'group': group}
        for host in ('host1', 'host2', 'host3'):
            for number in '12':
                self.boot(
                    flavor=flavor, host=host, name=f'web-{host[-1]}{number}'
                )
        for host in ('host1', 'host4', 'host5'):
            self.boot(
                flavor=flavor,
                az=f'nova:{host}',
                hints=hints,
                name=f'db-{host[-1]}',
            )
        server = self.boot(flavor=flavor, host='host5', name='batch')
        self.reset_state(server, 'error')
        self.show(
            'cli/maintain/maintain.txt', 'nova-ext-sched maintain', 'echo $?'
        )


class SurviveTestCase(SamplesTestCase):
    host_filters = (
        'IsolatedAggregatesFilter',
        'ServerGroupAntiAffinityFilter',
    )
    weights = {f'host{n}': 500 - n for n in range(1, 7)}

    @samples.compares(
        'cli/survive/survive.txt', 'cli/survive/host.txt', 'cli/map.txt'
    )
    def test_the_page(self):
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        self.flags(
            enable_isolated_aggregate_filtering=False, group='nova_ext_sched'
        )
        flavor = self.small()
        group = self.create_group(name='db')
        for number in (1, 2, 3):
            self.boot(
                flavor=flavor,
                az=f'nova:host{number}',
                hints={'group': group},
                name=f'db-{number}',
            )
        licensed = self.flavor(
            name='licensed', vcpu=4, memory_mb=5000, disk=1, specs=LICENSED
        )
        self.isolate('windows', ['host5', 'host6'], TRAIT)
        for number in (5, 6):
            host = f'host{number}'
            self.boot(flavor=licensed, host=host, name=f'dc-{number}')
        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        self.boot(flavor=flavor, host='host1', name='web')
        self.show(
            'cli/survive/survive.txt',
            'nova-ext-sched survive --flavor small',
            'echo $?',
        )
        self.show(
            'cli/survive/host.txt', 'nova-ext-sched survive --host host1'
        )
        for rack, hosts in (
            ('rack2', ['host1', 'host2', 'host3']),
            ('rack10', ['host4', 'host5', 'host6']),
        ):
            self.aggregate(rack, hosts, failure_domain=rack)
        self.set_service('host4', status='disabled')
        self.show(
            'cli/map.txt', 'nova-ext-sched capacity --flavor small --map'
        )


class IsolationTestCase(SamplesTestCase):
    @samples.compares(
        'cli/isolation/list.txt',
        'cli/isolation/document.txt',
        'cli/isolation/sync.txt',
    )
    def test_the_page(self):
        self.require('windows', ['host1', 'host2'], TRAIT)
        self.add_traits('host1', TRAIT)
        self.set_membership('host2')
        self.isolate('gpu', ['host3'], 'CUSTOM_GPU')
        list_ = 'openstack aggregate isolation list'
        self.show('cli/isolation/list.txt', list_, 'echo $?')
        self.show('cli/isolation/document.txt', f'{list_} -f json')
        sync = 'openstack aggregate isolation sync'
        self.show(
            'cli/isolation/sync.txt',
            f'{sync} --dry-run',
            'echo $?',
            sync,
            list_,
        )


class RunbookTestCase(SamplesTestCase):
    @samples.compares(
        'admin/runbook/misplaced.txt',
        'admin/runbook/moved.txt',
        'admin/runbook/empty.txt',
        'admin/runbook/used.txt',
        'admin/runbook/group.txt',
        'admin/runbook/no_valid_host.txt',
    )
    def test_the_page(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        small = self.small()
        windows = self.flavor(
            name='windows', memory_mb=512, disk=1, specs=LICENSED
        )
        self._create_trait(TRAIT)
        web = self.boot(flavor=small, host='host1', name='web-1')
        self.require('windows', ['host1'], TRAIT)
        self.show(
            'admin/runbook/misplaced.txt', 'nova-ext-sched audit', 'echo $?'
        )
        self.live_migrate(web)
        self._wait_for_server_parameter(
            web, {'OS-EXT-SRV-ATTR:host': 'host2', 'status': 'ACTIVE'}
        )
        self.show('admin/runbook/moved.txt', 'nova-ext-sched audit', 'echo $?')

        self.assertNoValidHost(flavor=windows)
        self.show(
            'admin/runbook/empty.txt',
            'nova-ext-sched explain --flavor windows',
            'openstack aggregate isolation list',
            'openstack aggregate isolation sync windows',
        )
        self.show(
            'admin/runbook/used.txt', 'nova-ext-sched explain --flavor windows'
        )

        group = self.create_group(name='db')
        hints = {'group': group}
        for number in (1, 2):
            self.boot(flavor=small, hints=hints, name=f'db-{number}')
        server = self.assertNoValidHost(flavor=small, hints=hints, name='db-3')
        self.show(
            'admin/runbook/group.txt',
            f'nova-ext-sched explain --server {server["id"]}',
        )

        large = self.flavor(name='large', vcpu=4, memory_mb=7400, disk=10)
        server = self.assertNoValidHost(flavor=large, name='erp')
        self.show(
            'admin/runbook/no_valid_host.txt',
            f'nova-ext-sched explain --server {server["id"]}',
        )


class ExplainTestCase(pages.PagesMixin, base.CloudTestCase):
    weights = {f'host{number}': 20 - number for number in range(1, 10)}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    @samples.compares(
        'cli/explain/boot.txt',
        'cli/explain/host.txt',
        'cli/explain/all.txt',
        'cli/explain/migration.txt',
    )
    def test_the_page(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        self.isolate('windows', ['host5', 'host6', 'host7'], TRAIT)
        self.aggregate('gpu', ['host8'], metadata=RESERVED)
        hints = {'group': self.create_group(name='web')}
        small = self.flavor(name='small')
        web, _ = (
            self.boot(flavor=small, hints=hints, az=f'nova:{host}', name='web')
            for host in ('host1', 'host2')
        )
        self.set_service('host9', forced_down=True)
        flavor = self._create_flavor(
            name='large', vcpu=4, memory_mb=7680, disk=0
        )
        self.boot_each_on('host3', 'host4')
        server = self.assertNoValidHost(flavor=flavor, name='db-1')
        boot = f'nova-ext-sched explain --server {server["id"]}'
        self.show('cli/explain/boot.txt', boot, 'echo $?')
        self.show('cli/explain/host.txt', f'{boot} --host host6', 'echo $?')
        self.show('cli/explain/all.txt', f'{boot} --all', 'echo $?')
        for host in ('host3', 'host4'):
            self.set_service(host, forced_down=True)
        self.show(
            'cli/explain/migration.txt',
            f'nova-ext-sched explain --server {web["id"]} '
            '--operation live-migrate',
            'echo $?',
        )


class CapacityTestCase(pages.PagesMixin, capacity.CapacityTestCase):
    weights = {f'host{number}': 20 - number for number in range(1, 10)}
    host_filters = ('IsolatedAggregatesFilter',)
    options = explain.OPTIONS

    @samples.compares(
        'cli/capacity/flavors.txt',
        'cli/capacity/hosts.txt',
        'cli/capacity/aggregates.txt',
    )
    def test_the_page(self):
        for host, vcpu in (('host1', 8), ('host2', 5), ('host6', 9)):
            self.boot(az=f'nova:{host}', flavor=self.large(vcpu=vcpu))
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        self.isolate('windows', ['host5', 'host6', 'host7'], TRAIT)
        self.aggregate('gpu', ['host8'], metadata=RESERVED)
        for name, vcpu, memory_mb, specs in FLAVORS:
            self.flavor(name=name, vcpu=vcpu, memory_mb=memory_mb, specs=specs)
        self.set_service('host9', forced_down=True)
        command = 'nova-ext-sched capacity'
        self.show('cli/capacity/flavors.txt', command)
        command += ' --flavor medium'
        self.show('cli/capacity/hosts.txt', f'{command} --hosts')
        self.aggregate('rack1', [f'host{n}' for n in (1, 2, 3, 5)])
        self.aggregate('ssd', ['host2'])
        self.show('cli/capacity/aggregates.txt', f'{command} --by aggregate')


class MakeRoomTestCase(pages.PagesMixin, capacity.CapacityTestCase):
    """Ten CPUs on each host."""

    @samples.compares('cli/make-room/make-room.txt')
    def test_the_page(self):
        for name, host, vcpu in (
            ('db', 'host1', 4),
            ('web', 'host2', 5),
            ('batch', 'host3', 2),
        ):
            flavor = self.large(vcpu=vcpu)
            self.boot(az=f'nova:{host}', flavor=flavor, name=name)
        self.large(name='large', vcpu=8)
        self.show(
            'cli/make-room/make-room.txt',
            'nova-ext-sched make-room --flavor large --count 2',
            'echo $?',
        )


class WeighersTestCase(pages.PagesMixin, base.CloudTestCase):
    """nova's own weighers."""

    started = ('host1', 'host2', 'host3')

    @samples.compares('cli/explain/weighers.txt')
    def test_the_page(self):
        self.flavor(name='small', memory_mb=512, disk=1)
        for host, vcpu, memory_mb in (
            ('host1', 1, 4096),
            ('host2', 8, 1024),
            ('host3', 4, 2048),
        ):
            flavor = self.flavor(vcpu=vcpu, memory_mb=memory_mb, disk=1)
            self.boot(flavor=flavor, az=f'nova:{host}')
        self.show(
            'cli/explain/weighers.txt',
            'nova-ext-sched explain --flavor small --host host3',
        )


class MetricsTestCase(pages.PagesMixin, test_isolation.IsolationTestCase):
    def run_command(self, name, path):
        """Run a command; return what it writes for Prometheus."""
        explain.call(pages.COMMANDS[name], name, '--metrics', str(path))
        return path.read_text()

    @samples.compares('cli/audit/metrics.txt', 'cli/capacity/metrics.txt')
    def test_the_page(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        small = self.flavor(name='small', vcpu=4)
        self.flavor(name='large', vcpu=400)
        self.boot(flavor=small, host='host1')
        self.isolate('windows', ['host1'], TRAIT)
        for name, metric in (
            ('audit', 'nova_ext_sched_policy_violations'),
            ('capacity', 'nova_ext_sched_capacity_servers'),
        ):
            path = folder / f'nova-ext-sched-{name}.prom'
            lines = [
                line
                for line in self.run_command(name, path).splitlines()
                if line.startswith(metric)
            ]
            samples.check(
                self,
                f'cli/{name}/metrics.txt',
                '\n'.join([f'$ grep ^{metric} {path.name}', *lines, '']),
                width=120,
            )
        with fixtures.MonkeyPatch('nova_ext_sched.dryrun.fit.count.MOST', 1):
            self.assertIn('flavor="small"} +Inf', self.run_command(name, path))
