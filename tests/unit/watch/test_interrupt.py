# SPDX-License-Identifier: Apache-2.0

import signal

import ddt
import testtools

from nova_ext_sched.watch import interrupt

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@ddt.ddt
class InterruptTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for number in NUMBERS:
            before = signal.getsignal(number)
            self.addCleanup(signal.signal, number, before)
        self.signals = interrupt.Interrupt()
        self.signals.install()

    @ddt.data(*NUMBERS)
    def test_where_it_is_allowed(self, number):
        def work():
            with self.signals.may_interrupt():
                signal.raise_signal(number)
                self.fail('the signal did not end the block')

        self.assertRaises(interrupt.Stop, work)
        self.assertTrue(self.signals.arrived)

    @ddt.data(*NUMBERS)
    def test_where_it_is_not_allowed(self, number):
        """A write ends; what could be stopped after it does not begin."""
        with self.signals.may_interrupt():
            pass
        signal.raise_signal(number)
        begun = []

        def work():
            with self.signals.may_interrupt():
                begun.append(True)

        self.assertRaises(interrupt.Stop, work)
        self.assertEqual([], begun)
