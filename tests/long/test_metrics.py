# SPDX-License-Identifier: Apache-2.0

"""What --metrics writes of a real nova and placement."""

import os
import pathlib

import fixtures
from prometheus_client import parser

from tests import samples
from tests.functional import audits
from tests.functional import base
from tests.functional import capacity

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class MetricsTestCase(audits.AuditTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(folder)

    def run_command(self, name, path):
        """Run a command; return its exit status."""
        if name == 'audit':
            return self.run_audit('--summary', '--metrics', str(path))[0]
        return capacity.run('--metrics', str(path)).status

    def measure(self, name, status=0):
        """Run a command; return its exit status, last success and figures."""
        path = pathlib.Path(f'{name}.prom')
        self.assertEqual(status, self.run_command(name, path))
        text = path.read_text()
        found = {}
        for family in parser.text_string_to_metric_families(text):
            for one in family.samples:
                label = one.labels.get('policy') or one.labels.get('flavor')
                if label is None:
                    self.assertEqual(name, one.labels['command'])
                found[family.name, label] = one.value
        prefix = 'nova_ext_sched_'
        self.assertEqual(status, found.pop((f'{prefix}exit_status', None)))
        success = found.pop((f'{prefix}success_timestamp_seconds', None), None)
        return success, {
            (metric.removeprefix(prefix), label): value
            for (metric, label), value in found.items()
        }

    def no_cell(self, table):
        return base.table_away(self.cell_engine(), table)

    def flavors(self):
        """Replace nova's flavors by two, of which one fits on no host."""
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        return [
            self.flavor(name=name, vcpu=vcpu)
            for name, vcpu in (('small', 4), ('large', 400))
        ]

    def test_audit(self):
        self.boot(host='host1')
        # Of a first run that fails.
        with self.no_cell('instances'):
            self.assertEqual((None, {}), self.measure('audit', status=1))
        self.assertEqual(0, self.violations(0)[1])
        self.isolate('windows', ['host1'], TRAIT)
        success, number = self.violations(3)
        self.assertEqual(1, number)
        with self.no_cell('instances'):
            self.assertEqual((success, 1), self.violations(1))

    def violations(self, status):
        """Return the last success and the violations of isolation."""
        success, found = self.measure('audit', status)
        return success, found['policy_violations', 'isolation']

    def test_capacity(self):
        self.flavors()
        expected = {
            ('capacity_servers', one['name']): one['servers']
            for one in capacity.run('-f', 'json').flavors
        }
        success, found = self.measure('capacity')
        self.assertEqual(expected, found)
        self.assertEqual(0, found['capacity_servers', 'large'])
        # What is not read counts as nothing.
        with self.no_cell('compute_nodes'):
            self.assertEqual(
                (success, found), self.measure('capacity', status=1)
            )
        with fixtures.MonkeyPatch('nova_ext_sched.cmd.capacity.room.MOST', 1):
            _, found = self.measure('capacity')
        self.assertEqual(float('inf'), found['capacity_servers', 'small'])

    @samples.compares('cli/audit/metrics.txt', 'cli/capacity/metrics.txt')
    def test_the_page(self):
        samples.skip_other_releases(self)
        self.boot(flavor=self.flavors()[0], host='host1')
        self.isolate('windows', ['host1'], TRAIT)
        for name, metric in (
            ('audit', 'nova_ext_sched_policy_violations'),
            ('capacity', 'nova_ext_sched_capacity_servers'),
        ):
            path = pathlib.Path(f'nova-ext-sched-{name}.prom')
            self.run_command(name, path)
            lines = [
                line
                for line in path.read_text().splitlines()
                if line.startswith(metric)
            ]
            samples.check(
                self,
                f'cli/{name}/metrics.txt',
                '\n'.join([f'$ grep ^{metric} {path}', *lines, '']),
                width=120,
            )
