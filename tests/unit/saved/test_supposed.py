# SPDX-License-Identifier: Apache-2.0

import datetime

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.saved import supposed
from nova_ext_sched.saved import trees


@ddt.ddt
class AmountTestCase(testtools.TestCase):
    """What an option's value must be, before any table is changed."""

    def suppose(self, name, value):
        wanted = supposed.Supposed(options={name: value})
        time = datetime.datetime(2026, 1, 1)
        supposed.Supposing({}, trees.Trees(None), wanted, time).suppose()

    @ddt.data(
        ('cpu_allocation_ratio', '0', 'a number above 0'),
        ('ram_allocation_ratio', '-1', 'a number above 0'),
        ('disk_allocation_ratio', 'nan', 'a number above 0'),
        ('initial_cpu_allocation_ratio', 'inf', 'a number above 0'),
        ('cpu_allocation_ratio', 'much', 'a number above 0'),
        ('reserved_host_cpus', '1.5', 'a whole number'),
        ('reserved_host_memory_mb', '-1', 'a whole number'),
        ('reserved_host_disk_mb', '', 'a whole number'),
    )
    @ddt.unpack
    def test_refused(self, name, value, expected):
        refused = self.assertRaises(
            exception.InvalidValue, self.suppose, name, value
        )
        for part in (name, expected, repr(value)):
            self.assertIn(part, str(refused))

    @ddt.data(
        ('cpu_allocation_ratio', '0.5'),
        ('initial_ram_allocation_ratio', '1'),
        ('reserved_host_cpus', '0'),
    )
    @ddt.unpack
    def test_taken(self, name, value):
        self.suppose(name, value)
