# SPDX-License-Identifier: Apache-2.0

"""What a file names is looked up, and never imported."""

import sys

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.saved import classes
from tests import distributions

OURS = 'nova_ext_sched.filters.all_filters'
NOVA = 'nova.scheduler.filters.all_filters'


@ddt.ddt
class ClassesTestCase(testtools.TestCase):
    def check(self, *without, **scheduler):
        options = {'filter_scheduler': scheduler}
        dropped = classes.check(options, without)
        return dropped, options['filter_scheduler']

    def test_what_nova_and_we_have(self):
        names = {
            'available_filters': [
                NOVA,
                OURS,
                'nova.scheduler.filters.compute_filter.ComputeFilter',
            ],
            'enabled_filters': ['ComputeFilter', 'IsolatedAggregatesFilter'],
            'weight_classes': [
                'nova.scheduler.weights.all_weighers',
                'nova.scheduler.weights.ram.RAMWeigher',
                'nova_ext_sched.weighers.all_weighers',
            ],
        }
        self.assertEqual(([], names), self.check(**names))

    def test_what_entry_points_provide(self):
        self.useFixture(distributions.Distributions()).declare(
            'broken_sched',
            'nova_ext_sched.host_filters',
            ['OtherFilter = broken_sched:OtherFilter'],
            'raise RuntimeError("imported")',
        )
        names = {
            'available_filters': [OURS, 'broken_sched.OtherFilter'],
            'enabled_filters': ['OtherFilter'],
        }
        self.assertEqual(([], names), self.check(**names))
        self.assertNotIn('broken_sched', sys.modules)

    @ddt.data(
        ('available_filters', ['subprocess.getoutput']),
        ('available_filters', [NOVA, 'nova.scheduler.filters']),
        ('available_filters', [NOVA, 'os.system']),
        ('enabled_filters', ['ComputeFilter', 'OtherFilter']),
        ('weight_classes', ['antigravity.fly']),
        ('weight_classes', 'antigravity.fly'),
    )
    @ddt.unpack
    def test_what_nobody_has(self, option, names):
        exc = self.assertRaises(
            exception.UsageError, self.check, **{option: names}
        )
        missing = names if isinstance(names, str) else names[-1]
        self.assertIn(f'{option} of the saved cloud names {missing}', str(exc))
        self.assertNotIn('antigravity', sys.modules)
        if isinstance(names, list):
            found, kept = self.check(missing, **{option: names})
            self.assertEqual([missing], found)
            self.assertEqual(names[:-1], kept[option])

    @ddt.data('request_filters', 'weighers')
    def test_plugins(self, option):
        options = {'nova_ext_sched': {option: ['no_such']}}
        self.assertRaises(exception.UsageError, classes.check, options, ())
        self.assertEqual(['no_such'], classes.check(options, ['no_such']))
        self.assertEqual([], options['nova_ext_sched'][option])
