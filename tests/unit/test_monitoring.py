# SPDX-License-Identifier: Apache-2.0

"""The files for Prometheus, Grafana and systemd fit the commands."""

import configparser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import types
import typing
from unittest import mock

import ddt
import fixtures
from prometheus_client import parser
import testtools
import yaml

from nova_ext_sched.cli import metrics as run_metrics
from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import capacity_report
from nova_ext_sched.cmd import survive
from nova_ext_sched.cmd import watch
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.watch import metrics
from tests import documentation
from tests.unit.cmd import plan_cases

ETC = documentation.ROOT / 'etc' / 'nova-ext-sched'
METRIC = re.compile(r'nova_ext_sched_\w+')
SAFE = re.compile(
    r'{{ (range [^}]*|end|\.Labels\.host|\$labels\.(command|policy)) }}'
)
COMMANDS = {
    'audit': audit.Audit,
    'capacity': capacity.Capacity,
    'survive': survive.Survive,
    'watch': watch.Watch,
}


class Metric(typing.NamedTuple):
    """What Prometheus reads.

    :ivar type: ``counter``, ``gauge`` or ``histogram``
    """

    type: str
    labels: set[str]


#: Those that Prometheus gives to each.
OF_ALL = {'__name__', 'instance', 'job'}


def of_watch():
    """Return the metrics of watch, by name."""
    found = metrics.Metrics()
    found.worked()
    found.looked_at({'uuid': 'cell1'}, ())
    found.refusals.labels('boot', 'x')
    found.unexplained.labels('x')
    return {
        one.name: Metric(family.type, {*one.labels})
        for family in found.registry.collect()
        for one in family.samples
        if METRIC.match(one.name)
    }


def of_runs():
    """Return the metrics of what commands write with ``--metrics``."""
    auditing, counting, failing = (
        COMMANDS[name](None, None) for name in ('audit', 'capacity', 'survive')
    )
    auditing._totals = mock.Mock(
        policies={'isolation': 1},
        by_host={'host1': 1},
        in_use={'host1': 1},
        lacking=[],
        kept={'free': 1},
    )
    room = {'unlimited': False, 'servers': 1}
    group = types.SimpleNamespace(name='', **room)
    flavor = types.SimpleNamespace(name='x', groups=[group], **room)
    stuck = plan_cases.make_stuck(1, cause='VCPU')
    failures = [plans.Failure('host1', ['host1'], [], [stuck])]
    failing._outcome = plans.Outcome(failures, [], [], [], [])
    runs = [('audit', auditing), ('survive', failing)]
    runs += [('capacity', counting)] * (1 + len(capacity_report.GROUPS))
    kinds = [None, *capacity_report.GROUPS]
    found = {}
    with fixtures.TempDir() as folder:
        for name, command in runs:
            path = pathlib.Path(folder.path) / f'{name}.prom'
            if command is counting:
                tally = types.SimpleNamespace(by=kinds.pop(), flavors=[flavor])
                counting._found = tally
            run_metrics.write(path, name, 0, command.measure)
            families = parser.text_string_to_metric_families(path.read_text())
            for family in families:
                for one in family.samples:
                    found[one.name] = Metric(family.type, {*one.labels})
    return found


DASHBOARD = json.loads((ETC / 'dashboard.json').read_text())


def panels():
    """Yield all panels but rows, those that a row hides too."""
    for panel in DASHBOARD['panels']:
        yield from panel.get('panels', ())
        if panel['type'] != 'row':
            yield panel


def first_row():
    """Return the panels that are seen first."""
    return [panel for panel in panels() if panel['gridPos']['y'] == 0]


def shown():
    """Yield expression and legend of each line that a panel shows."""
    for panel in panels():
        for target in panel['targets']:
            yield target['expr'], target['legendFormat']


def all_rules(files='alerts*.yaml'):
    """Yield the alerting rules, those on the log too."""
    for path in ETC.glob(files):
        for group in yaml.safe_load(path.read_text())['groups']:
            yield from group['rules']


def rules():
    """Return the alerting rules on metrics."""
    return [one for one in all_rules() if 'count_over_time' not in one['expr']]


def names(expression):
    return set(METRIC.findall(expression))


class MetricsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.metrics = of_watch() | of_runs()

    def labels(self, text):
        """Return the labels of the metrics that a text names."""
        return set().union(*(self.metrics[one].labels for one in names(text)))

    def test_a_panel_shows_each(self):
        """Of a histogram the buckets, of which Grafana makes percentiles."""
        parts = ('_count', '_sum')
        wanted = {name for name in self.metrics if not name.endswith(parts)}
        seen = set().union(*(names(expression) for expression, _ in shown()))
        self.assertEqual(set(), wanted - seen)

    def test_expressions(self):
        """Names, labels, and what is asked of each type."""
        texts = [expression for expression, _ in shown()]
        texts += [rule['expr'] for rule in rules()]
        for text in texts:
            self.assertEqual(set(), names(text) - {*self.metrics}, text)
            grouped = re.findall(r'\b(?:by|on) \(([^)]*)\)', text)
            used = {*re.findall(r'\w+', ' '.join(grouped))}
            self.assertEqual(set(), used - self.labels(text) - OF_ALL, text)
            for name, matched in re.findall(r'(\w+)\{([^}]*)\}', text):
                used = {*re.findall(r'(\w+)[!=]', matched)}
                self.assertEqual(set(), used - self.labels(name), text)
            rated = re.findall(
                r'(?:rate|increase)\((\w+)[^)]*\[\d+[mh]\]', text
            )
            for name in names(text):
                is_rated = name in rated
                grows = self.metrics[name].type != 'gauge'
                self.assertEqual(grows, is_rated, (name, text))
                if self.metrics[name].type == 'histogram':
                    self.assertIn('histogram_quantile(', text)
                    self.assertIn('by (le)', text)

    def test_legends(self):
        """Each names labels that are left of its series."""
        for text, legend in shown():
            labels = self.labels(text)
            if re.search('sum|min|max', text):
                labels = set(re.findall(r'by \((\w+)\)', text))
            used = set(re.findall(r'\{\{(\w+)\}\}', legend))
            self.assertEqual(set(), used - labels - OF_ALL, text)

    def test_variables(self):
        """Each is asked of a metric with that label, and used."""
        variables = {
            one['name']: one for one in DASHBOARD['templating']['list']
        }
        text = json.dumps(DASHBOARD['panels'])
        self.assertEqual(set(variables), {*re.findall(r'\$\{?(\w+)', text)})
        for name in ('cell', 'flavor'):
            query = variables[name]['query']
            metric, label = re.findall(r'\((\w+), (\w+)\)', query)[0]
            self.assertEqual(name, label)
            self.assertIn(label, self.metrics[metric].labels)

    def test_what_is_red_is_what_fires(self):
        """Each threshold is the number of an alert."""
        fires = {
            (name, number)
            for rule in rules()
            for name in names(rule['expr'])
            for number in re.findall(r'[<>] (\d+)', rule['expr'])
        }
        for title, bound in (
            ('Servers that violate', '0'),
            ('Hosts, or failure domains', '0'),
            ('Age of the oldest', '7200'),
            ('Room by flavor', '10'),
        ):
            [panel] = [
                one for one in first_row() if one['title'].startswith(title)
            ]
            steps = panel['fieldConfig']['defaults']['thresholds']['steps']
            [expression] = [target['expr'] for target in panel['targets']]
            [name] = names(expression)
            self.assertIn((name, bound), fires)
            # More than none is one.
            self.assertEqual(int(bound) or 1, steps[-1]['value'])

    def test_the_page_names_those_of_runs(self):
        page = documentation.ROOT / 'doc/source/admin/monitoring.rst'
        self.assertEqual({*of_runs()}, names(page.read_text()))

    def test_each_panel_says_what_it_shows(self):
        for panel in panels():
            text = panel.get('description', '')
            self.assertRegex(text, r'^[A-Z].{40,}\.$', panel['title'])

    def test_no_command_has_a_name_that_somebody_gave(self):
        """An alert is pasted by people, and labels are not quoted."""
        for rule in all_rules():
            text = ' '.join(rule['annotations'].values())
            # Names of code, and of hosts, which nova wants to be hostnames.
            text = SAFE.sub('', text)
            for command in re.findall(r'[Rr]un (nova-ext-sched[^,.]*)', text):
                self.assertNotIn('{{', command)

    def test_panels_do_not_overlap(self):
        """Neither those that are seen at once nor those that a row hides."""
        for together in (
            DASHBOARD['panels'],
            *(panel.get('panels', ()) for panel in DASHBOARD['panels']),
        ):
            places = [
                (panel['gridPos']['x'] + x, panel['gridPos']['y'] + y)
                for panel in together
                for x in range(panel['gridPos']['w'])
                for y in range(panel['gridPos']['h'])
            ]
            self.assertEqual(len(set(places)), len(places))
            self.assertTrue(all(x < 24 for x, _ in places))

    def test_ids_are_different(self):
        every = [*panels(), *DASHBOARD['panels']]
        ids = {id(panel): panel['id'] for panel in every}
        self.assertEqual(len(set(ids.values())), len(ids))


