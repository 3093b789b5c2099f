# SPDX-License-Identifier: Apache-2.0

"""The files for Prometheus and Grafana name metrics that there are."""

import configparser
import json
import pathlib
import re
import shutil
import subprocess
import sys

import fixtures
import prometheus_client
from prometheus_client import parser
import testtools
import yaml

from nova_ext_sched.cmd.watch import command
from nova_ext_sched.cmd.watch import metrics
from tests import documentation

ETC = pathlib.Path(__file__).parents[4] / 'etc' / 'nova-ext-sched'
METRIC = re.compile(r'nova_ext_sched_\w+')


class MetricsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.metrics = metrics.Metrics()
        self.metrics.refusals.labels('boot', 'isolation').inc()
        self.metrics.unexplained.labels('limit').inc()
        self.metrics.explanations.observe(0.2)
        self.metrics.audit_done({'isolation': 2})

    def read(self):
        """Return what Prometheus reads, by name."""
        text = prometheus_client.generate_latest(self.metrics.registry)
        families = parser.text_string_to_metric_families(text.decode())
        return {
            sample.name: sample
            for family in families
            for sample in family.samples
        }

    def test_prometheus_reads_them(self):
        found = self.read()
        sample = found['nova_ext_sched_refusals_total']
        self.assertEqual(
            ({'operation': 'boot', 'constraint': 'isolation'}, 1),
            (sample.labels, sample.value),
        )
        self.assertEqual(2, found['nova_ext_sched_policy_violations'].value)
        self.assertGreater(
            found['nova_ext_sched_audit_timestamp_seconds'].value, 1.7e9
        )

    def test_the_page_names_all_of_them(self):
        page = documentation.ROOT / 'doc' / 'source' / 'tools' / 'watch.rst'
        histogram = 'nova_ext_sched_explanation_duration_seconds'
        self.assertEqual(
            {
                name
                for name in self.read()
                if not name.startswith(histogram)
                and not name.endswith('_created')
            }
            | {histogram},
            set(METRIC.findall(page.read_text())),
        )

    def test_files_name_metrics_that_there_are(self):
        known = set(self.read())
        rules = yaml.safe_load((ETC / 'alerts.yaml').read_text())
        expressions = [
            rule['expr']
            for group in rules['groups']
            for rule in group['rules']
        ]
        self.assertEqual(3, len(expressions))
        dashboard = json.loads((ETC / 'dashboard.json').read_text())
        expressions += [
            target['expr']
            for panel in dashboard['panels']
            for target in panel['targets']
        ]
        named = set(METRIC.findall(' '.join(expressions)))
        self.assertEqual(set(), named - known)

    def test_prometheus_takes_the_rules(self):
        done = self.run_tool(
            'promtool', 'check', 'rules', str(ETC / 'alerts.yaml')
        )
        self.assertIn('SUCCESS: 3 rules found', done.stdout)

    def test_systemd_takes_the_unit(self):
        """With a program that there is in the place of the command."""
        name = 'nova-ext-sched-watch.service'
        unit = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / name
        unit.write_text(
            (ETC / name)
            .read_text()
            .replace('/usr/local/bin/nova-ext-sched', sys.executable)
        )
        done = self.run_tool(
            'systemd-analyze', 'verify', '--man=no', str(unit)
        )
        self.assertEqual('', done.stdout + done.stderr)

    def run_tool(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f'{command[0]} is not installed')
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done

    def test_the_unit_of_systemd_starts_the_command(self):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(ETC / 'nova-ext-sched-watch.service')
        _, name, *arguments = unit['Service']['ExecStart'].split()
        self.assertEqual('watch', name)
        parsed = (
            command.Watch(None, None).get_parser('watch').parse_args(arguments)
        )
        self.assertEqual(9653, parsed.metrics_port)
