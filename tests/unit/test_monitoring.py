# SPDX-License-Identifier: Apache-2.0

"""The files for Prometheus, Grafana and systemd fit the commands."""

import configparser
import json
import pathlib
import re
import shutil
import subprocess
import sys

import ddt
import fixtures
import testtools
import yaml

from nova_ext_sched.cmd.audit import command as audit
from nova_ext_sched.cmd.capacity import command as capacity
from nova_ext_sched.cmd.watch import command as watch
from nova_ext_sched.watch import metrics
from tests import documentation

ETC = documentation.ROOT / 'etc' / 'nova-ext-sched'
METRIC = re.compile(r'nova_ext_sched_\w+')
#: What --metrics writes; the functional tests of the commands see it.
OF_RUNS = {
    'nova_ext_sched_capacity_servers',
    'nova_ext_sched_exit_status',
    'nova_ext_sched_failures',
    'nova_ext_sched_policy_violations',
    'nova_ext_sched_stranded_servers',
    'nova_ext_sched_success_timestamp_seconds',
}
COMMANDS = {
    'audit': audit.Audit,
    'capacity': capacity.Capacity,
    'watch': watch.Watch,
}


def of_watch():
    """Return the names of the metrics of watch."""
    found = metrics.Metrics()
    found.worked()
    names = set()
    for family in found.registry.collect():
        if METRIC.match(family.name):
            ends = {
                'counter': ['_total'],
                'histogram': ['_bucket', '_count', '_sum'],
            }.get(family.type, [''])
            names.update(f'{family.name}{end}' for end in ends)
    return names


def panels():
    return json.loads((ETC / 'dashboard.json').read_text())['panels']


def shown():
    """Return the names of the metrics of all panels."""
    return {
        name
        for panel in panels()
        for target in panel['targets']
        for name in METRIC.findall(target['expr'])
    }


class MetricsTestCase(testtools.TestCase):
    def test_a_panel_shows_each(self):
        """Of a histogram the buckets, of which Grafana makes percentiles."""
        wanted = {
            name
            for name in of_watch()
            if not name.endswith(('_count', '_sum'))
        }
        self.assertEqual(set(), (wanted | OF_RUNS) - shown())

    def test_files_name_metrics_that_there_are(self):
        named = shown()
        for path in ETC.glob('alerts*.yaml'):
            for group in yaml.safe_load(path.read_text())['groups']:
                for rule in group['rules']:
                    if 'count_over_time' not in rule['expr']:
                        named.update(METRIC.findall(rule['expr']))
        self.assertEqual(set(), named - of_watch() - OF_RUNS)

    def test_the_page_names_those_of_runs(self):
        page = (
            documentation.ROOT / 'doc' / 'source' / 'admin' / 'operating.rst'
        )
        self.assertEqual(OF_RUNS, set(METRIC.findall(page.read_text())))

    def test_panels_do_not_overlap(self):
        places = [
            (panel['gridPos']['x'] + x, panel['gridPos']['y'] + y)
            for panel in panels()
            for x in range(panel['gridPos']['w'])
            for y in range(panel['gridPos']['h'])
        ]
        self.assertEqual(len(set(places)), len(places))
        self.assertLess(max(x for x, _ in places), 24)


@ddt.ddt
class UnitsTestCase(testtools.TestCase):
    def test_each_is_installed(self):
        setup = configparser.ConfigParser()
        setup.read(documentation.ROOT / 'setup.cfg')
        installed = setup['files']['data_files'].split()[2:]
        self.assertEqual(
            sorted(
                f'etc/nova-ext-sched/{path.name}'
                for path in ETC.iterdir()
                if path.name != 'config-generator.conf'
            ),
            sorted(installed),
        )

    def test_systemd_takes_them(self):
        """With a program that there is in the place of the command."""
        if shutil.which('systemd-analyze') is None:
            self.skipTest('systemd-analyze is not installed')
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        units = [*ETC.glob('*.service'), *ETC.glob('*.timer')]
        for unit in units:
            text = unit.read_text()
            (folder / unit.name).write_text(
                text.replace('/usr/local/bin/nova-ext-sched', sys.executable)
            )
        done = subprocess.run(
            [
                'systemd-analyze',
                'verify',
                '--man=no',
                *(folder / unit.name for unit in units),
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual((0, ''), (done.returncode, done.stderr))

    @ddt.data(*COMMANDS)
    def test_the_command_takes_the_arguments(self, name):
        unit = self.read(f'nova-ext-sched-{name}.service')
        _, command, *arguments = unit['ExecStart'].split()
        self.assertEqual(name, command)
        parser = COMMANDS[name](None, None).get_parser(name)
        parsed = parser.parse_args(arguments)
        if name == 'watch':
            self.assertEqual(9653, parsed.metrics_port)
        else:
            self.assertIn(str(parsed.metrics.parent), unit['ReadWritePaths'])
            self.assertEqual('3', unit['SuccessExitStatus'])
            self.assertTrue((ETC / f'nova-ext-sched-{name}.timer').exists())

    @staticmethod
    def read(name):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(ETC / name)
        return unit['Service']
