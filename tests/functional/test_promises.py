# SPDX-License-Identifier: Apache-2.0

"""Rows of the five promises; the others are in tests/long."""

from tests.functional import promises


class PlainRow(promises.CloudRow):
    """Plain servers and hosts."""

    def build(self):
        for number, host in ((6, 'host1'), (5, 'host2'), (2, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')

    def promise_explain(self):
        self.assertExplained()
        four = self.flavor(vcpu=4)
        self.assertExplained(flavor=four)
        self.assertExplained(host='host3')
        self.assertExplained(flavor=four, az='nova:host4')
        self.assertRefused(flavor=four, az='nova:host1')
        self.assertRefused(flavor=self.flavor(vcpu=11))

    def promise_isolation(self):
        self.assertIsolates('host1', 'host4')

    def promise_moves(self):
        self.boot_stopped(az='nova:host3')
        self.assertDrained('host3', kinds=('cold', 'live'))

    def promise_survive(self):
        self.assertFails('--host', 'host1')

    def promise_capacity(self):
        self.assertCounted(flavor=self.flavor(vcpu=4))
