# SPDX-License-Identifier: Apache-2.0

import os
import signal

import ddt
import testtools

from nova_ext_sched.cmd.watch import interrupt


@ddt.ddt
class InterruptTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            before = signal.getsignal(number)
            self.addCleanup(signal.signal, number, before)
        self.signals = interrupt.Interrupt()
        self.signals.install()

    def send(self, number):
        os.kill(os.getpid(), number)

    @ddt.data(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    def test_where_it_is_allowed(self, number):
        def work():
            with self.signals.allowed():
                self.send(number)
                self.fail('the signal did not end the block')

        self.assertRaises(interrupt.Stop, work)
        self.assertEqual(number, self.signals.pending)

    def test_where_it_is_not_allowed(self):
        """A write ends; what could be stopped after it does not begin."""
        self.send(signal.SIGTERM)
        self.assertEqual(signal.SIGTERM, self.signals.pending)
        self.assertRaises(interrupt.Stop, self.signals.check)
        begun = []

        def work():
            with self.signals.allowed():
                begun.append(True)

        self.assertRaises(interrupt.Stop, work)
        self.assertEqual([], begun)

    def test_no_signal(self):
        with self.signals.allowed():
            pass
        self.signals.check()

    def test_after_it_was_allowed(self):
        with self.signals.allowed():
            pass
        try:
            self.send(signal.SIGTERM)
        except interrupt.Stop:
            self.fail('the signal ended what must not be stopped')
        self.assertEqual(signal.SIGTERM, self.signals.pending)

    @ddt.data(
        ((signal.SIGHUP, signal.SIGTERM), signal.SIGTERM),
        ((signal.SIGTERM, signal.SIGHUP), signal.SIGTERM),
        ((signal.SIGHUP, signal.SIGHUP), signal.SIGHUP),
    )
    @ddt.unpack
    def test_to_end_counts_more_than_to_begin_anew(self, sent, expected):
        for number in sent:
            self.send(number)
        self.assertEqual(expected, self.signals.pending)
