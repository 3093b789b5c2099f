# SPDX-License-Identifier: Apache-2.0

import signal
import sys
import time
import weakref

import testtools

from nova_ext_sched.cli import interrupts


class Thing:
    """What weak references can name."""


class CertainTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # Whoever runs the tests may ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.dropped = []

        def note(one):
            self.dropped.append(one.exc_type)

        self.patch(sys, 'unraisablehook', note)

    def drop(self, raise_it):
        """Let Python drop what is raised in the callback of a weakref."""
        thing = Thing()
        reference = weakref.ref(thing, raise_it)
        del thing
        self.assertIsNone(reference())

    def press(self, _):
        signal.raise_signal(signal.SIGINT)

    def test_it_comes_again(self):
        expected = testtools.ExpectedException(KeyboardInterrupt)
        with expected, interrupts.certain():
            self.drop(self.press)
            time.sleep(60)
        self.assertEqual([], self.dropped)

    def test_as_often_as_it_is_dropped(self):
        presses = []

        def work(_):
            """Be in a callback when the second one arrives, too."""
            presses.append(None)
            if len(presses) == 1:
                self.press(_)
            time.sleep(60)

        expected = testtools.ExpectedException(KeyboardInterrupt)
        with expected, interrupts.certain():
            self.drop(work)
            self.drop(work)
            time.sleep(60)
        self.assertEqual(2, len(presses))

    def test_other_exceptions(self):
        before = sys.unraisablehook
        with interrupts.certain():
            self.drop(lambda _: 1 / 0)
        self.assertEqual([ZeroDivisionError], self.dropped)
        self.assertIs(before, sys.unraisablehook)
