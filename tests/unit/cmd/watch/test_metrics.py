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
from tests import promtool

ETC = pathlib.Path(__file__).parents[4] / 'etc' / 'nova-ext-sched'
METRIC = re.compile(r'nova_ext_sched_\w+')
HISTOGRAMS = (
    'nova_ext_sched_explanation_duration_seconds',
    'nova_ext_sched_record_delay_seconds',
)
# Of histograms.
PARTS = ('_count', '_sum')


class MetricsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.metrics = metrics.Metrics()

    def fill(self):
        """Let every metric have a value."""
        self.metrics.refusals.labels('boot', 'isolation').inc()
        self.metrics.unexplained.labels('limit').inc()
        self.metrics.explanations.observe(0.2)
        self.metrics.looked_at(['cell1'], ['cell1'])
        self.metrics.worked()
        self.metrics.show(self.metrics.audit_interval, 3600)
        self.metrics.audit_done({'isolation': 2})
        self.metrics.delay.observe(7)
        self.metrics.capacity_interval.labels('small', '').set(900)
        self.metrics.capacity_counted('small', '', 3)

    def read(self):
        """Return what Prometheus reads, by name."""
        text = prometheus_client.generate_latest(self.metrics.registry)
        families = parser.text_string_to_metric_families(text.decode())
        return {
            sample.name: sample
            for family in families
            for sample in family.samples
        }

    def ours(self):
        return {name for name in self.read() if METRIC.match(name)}

    def test_prometheus_reads_them(self):
        self.fill()
        found = self.read()
        sample = found['nova_ext_sched_refusals_total']
        self.assertEqual(
            ({'operation': 'boot', 'constraint': 'isolation'}, 1),
            (sample.labels, sample.value),
        )
        self.assertEqual(2, found['nova_ext_sched_policy_violations'].value)
        for name in ('audit', 'look', 'cell_look', 'capacity'):
            sample = found[f'nova_ext_sched_{name}_timestamp_seconds']
            self.assertGreater(sample.value, 1.7e9)

    def test_what_is_not_known_is_not_there(self):
        """An audit that never ran is not 56 years old."""
        self.assertEqual(
            {
                'nova_ext_sched_refusals_waiting',
                'nova_ext_sched_cells_unread',
                'nova_ext_sched_options_old',
                *(
                    f'{histogram}_{name}'
                    for histogram in HISTOGRAMS
                    for name in ('bucket', 'count', 'sum')
                ),
            },
            self.ours(),
        )

    def test_what_is_known_begins_with_0(self):
        """An alert on an increase does not see the first of a new series."""
        self.metrics.looked_at(['cell1'], [])
        self.assertEqual(
            0, self.read()['nova_ext_sched_cells_set_back_total'].value
        )

    def test_a_flavor_that_is_gone(self):
        """When it was counted last is known."""
        self.metrics.capacity_unknown('small', '')
        self.metrics.capacity_counted('small', '', 3)
        self.metrics.capacity_unknown('small', '')
        self.assertNotIn('nova_ext_sched_capacity_servers', self.read())
        self.assertIn('nova_ext_sched_capacity_timestamp_seconds', self.read())

    def test_a_cell_that_is_gone(self):
        self.metrics.looked_at(['cell1', 'cell2'], ['cell1', 'cell2'])
        self.metrics.looked_at(['cell2'], [])
        for name in ('look_timestamp_seconds', 'set_back_total'):
            for cell, expected in (('cell1', False), ('cell2', True)):
                prefix = 'cell' if name.startswith('look') else 'cells'
                value = self.metrics.registry.get_sample_value(
                    f'nova_ext_sched_{prefix}_{name}', {'cell': cell}
                )
                self.assertEqual(expected, value is not None)
        self.metrics.looked_at(['cell1'], ['cell1'])

    def test_the_usual_ones_of_a_process(self):
        self.fill()
        found = self.read()
        for name in (
            'process_resident_memory_bytes',
            'process_cpu_seconds_total',
            'process_start_time_seconds',
            'python_info',
            'python_gc_collections_total',
        ):
            self.assertIn(name, found)
        self.assertEqual(
            [], [name for name in found if name.endswith('_created')]
        )

    def test_the_page_names_all_of_them(self):
        self.fill()
        page = documentation.ROOT / 'doc' / 'source' / 'tools' / 'watch.rst'
        self.assertEqual(
            {name for name in self.ours() if not name.startswith(HISTOGRAMS)}
            | {*HISTOGRAMS},
            set(METRIC.findall(page.read_text())),
        )

    def test_a_panel_shows_each_of_them(self):
        """Of a histogram the buckets, of which Grafana makes percentiles."""
        self.fill()
        shown = {
            name
            for panel in self.panels()
            for target in panel['targets']
            for name in METRIC.findall(target['expr'])
        }
        self.assertEqual(
            set(),
            {name for name in self.ours() if not name.endswith(PARTS)} - shown,
        )

    def test_panels_do_not_overlap(self):
        places = [
            (panel['gridPos']['x'] + x, panel['gridPos']['y'] + y)
            for panel in self.panels()
            for x in range(panel['gridPos']['w'])
            for y in range(panel['gridPos']['h'])
        ]
        self.assertEqual(len(set(places)), len(places))
        self.assertLess(max(x for x, _ in places), 24)

    @staticmethod
    def panels():
        return json.loads((ETC / 'dashboard.json').read_text())['panels']

    def test_files_name_metrics_that_there_are(self):
        self.fill()
        rules = yaml.safe_load((ETC / 'alerts.yaml').read_text())
        expressions = [
            rule['expr']
            for group in rules['groups']
            for rule in group['rules']
        ]
        expressions += [
            target['expr']
            for panel in self.panels()
            for target in panel['targets']
        ]
        named = set(METRIC.findall(' '.join(expressions)))
        self.assertEqual(set(), named - self.ours())

    def test_prometheus_takes_the_metrics(self):
        self.fill()
        self.assertEqual(
            '',
            promtool.run(
                self,
                'check',
                'metrics',
                input=prometheus_client.generate_latest(self.metrics.registry),
            ),
        )

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
