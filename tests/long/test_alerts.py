# SPDX-License-Identifier: Apache-2.0

"""Each alert fires when it should, and is silent when it should be.

What watch exports and what runs with --metrics write, minute after minute, is
fed to Prometheus' rules.
"""

import math
import pathlib
import re

import ddt
import fixtures
from prometheus_client import parser
import testtools
import yaml

from nova_ext_sched.cli import base
from nova_ext_sched.cli import metrics as run_metrics
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.watch import metrics
from tests import documentation
from tests import promtool
from tests import shell

ETC = documentation.ROOT / 'etc' / 'nova-ext-sched'
FILES = sorted(ETC.glob('alerts*.yaml'))
MINUTES = 330


class Run:
    """A command that counts: audit, capacity or survive."""

    def __init__(self, folder, name, figure, label):
        self.path = folder / f'{name}.prom'
        self.path.unlink(missing_ok=True)
        self.name, self.figure = name, (figure, 'x', label)

    def count(self, values):
        """Run it; None for values that it cannot read."""
        run_metrics.write(
            self.path,
            self.name,
            base.FAULT if values is None else base.FINE,
            lambda: [run_metrics.Figure(*self.figure, values)],
        )

    def collect(self):
        if self.path.exists():
            yield from parser.text_string_to_metric_families(
                self.path.read_text()
            )


class Cloud:
    """What watch and the timers do in a minute, without faults."""

    def __init__(self, folder):
        self.metrics = metrics.Metrics()
        self.auditing = Run(folder, 'audit', 'policy_violations', 'policy')
        self.counting = Run(folder, 'capacity', 'capacity_servers', 'flavor')
        self.failing = Run(folder, 'survive', 'failures', 'survived')
        self.holding = Run(folder, 'kept', 'failover_hosts', 'state')
        self.lacking = Run(folder, 'lack', 'failover_hosts_lacking', '')

    def collect(self):
        """Yield what Prometheus reads."""
        yield from self.metrics.registry.collect()
        yield from self.auditing.collect()
        yield from self.counting.collect()
        yield from self.failing.collect()
        yield from self.holding.collect()
        yield from self.lacking.collect()

    def work(self, minute):
        self.look()
        self.audit(minute)
        self.count(minute)
        self.fail(minute)
        self.hold(minute)

    def look(self, cells=('cell0', 'cell1')):
        self.cells(cells)
        self.metrics.worked()

    def cells(self, answering):
        """Note that cells were read, by names that are UUIDs here."""
        cells = {'cell0', 'cell1'}
        self.metrics.looked_at(
            {cell: cell for cell in cells}, cells - {*answering}
        )

    def audit(self, minute, violations=0, policy='isolation'):
        """Count violations once an hour, None for what cannot be read."""
        if minute % 60 == 0:
            self.auditing.count(
                violations
                if violations is None
                else {policy: violations, 'blazar': 0}
            )

    def count(self, minute, servers=10):
        """Note how many servers fit, None for what nobody knows."""
        if minute % 15 == 0:
            self.counting.count(
                servers
                if servers is None
                else {'large': math.inf, 'small': servers}
            )

    def fail(self, minute, bad=0):
        """Note once an hour how many hosts can fail."""
        if minute % 60 == 0:
            self.failing.count({'yes': 44 - bad, 'no': bad})

    def hold(self, minute, used=0, lacking=0):
        """Note once an hour the hosts that are kept for failures."""
        if minute % 60 == 0:
            self.holding.count({'free': 3 - used, 'in use': used})
            self.lacking.count({(): lacking})

    def refuse(self, number, constraint='isolation'):
        self.metrics.refusals.labels('boot', constraint).inc(number)


def nothing_is_wrong(cloud, minute):
    cloud.work(minute)


def burst(number):
    def work(cloud, minute):
        cloud.work(minute)
        if minute == 60:
            # The first of their series.
            cloud.refuse(number)

    return work


def slow(cloud, minute):
    """Twenty in fifteen minutes, and of two constraints."""
    cloud.work(minute)
    cloud.refuse(1)
    cloud.refuse(1, 'VCPU')


def waiting(last):
    def work(cloud, minute):
        cloud.work(minute)
        cloud.metrics.waiting.set(60 <= minute <= last)

    return work


def unread(last):
    def work(cloud, minute):
        is_away = 60 <= minute <= last
        cloud.look(['cell0'] if is_away else ['cell0', 'cell1'])
        cloud.metrics.unread.set(is_away)
        cloud.audit(minute)

    return work


