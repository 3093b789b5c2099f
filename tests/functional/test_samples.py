# SPDX-License-Identifier: Apache-2.0

"""What pages show of commands, from one cloud for each page."""

import contextlib
import io
import shlex

import fixtures

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

    def show(self, name, *lines, width=samples.WIDTH):
        """Compare a sample with what lines of a shell print.

        :param width: what no line of the output exceeds
        """
        text = ''.join(f'$ {line}\n{self._type(line)}' for line in lines)
        samples.check(self, name, text, self.api.project_id, width)

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
        else:
            out, err, self.status = explain.run(*words[1:])
        return out + err

    def small(self, name='small'):
        """Create a flavor of which each host takes ten."""
        return self._create_flavor(
            name=name, vcpu=1, memory_mb=512, disk=1, ephemeral=0
        )

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
        'tools/audit/before.txt',
        'tools/audit/all.txt',
        'tools/audit/summary.txt',
        'tools/audit/document.txt',
        'tools/audit/plan.txt',
        'tools/audit/commands.txt',
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
        group = self.api.post_server_groups(
            {'name': 'db', 'policy': 'anti-affinity'}
        )
        self.rename(
            [
                self.boot(
                    flavor=flavor,
                    az='nova:host3',
                    hints={'group': group['id']},
                )
                for _ in range(2)
            ],
            'db',
        )
        self.aggregate('windows', ['host2'])
        self.aggregate('rack1', ['host2'])
        self.show(
            'tools/audit/before.txt',
            'nova-ext-sched audit \\\n'
            '    --option nova_ext_sched.enable_isolated_aggregate_filtering='
            'True \\\n'
            f'    --aggregate-property windows trait:{TRAIT}=required \\\n'
            '    --policy isolation --where',
            'echo $?',
        )
        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        self.set_metadata('windows', {f'trait:{TRAIT}': 'required'})
        self.show('tools/audit/all.txt', 'nova-ext-sched audit', 'echo $?')
        self.show('tools/audit/summary.txt', 'nova-ext-sched audit --summary')
        self.show(
            'tools/audit/document.txt',
            'nova-ext-sched audit -f json --host host3',
        )
        # One stays stopped, and one cannot move.
        for uuid, action, status in (
            (self.servers['web-1'], 'os-stop', 'SHUTOFF'),
            (self.servers['web-2'], 'suspend', 'SUSPENDED'),
        ):
            self.api.post_server_action(uuid, {action: None})
            self._wait_for_state_change({'id': uuid}, status)
        self.show('tools/audit/plan.txt', 'nova-ext-sched audit --plan')
        self.show(
            'tools/audit/commands.txt',
            'nova-ext-sched audit --plan -f commands --most 2',
            # A shell takes a command as one line.
            width=180,
        )


class IsolationTestCase(SamplesTestCase):
    @samples.compares(
        'tools/isolation/list.txt',
        'tools/isolation/document.txt',
        'tools/isolation/sync.txt',
    )
    def test_the_page(self):
        self.require('windows', ['host1', 'host2'], TRAIT)
        self.add_traits('host1', TRAIT)
        self.forget_membership('host2')
        self.isolate('gpu', ['host3'], 'CUSTOM_GPU')
        list_ = 'openstack aggregate isolation list'
        self.show('tools/isolation/list.txt', list_, 'echo $?')
        self.show('tools/isolation/document.txt', f'{list_} --faults -f json')
        sync = 'openstack aggregate isolation sync'
        self.show(
            'tools/isolation/sync.txt',
            f'{sync} --dry-run',
            'echo $?',
            sync,
            list_,
        )


class RunbookTestCase(SamplesTestCase):
    @samples.compares(
        'runbook/misplaced.txt',
        'runbook/moved.txt',
        'runbook/empty.txt',
        'runbook/used.txt',
        'runbook/group.txt',
        'runbook/no_valid_host.txt',
    )
    def test_the_page(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        small = self.small()
        windows = self._create_flavor(
            name='windows',
            vcpu=1,
            memory_mb=512,
            disk=1,
            ephemeral=0,
            extra_spec={f'trait:{TRAIT}': 'required'},
        )
        self._create_trait(TRAIT)
        web = self.boot(flavor=small, host='host1', name='web-1')
        self.require('windows', ['host1'], TRAIT)
        self.show(
            'runbook/misplaced.txt', 'nova-ext-sched audit --where', 'echo $?'
        )
        self.admin_api.post_server_action(
            web['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_server_parameter(
            web, {'OS-EXT-SRV-ATTR:host': 'host2', 'status': 'ACTIVE'}
        )
        self.show('runbook/moved.txt', 'nova-ext-sched audit', 'echo $?')

        self.assertNoValidHost(flavor=windows)
        self.show(
            'runbook/empty.txt',
            'nova-ext-sched explain --flavor windows',
            'openstack aggregate isolation list --faults',
            'openstack aggregate isolation sync windows',
        )
        self.show(
            'runbook/used.txt', 'nova-ext-sched explain --flavor windows'
        )

        group = self.api.post_server_groups(
            {'name': 'db', 'policy': 'anti-affinity'}
        )
        hints = {'group': group['id']}
        for number in (1, 2):
            self.boot(flavor=small, hints=hints, name=f'db-{number}')
        server = self.assertNoValidHost(flavor=small, hints=hints, name='db-3')
        self.show(
            'runbook/group.txt',
            f'nova-ext-sched explain --server {server["id"]}',
        )

        large = self._create_flavor(
            name='large', vcpu=4, memory_mb=7400, disk=10, ephemeral=0
        )
        server = self.assertNoValidHost(flavor=large, name='erp')
        self.show(
            'runbook/no_valid_host.txt',
            f'nova-ext-sched explain --server {server["id"]}',
        )
