# SPDX-License-Identifier: Apache-2.0

"""What pages show of commands, from one cloud for each page."""

import contextlib
import io
import shlex

import fixtures

from nova_ext_sched.cmd.moves import command
from tests import documentation
from tests import samples
from tests.functional import audits
from tests.functional import explain
from tests.functional import test_osc_isolation

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class SamplesTestCase(
    audits.AuditTestCase, test_osc_isolation.IsolationTestCase
):
    """Three hosts, and a terminal of 80 columns."""

    maxDiff = None
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        samples.skip_other_releases(self)
        self.useFixture(
            fixtures.EnvironmentVariable('COLUMNS', str(samples.WIDTH))
        )

    def show(self, name, *lines):
        """Compare a sample with what lines of a shell print."""
        text = ''.join(f'$ {line}\n{self._type(line)}' for line in lines)
        samples.check(self, name, text, self.api.project_id)

    def _type(self, line):
        if line == 'echo $?':
            return f'{self.status}\n'
        block = documentation.Block('', 1, 'console', f'$ {line}')
        program, *words = shlex.split(*documentation.command_lines(block))
        if program == 'openstack':
            self.status, out, err = self.openstack.run_apart(*words)
        elif words[0] == 'audit':
            with contextlib.redirect_stderr(io.StringIO()) as stderr:
                self.status, out = self.run_audit(*words[1:])
            err = stderr.getvalue()
        elif class_ := {
            'mend': command.Mend,
            'drain': command.Drain,
            'survive': command.Survive,
        }.get(words[0]):
            out, err, self.status = explain.call(class_, *words)
        else:
            out, err, self.status = explain.run(*words[1:])
        return out + err

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
                    flavor=flavor,
                    az='nova:host3',
                    hints={'group': group},
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
        self.set_metadata('windows', {f'trait:{TRAIT}': 'required'})
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
            self.api.post_server_action(uuid, {action: None})
            self._wait_for_state_change({'id': uuid}, status)
        self.show('cli/mend/mend.txt', 'nova-ext-sched mend', 'echo $?')


class DrainTestCase(SamplesTestCase):
    host_filters = ('ServerGroupAntiAffinityFilter',)
    options = {}

    @samples.compares('cli/drain/drain.txt')
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


class SurviveTestCase(SamplesTestCase):
    host_filters = (
        'IsolatedAggregatesFilter',
        'ServerGroupAntiAffinityFilter',
    )
    weights = {f'host{n}': 500 - n for n in range(1, 7)}

    @samples.compares('cli/survive/survive.txt', 'cli/survive/host.txt')
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
            name='licensed',
            vcpu=4,
            memory_mb=5000,
            disk=1,
            specs={f'trait:{TRAIT}': 'required'},
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
            name='windows',
            memory_mb=512,
            disk=1,
            specs={f'trait:{TRAIT}': 'required'},
        )
        self._create_trait(TRAIT)
        web = self.boot(flavor=small, host='host1', name='web-1')
        self.require('windows', ['host1'], TRAIT)
        self.show(
            'admin/runbook/misplaced.txt', 'nova-ext-sched audit', 'echo $?'
        )
        self.admin_api.post_server_action(
            web['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
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