class LinksTestCase(testtools.TestCase):
    """What alerts and figures link to stands in the runbook."""

    ADDRESS = 'https://docs.example/nova-ext-sched'

    def setUp(self):
        super().setUp()
        page = documentation.ROOT / 'doc/source/admin/runbook.rst'
        titles = re.findall(r'^(.+)\n===+$', page.read_text(), re.MULTILINE)
        # As docutils makes them.
        self.anchors = {
            re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')
            for title in titles
        }

    def test_of_alerts(self):
        for rule in all_rules():
            url = rule['annotations']['runbook_url']
            self.check(url, f'{self.ADDRESS}/admin/runbook.html#')

    def test_of_figures(self):
        """The first row has a link at each, and the dashboard one."""
        [address] = [
            one['query']
            for one in DASHBOARD['templating']['list']
            if one['name'] == 'docs'
        ]
        self.assertEqual(self.ADDRESS, address)
        page = '${docs}/admin/runbook.html'
        self.assertEqual([page], [one['url'] for one in DASHBOARD['links']])
        for panel in first_row():
            [link] = panel['links']
            self.check(link['url'], f'{page}#')

    def check(self, url, page):
        self.assertTrue(url.startswith(page), url)
        self.assertIn(url.removeprefix(page), self.anchors)


@ddt.ddt
class UnitsTestCase(testtools.TestCase):
    def test_each_is_installed(self):
        setup = configparser.ConfigParser()
        setup.read(documentation.ROOT / 'setup.cfg')
        installed = setup['files']['data_files'].split()[2:]
        there = {f'etc/nova-ext-sched/{path.name}' for path in ETC.iterdir()}
        there.remove('etc/nova-ext-sched/config-generator.conf')
        self.assertEqual(sorted(there), sorted(installed))

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
        paths = [folder / unit.name for unit in units]
        done = subprocess.run(
            ['systemd-analyze', 'verify', '--man=no', *paths],
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
        text = (ETC / f'nova-ext-sched-{name}.service').read_text()
        for more in re.findall(r'^#.*\badd (--\S+ \S+)', text, re.MULTILINE):
            parser.parse_args([*arguments, *more.split()])
        if name == 'watch':
            self.assertEqual(9653, parsed.metrics_port)
        else:
            self.assertIn(str(parsed.metrics.parent), unit['ReadWritePaths'])
            self.assertEqual('3', unit['SuccessExitStatus'])
            self.assertTrue((ETC / f'nova-ext-sched-{name}.timer').exists())

    def test_one_page_of_several_commands(self):
        text = (ETC / 'nova-ext-sched-page.service').read_text()
        commands = re.findall('^ExecStart=(.+)', text, re.MULTILINE)
        files = []
        for line in commands[:-1]:
            # A fault is told on the page, and the others go on.
            program, name, *arguments = line.split()
            self.assertEqual('-/usr/local/bin/nova-ext-sched', program)
            parser = COMMANDS[name](None, None).get_parser(name)
            parsed = parser.parse_args(arguments)
            files.append((name, parsed.html, parsed.html_add))
        page = pathlib.Path('next.html')
        others = [(name, None, page) for name in ('capacity', 'survive')]
        self.assertEqual([('audit', page, None), *others], files)
        self.assertEqual(f'/bin/mv {page} page.html', commands[-1])
        self.assertTrue((ETC / 'nova-ext-sched-page.timer').exists())

    @staticmethod
    def read(name):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(ETC / name)
        return unit['Service']
