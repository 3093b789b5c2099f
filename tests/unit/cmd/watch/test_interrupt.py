# SPDX-License-Identifier: Apache-2.0

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
        # To this thread: another one of this process does not hold it.
        signal.raise_signal(number)

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
        begun = []

        def work():
            with self.signals.allowed():
                begun.append(True)

        self.assertRaises(interrupt.Stop, work)
        self.assertEqual([], begun)

    def test_what_is_held_comes_later(self):
        """Before there is a handler it would end the process."""
        self.addCleanup(
            signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGHUP}
        )
        for _ in range(2):
            interrupt.hold()
            self.signals.pending = None
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            self.send(signal.SIGHUP)
            self.send(signal.SIGHUP)
            self.assertIsNone(self.signals.pending)
            self.signals.install()
            self.assertEqual(signal.SIGHUP, self.signals.pending)

    def test_no_signal(self):
        for _ in range(2):
            with self.signals.allowed():
                pass

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
