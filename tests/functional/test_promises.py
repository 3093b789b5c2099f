# SPDX-License-Identifier: Apache-2.0

"""Rows of the five promises; the others are in tests/long."""

from tests.functional import promises


class PlainRow(promises.CloudRow):
    """Plain servers and hosts."""

    promise_isolation = promises.isolates('host1', 'host4')
    promise_survive = promises.fails('--host', 'host1')
    promise_capacity = promises.counts(vcpu=4)

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

    def promise_moves(self):
        self.boot_stopped(az='nova:host3')
        self.assertDrained('host3', kinds=('cold', 'live'))