def dead(last):
    def work(cloud, minute):
        if 60 <= minute <= last:
            return False
        cloud.work(minute)

    return work


def still(last):
    """The disk is full: cells are read, and nothing can be recorded."""

    def work(cloud, minute):
        if 60 <= minute <= last:
            cloud.cells(['cell0', 'cell1'])
        else:
            cloud.look()
        cloud.audit(minute)

    return work


def never_looks(cloud, minute):
    cloud.cells([])


def long_turn(cloud, minute):
    """Explanations take 20 minutes, and each is recorded."""
    if 60 <= minute <= 80:
        cloud.metrics.worked()
    else:
        cloud.look()
    cloud.audit(minute)


def violations(last, policy='isolation'):
    def work(cloud, minute):
        cloud.look()
        cloud.audit(minute, 3 if 60 <= minute <= last else 0, policy)

    return work


def few(last):
    def work(cloud, minute):
        cloud.look()
        cloud.count(minute, 9 if 60 <= minute <= last else 10)

    return work


def cannot_fail(last):
    def work(cloud, minute):
        cloud.look()
        cloud.fail(minute, 3 if 60 <= minute <= last else 0)

    return work


def held(last, **counts):
    def work(cloud, minute):
        cloud.look()
        cloud.hold(minute, **counts if 60 <= minute <= last else {})

    return work


def failing(first, last=MINUTES):
    """Audits cannot read a cell; capacity is counted all the time."""

    def work(cloud, minute):
        cloud.look()
        cloud.audit(minute, None if first <= minute <= last else 0)
        cloud.count(minute)

    return work


def no_timer(first):
    """Nothing counts any more."""

    def work(cloud, minute):
        cloud.look()
        if minute < first:
            cloud.count(minute)

    return work


#: For each alert, when it fires, and when it is silent.
CASES = {
    'NovaRefusesManyRequests': ([burst(200)], [burst(20), slow]),
    'NovaRefusalsNotRecorded': (
        [waiting(80), unread(80)],
        [waiting(70), unread(70)],
    ),
    'NovaCellIsNotRead': ([unread(100)], [unread(80), long_turn]),
    'NovaExtSchedWatchIsDead': ([dead(90)], [dead(65), dead(0)]),
    'NovaExtSchedWatchStalled': (
        [still(100), never_looks],
        [still(70), long_turn, dead(90)],
    ),
    'ServersViolateAPolicy': (
        [violations(130)],
        [violations(61), violations(130, f'isolation{policies.BY_HINT}')],
    ),
    'FewServersFit': ([few(75)], [few(60), failing(60)]),
    'AHostCannotFail': ([cannot_fail(60)], [cannot_fail(0)]),
    'FailoverHostsLack': ([held(60, lacking=1)], [held(0, lacking=1)]),
    'FailoverHostIsNotFree': ([held(60, used=1)], [held(0, used=1)]),
    'NovaExtSchedMetricsAreStale': (
        [failing(60), failing(0), no_timer(60)],
        [failing(60, 179), failing(0, 1), no_timer(0)],
    ),
}


