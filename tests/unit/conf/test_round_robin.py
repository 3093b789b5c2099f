# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf

ANTI_AFFINITY = 'ServerGroupAntiAffinityFilter'
DOMAINS = 'FailureDomainFilter'
NOVA = 'nova.scheduler.weights.all_weighers'
OURS = 'nova_ext_sched.weighers.all_weighers'
CLASS = 'nova_ext_sched.weighers.round_robin.ServerGroupRoundRobinWeigher'


@ddt.ddt
class ContradictionsTestCase(testtools.TestCase):
    def find(self, enabled, weight_classes):
        conf.register_opts(nova.conf.CONF)
        config = self.useFixture(config_fixture.Config(nova.conf.CONF)).config
        config(
            group='filter_scheduler',
            enabled_filters=enabled,
            weight_classes=weight_classes,
        )
        return conf.contradictions(nova.conf.CONF)

    @ddt.data(
        ([ANTI_AFFINITY], f'has {ANTI_AFFINITY}, but'),
        ([DOMAINS], f'has {DOMAINS}, but'),
        ([DOMAINS, ANTI_AFFINITY], f'has {ANTI_AFFINITY} and {DOMAINS}, but'),
    )
    @ddt.unpack
    def test_filters_without_the_weigher(self, enabled, expected):
        (found,) = self.find(enabled, [NOVA])
        self.assertIn(expected, found)
        self.assertIn(f'Add {OURS} to weight_classes.', found)
        for weight_classes in ([NOVA, OURS], [NOVA, CLASS]):
            self.assertEqual([], self.find(enabled, weight_classes))

    def test_nothing_to_assign(self):
        self.assertEqual([], self.find(['ComputeFilter'], [NOVA]))
