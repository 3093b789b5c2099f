# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import fixtures
import testtools

from nova_ext_sched.cmd.watch import audits
from nova_ext_sched.cmd.watch import metrics


@ddt.ddt
class AuditsTestCase(testtools.TestCase):
    """Which audits count."""

    def setUp(self):
        super().setUp()
        for name, value in (
            ('kept_hosts.HostManager', lambda: None),
            ('auditor.Auditor', lambda scheduler: self.found),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_ext_sched.cmd.watch.audits.{name}', value
                )
            )
        self.log = self.useFixture(fixtures.FakeLogger())
        self.metrics = metrics.Metrics()
        self.instead = lambda: None
        self.found = self.result(3)

    def result(self, violations, faults=(), not_judged=0):
        return types.SimpleNamespace(
            count=lambda: None,
            judge=self.judge,
            faults=list(faults),
            totals=types.SimpleNamespace(
                not_judged=not_judged, policies={'isolation': violations}
            ),
        )

    def judge(self):
        self.instead()
        return ()

    def violations(self):
        return self.metrics.registry.get_sample_value(
            'nova_ext_sched_policy_violations', {'policy': 'isolation'}
        )

    def test_the_figures(self):
        audits.count(self.metrics)
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
        audits.count(self.metrics)
        self.found = self.result(*result)
        audits.count(self.metrics)
        self.assertEqual(3, self.violations())
        self.assertEqual(
            f'The audit is not complete: {words}\n', self.log.output
        )

    def test_one_that_fails(self):
        def fail():
            raise LookupError('no table')

        self.instead = fail
        audits.count(self.metrics)
        self.assertIsNone(self.violations())
        self.assertEqual(
            'The audit failed: LookupError: no table\n', self.log.output
        )
