# SPDX-License-Identifier: Apache-2.0

"""Time that passes where somebody sleeps, and nowhere else."""

import fixtures


class Clock(fixtures.Fixture):
    """:ivar now: what it says, in seconds"""

    now = 0

    def _setUp(self):
        for name, new in (('sleep', self.sleep), ('monotonic', self.read)):
            self.useFixture(fixtures.MonkeyPatch(f'time.{name}', new))

    def read(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