@ddt.ddt
class AlertsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def series(self, work):
        """Return the values of each series, minute after minute.

        :param work: called with a cloud and the minute; returns False where
            there is no process
        """
        clock = [0.0]
        self.useFixture(fixtures.MonkeyPatch('time.time', lambda: clock[0]))
        cloud = Cloud(self.folder)
        found = {}
        for minute in range(MINUTES):
            clock[0] = minute * 60.0
            if work(cloud, minute) is False:
                continue
            for family in cloud.collect():
                for one in family.samples:
                    if one.name.startswith('nova_ext_sched'):
                        labels = {**one.labels, 'job': 'j', 'instance': 'i'}
                        text = ','.join(
                            f'{k}="{v}"' for k, v in labels.items()
                        )
                        values = found.setdefault(f'{one.name}{{{text}}}', {})
                        values[minute] = one.value
        return [
            {
                'series': name,
                'values': ' '.join(
                    str(values.get(minute, 'stale'))
                    for minute in range(MINUTES)
                ),
            }
            for name, values in found.items()
        ]

    def assertFires(self, work, expected):
        """Let promtool count in how many minutes each alert fires."""
        names = [*CASES] if work is nothing_is_wrong else [*expected]
        tests = {
            'rule_files': [str(ETC / 'alerts.yaml')],
            'evaluation_interval': '1m',
            'tests': [
                {
                    'interval': '1m',
                    'input_series': self.series(work),
                    'promql_expr_test': [
                        {
                            'expr': (
                                'count(max_over_time(ALERTS{alertname='
                                f'"{name}",alertstate="firing"}}[{MINUTES}m])'
                                ') > bool 0 or vector(0)'
                            ),
                            'eval_time': f'{MINUTES - 1}m',
                            'exp_samples': [
                                {
                                    'labels': '{}',
                                    'value': expected.get(name, 0),
                                }
                            ],
                        }
                        for name in names
                    ],
                }
            ],
        }
        path = self.folder / 'tests.yaml'
        path.write_text(yaml.safe_dump(tests, width=10**6))
        promtool.run(self, 'test', 'rules', path)

    def test_nothing_is_wrong(self):
        self.assertFires(nothing_is_wrong, {})

    @ddt.data(*CASES)
    def test_alert(self, name):
        for fires, works in enumerate(reversed(CASES[name])):
            for work in works:
                self.assertFires(work, {name: fires})

    def test_each_has_a_case(self):
        [group] = yaml.safe_load((ETC / 'alerts.yaml').read_text())['groups']
        self.assertEqual([*CASES], [one['alert'] for one in group['rules']])

    def test_commands_name_hosts(self):
        """Those with most servers; any, where no host is known."""
        most = {f'cmp-{number}': number for number in range(1, 6)}
        for name, metric, of_host, label, said in (
            ('ServersViolateAPolicy', 'policy_violations', 'host_violations',
             'policy="isolation"', 'nova-ext-sched audit --policy isolation'
             '{}, which lists'),
            ('AHostCannotFail', 'failures', 'unsafe_servers', 'survived="no"',
             'nova-ext-sched survive{}, which names'),
        ):  # fmt: skip
            option = ' --host ' if name.startswith('Servers') else ' '
            for hosts, shown in (
                ({}, ''),
                (most, f'{option}'.join(['', 'cmp-5', 'cmp-4', 'cmp-3'])),
            ):
                series = {f'nova_ext_sched_{metric}{{{label}}}': 3}
                for host, number in hosts.items():
                    key = f'nova_ext_sched_{of_host}{{host="{host}"}}'
                    series[key] = number
                text = self.describe(name, series)
                self.assertIn(said.format(shown), text)

    def test_pasted_commands(self):
        """Names that anybody may give are in no command."""
        paste = self.useFixture(shell.Shell()).paste
        hostile = '$(touch x); touch y'
        for name, metric, labels, words in (
            ('NovaRefusesManyRequests', 'refusals_total',
             f'operation="boot",constraint="{hostile}"',
             ['explain', '--recorded']),
            ('FewServersFit', 'capacity_servers', f'flavor="{hostile}"',
             ['capacity']),
            ('ServersViolateAPolicy', 'policy_violations',
             f'policy="isolation",file="{hostile}"',
             ['audit', '--policy', 'isolation']),
            ('AHostCannotFail', 'failures',
             f'survived="no",file="{hostile}"', ['survive']),
        ):  # fmt: skip
            series = {f'nova_ext_sched_{metric}{{{labels}}}': 3}
            if name == 'NovaRefusesManyRequests':
                # More of them each minute.
                series = {one: '0+10' for one in series}
            text = self.describe(name, series)
            commands = re.findall(r'[Rr]un (nova-ext-sched[^,.]*)', text)
            self.assertNotEqual([], commands, text)
            for command in commands:
                self.assertEqual(words, paste(command)[: len(words)], text)

    def describe(self, name, series):
        """Return what promtool finds in the place of no alert."""
        tests = {
            'rule_files': [str(ETC / 'alerts.yaml')],
            'tests': [
                {
                    'interval': '1m',
                    'input_series': [
                        {'series': one, 'values': f'{number}x200'}
                        for one, number in series.items()
                    ],
                    'alert_rule_test': [
                        {'alertname': name, 'eval_time': '100m'}
                    ],
                }
            ],
        }
        path = self.folder / 'tests.yaml'
        path.write_text(yaml.safe_dump(tests, width=10**6))
        return promtool.run(self, 'test', 'rules', path, status=1)

    def test_prometheus_takes_the_rules(self):
        for path in FILES:
            # Loki has the rules on the log.
            if path.name != 'alerts-log.yaml':
                text = promtool.run(self, 'check', 'rules', path)
                self.assertIn('SUCCESS', text)
