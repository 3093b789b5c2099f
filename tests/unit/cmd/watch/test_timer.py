# SPDX-License-Identifier: Apache-2.0

import fixtures
import testtools

from nova_ext_sched.cmd.watch import timer


class TimerTestCase(testtools.TestCase):
    def due_at(self, interval, *times):
        """Return when it was time; what is done then takes 50 seconds."""
        now = [0.0]
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: now[0])
        )
        one = timer.Timer(interval)
        found = []
        for time in times:
            now[0] = time
            if one.is_due():
                found.append(time)
                now[0] += 50
        return found

    def test_from_the_beginning_of_one_to_that_of_the_next(self):
        self.assertEqual(
            [1000, 1060, 1120],
            self.due_at(60, 1000, 1059.9, 1060, 1061, 1119.9, 1120),
        )

    def test_never(self):
        self.assertEqual([], self.due_at(None, 1000, 2000))
