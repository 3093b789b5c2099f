# SPDX-License-Identifier: Apache-2.0

"""Each alert fires when it should, and is silent when it should be.

The watcher's own metrics, minute after minute, are fed to Prometheus' rules.
"""

import math
import pathlib

import ddt
import fixtures
import testtools
import yaml

from nova_ext_sched.cmd.watch import metrics
from tests import documentation
from tests import promtool

ETC = documentation.ROOT / 'etc' / 'nova-ext-sched'
FILES = sorted(ETC.glob('alerts*.yaml'))
MINUTES = 330


class Watcher:
    """What a watcher does in a minute, without faults."""

    def __init__(self):
        self.metrics = metrics.Metrics()
        for constraint in ('isolation', 'VCPU'):
            self.metrics.refusals.labels('boot', constraint)
        self.metrics.unexplained.labels('limit')
        self.metrics.show(self.metrics.audit_interval, 3600)
        for flavor in ('small', 'large'):
            self.metrics.capacity_interval.labels(flavor, '').set(1800)

    def work(self, minute):
        self.look()
        self.audit(minute)
        self.count(minute)

    def look(self, cells=('cell0', 'cell1')):
        self.metrics.looked_at(['cell0', 'cell1'], cells)
        self.metrics.worked()

    def audit(self, minute, violations=0):
        if minute % 60 == 0:
            self.metrics.audit_done({'isolation': violations, 'blazar': 0})

    def count(self, minute, servers=10):
        """Note how many servers fit, None for what nobody knows."""
        if minute % 30 == 0:
            self.metrics.capacity_counted('large', '', math.inf)
            if servers is None:
                self.metrics.capacity_unknown('small', '')
            else:
                self.metrics.capacity_counted('small', '', servers)

    def refuse(self, number, constraint='isolation'):
        self.metrics.refusals.labels('boot', constraint).inc(number)


def nothing_is_wrong(watcher, minute):
    watcher.work(minute)


def burst(number):
    def work(watcher, minute):
        watcher.work(minute)
        if minute == 60:
            # The first of their series.
            watcher.refuse(number)

    return work


def slow(watcher, minute):
    """Twenty in fifteen minutes, and of two constraints."""
    watcher.work(minute)
    watcher.refuse(1)
    watcher.refuse(1, 'VCPU')


def waiting(last):
    def work(watcher, minute):
        watcher.work(minute)
        watcher.metrics.waiting.set(60 <= minute <= last)

    return work


def unread(last):
    def work(watcher, minute):
        is_away = 60 <= minute <= last
        watcher.look(['cell0'] if is_away else ['cell0', 'cell1'])
        watcher.metrics.unread.set(is_away)
        watcher.audit(minute)

    return work


def dead(last):
    def work(watcher, minute):
        if 60 <= minute <= last:
            return False
        watcher.work(minute)

    return work


def still(last):
    """The disk is full: cells are read, and nothing can be recorded."""

    def work(watcher, minute):
        if 60 <= minute <= last:
            watcher.metrics.looked_at(['cell0', 'cell1'], ['cell0', 'cell1'])
        else:
            watcher.look()
        watcher.audit(minute)

    return work


def never_looks(watcher, minute):
    watcher.metrics.looked_at(['cell0', 'cell1'], [])


def long_turn(watcher, minute):
    """Explanations take 20 minutes, and each is recorded."""
    if 60 <= minute <= 80:
        watcher.metrics.worked()
    else:
        watcher.look()
    watcher.audit(minute)


def old_options(last):
    def work(watcher, minute):
        watcher.work(minute)
        watcher.metrics.old_options.set(60 <= minute <= last)

    return work


def violations(last):
    def work(watcher, minute):
        watcher.look()
        watcher.audit(minute, 3 if 60 <= minute <= last else 0)

    return work


def no_audit(first):
    def work(watcher, minute):
        watcher.look()
        if minute < first:
            watcher.audit(minute)

    return work


def few(last):
    def work(watcher, minute):
        watcher.look()
        watcher.audit(minute)
        watcher.count(minute, 9 if 60 <= minute <= last else 10)

    return work


def no_count(first, last=MINUTES):
    """Of one flavor; the other is counted."""

    def work(watcher, minute):
        watcher.look()
        watcher.audit(minute)
        watcher.count(minute, None if first <= minute <= last else 10)

    return work


#: For each alert, when it fires, and when it is silent.
CASES = {
    'NovaRefusesManyRequests': ([burst(200)], [burst(20), slow]),
    'NovaRefusalsWait': (
        [waiting(80), unread(80)],
        [waiting(70), unread(70)],
    ),
    'NovaCellIsNotRead': ([unread(100)], [unread(80), long_turn]),
    'NovaExtSchedWatchIsDead': ([dead(90)], [dead(65), dead(0)]),
    'NovaExtSchedWatchStandsStill': (
        [still(100), never_looks],
        [still(70), long_turn, dead(90)],
    ),
    'NovaExtSchedWatchHasOldOptions': ([old_options(130)], [old_options(90)]),
    'ServersViolateAPolicy': ([violations(130)], [violations(61)]),
    'NovaExtSchedAuditIsStale': (
        [no_audit(61), no_audit(0)],
        [no_audit(121)],
    ),
    'FewServersFit': ([few(60)], [no_count(60), few(0)]),
    'NovaExtSchedCapacityIsStale': (
        [no_count(60), no_count(0)],
        [no_count(60, 150), few(60)],
    ),
}


@ddt.ddt
class AlertsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def series(self, work):
        """Return the values of each series, minute after minute.

        :param work: called with a watcher and the minute; returns False where
            there is no process
        """
        clock = [0.0]
        self.useFixture(fixtures.MonkeyPatch('time.time', lambda: clock[0]))
        watcher = Watcher()
        found = {}
        for minute in range(MINUTES):
            clock[0] = minute * 60.0
            if work(watcher, minute) is False:
                continue
            for family in watcher.metrics.registry.collect():
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

    def test_prometheus_takes_the_rules(self):
        for path in FILES:
            # Loki has the rules on the log.
            if path.name != 'alerts-log.yaml':
                text = promtool.run(self, 'check', 'rules', path)
                self.assertIn('SUCCESS', text)

    @ddt.data((3, 0, 1), (3, 1, 0), (0, 0, 0))
    @ddt.unpack
    def test_violations_by_exit_status(self, status, is_audited, expected):
        """Where watch audits, it alone says so."""
        series = [('nova_ext_sched_exit_status{command="audit"}', status)]
        if is_audited:
            series.append(('nova_ext_sched_policy_violations{policy="x"}', 2))
        tests = {
            'rule_files': [str(ETC / 'alerts-exit-status.yaml')],
            'evaluation_interval': '1m',
            'tests': [
                {
                    'interval': '1m',
                    'input_series': [
                        {'series': name, 'values': f'{value}x9'}
                        for name, value in series
                    ],
                    'promql_expr_test': [
                        {
                            'expr': (
                                'count(ALERTS{alertstate="firing"}) or '
                                'vector(0)'
                            ),
                            'eval_time': '5m',
                            'exp_samples': [
                                {'labels': '{}', 'value': expected}
                            ],
                        }
                    ],
                }
            ],
        }
        path = self.folder / 'tests.yaml'
        path.write_text(yaml.safe_dump(tests))
        promtool.run(self, 'test', 'rules', path)
