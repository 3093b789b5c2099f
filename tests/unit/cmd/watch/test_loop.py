# SPDX-License-Identifier: Apache-2.0

import logging
import signal
import sys

import fixtures
import testtools

from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import loop


class EveryTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.begun = []

    def work(self):
        """Work for 50 seconds."""
        self.begun.append(self.now)
        self.now += 50

    def begun_at(self, interval, *times):
        turn = loop.every(interval, self.work)
        for self.now in times:
            turn()
        return self.begun

    def test_from_the_beginning_of_one_to_that_of_the_next(self):
        self.assertEqual(
            [1000, 1060, 1120],
            self.begun_at(60, 1000, 1059.9, 1060, 1061, 1119.9, 1120),
        )

    def test_never(self):
        self.assertEqual([], self.begun_at(None, 1000, 2000))


class LoopTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.signals = interrupt.Interrupt()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.turns = []

    def run_loop(self, *results, step=1):
        """Take turns; each raises or returns a result, then it is told to end.

        :param step: seconds from one turn to the next
        :returns: how often a turn was taken
        """
        left = list(results)
        now = [0]
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: now[0])
        )

        def turn():
            now[0] += step
            self.turns.append(len(left))
            if not left:
                self.signals.pending = signal.SIGTERM
                with self.signals.allowed():
                    pass
            result = left.pop(0)
            if isinstance(result, BaseException):
                raise result

        loop.run(self.signals, turn, 0.001)
        return len(self.turns)

    def test_until_it_is_told_to_end(self):
        self.assertEqual(4, self.run_loop(None, None, None))
        self.assertEqual('', self.log.output)

    def test_an_outage_is_one_line(self):
        """And one at its end, half a minute after the last failure."""
        full = OSError('No space left on device')
        self.assertEqual(
            6, self.run_loop(full, full, full, None, None, step=16)
        )
        self.assertEqual(
            'Refusals wait to be recorded: OSError: No space left on device\n'
            'Records are written again, after 3 failures in 32 seconds.\n',
            self.log.output,
        )

    def test_the_next_outage_is_another_line(self):
        full = OSError('No space left on device')
        self.run_loop(full, None, full, None, step=31)
        self.assertEqual(2, self.log.output.count('No space left'))
        self.assertEqual(2, self.log.output.count('are written again'))

    def test_what_nobody_expected_has_a_traceback(self):
        self.run_loop(LookupError('x'), LookupError('x'))
        self.assertEqual(1, self.log.output.count('Traceback'))

    def test_to_begin_anew(self):
        """SIGHUP waits until the new process has a handler."""
        number = {signal.SIGHUP}
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, number)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.loop.CONF.reload_config_files',
                lambda: True,
            )
        )

        def execute(program, arguments):
            self.assertEqual((sys.executable, sys.orig_argv),
                             (program, arguments))  # fmt: skip
            held.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            self.signals.pending = None

        held = []
        self.useFixture(fixtures.MonkeyPatch('os.execv', execute))

        def turn():
            self.signals.pending = signal.SIGTERM if held else signal.SIGHUP
            with self.signals.allowed():
                pass

        loop.run(self.signals, turn, 0.001)
        self.assertEqual([True], [signal.SIGHUP in one for one in held])

    def test_a_nova_conf_that_cannot_be_read(self):
        """The process goes on with the options of before."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.loop.CONF.reload_config_files',
                lambda: False,
            )
        )

        def hup():
            self.assertIsNone(self.signals.pending)
            self.turns.append('hup')
            if len(self.turns) == 1:
                self.signals.pending = signal.SIGHUP
            else:
                self.signals.pending = signal.SIGTERM
            with self.signals.allowed():
                pass

        loop.run(self.signals, hup, 0.001)
        self.assertEqual(['hup', 'hup'], self.turns)
        self.assertIn('the options of before stay', self.log.output)
