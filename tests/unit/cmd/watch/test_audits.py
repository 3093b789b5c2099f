# SPDX-License-Identifier: Apache-2.0

import signal
import types

import ddt
import fixtures
import testtools

from nova_ext_sched.cmd.watch import audits
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics


@ddt.ddt
class AuditsTestCase(testtools.TestCase):
    """When audits run, and which of them count."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.audits.Audits._audit', self.audit
            )
        )
        self.log = self.useFixture(fixtures.FakeLogger())
        self.metrics = metrics.Metrics()
        self.signals = interrupt.Interrupt()
        self.audits = audits.Audits(self.metrics, self.signals, 60)
        self.begun = []
        self.instead = lambda: None
        self.found = self.result(3)

    @staticmethod
    def result(violations, faults=(), not_judged=0):
        return types.SimpleNamespace(
            faults=list(faults),
            totals=types.SimpleNamespace(
                not_judged=not_judged, policies={'isolation': violations}
            ),
        )

    def audit(self):
        self.begun.append(self.now)
        self.instead()
        return self.found

    def violations(self):
        return self.metrics.registry.get_sample_value(
            'nova_ext_sched_policy_violations', {'policy': 'isolation'}
        )

    def turn_at(self, *times):
        for self.now in times:
            self.audits.turn()

    def test_never(self):
        audits.Audits(self.metrics, self.signals, None).turn()
        self.assertEqual([], self.begun)

    def test_the_figures(self):
        self.turn_at(1000)
        self.assertEqual(3, self.violations())
        self.assertEqual('', self.log.output)

    @ddt.data(
        (
            (5, ['Cell cell1 does not answer.']),
            '0 servers not judged. Cell cell1 does not answer.',
        ),
        ((5, (), 1), '1 server not judged. '),
    )
    @ddt.unpack
    def test_one_that_is_not_complete(self, result, words):
        self.turn_at(1000)
        self.found = self.result(*result)
        self.turn_at(1060)
        self.assertEqual(3, self.violations())
        self.assertEqual(
            f'The audit is not complete: {words}\n', self.log.output
        )

    def test_one_that_fails_waits_for_its_time(self):
        def fail():
            raise LookupError('no table')

        self.instead = fail
        self.turn_at(1000, 1001, 1059)
        self.assertEqual([1000], self.begun)
        self.assertEqual(
            'The audit failed: LookupError: no table\n', self.log.output
        )

    def test_a_signal_ends_it(self):
        """Also one that has arrived before."""
        self.signals.pending = signal.SIGTERM
        self.assertRaises(interrupt.Stop, self.audits.turn)
        self.assertEqual([], self.begun)
