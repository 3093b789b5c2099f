# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.conf import weighers
from tests.unit.conf import nova_conf

NOVA = 'nova.scheduler.weights.all_weighers'
OURS = 'nova_ext_sched.weighers.all_weighers'
TURNS = 'ServerGroupRoundRobinWeigher'
MULTIPLIER = 'server_group_round_robin_weight_multiplier'


@ddt.ddt
class ContradictionsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        self.config = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.nova(weight_classes=[NOVA, OURS])

    def nova(self, **options):
        self.config.config(group='filter_scheduler', **options)

    def ours(self, **options):
        self.config.config(group='nova_ext_sched', **options)

    def find(self):
        return list(weighers.contradictions(nova.conf.CONF))

    def test_nothing(self):
        self.assertEqual([], self.find())
        self.nova(weight_classes=[NOVA])
        self.assertEqual([], self.find())

    def test_named_and_not_loaded(self):
        self.nova(weight_classes=[NOVA])
        self.ours(weighers=['Theirs', TURNS])
        self.assertEqual(
            [
                f'[nova_ext_sched] weighers has Theirs, {TURNS}, but '
                f'[filter_scheduler] weight_classes does not have {OURS}, so '
                f'none of them runs. Add {OURS} to weight_classes.'
            ],
            self.find(),
        )

    def test_a_multiplier_of_one_that_is_not_named(self):
        config = cfg.ConfigOpts()
        config.register_opts(
            [cfg.ListOpt('weight_classes', default=[NOVA])],
            group='filter_scheduler',
        )
        option = 'own_hosts_weight_multiplier'
        nova_conf.parse(config, option, '5')
        (found,) = weighers.contradictions(config)
        self.assertIn(f'[nova_ext_sched] {option} is set, but', found)
        # Each is there, with its default.
        nova_conf.parse(config, MULTIPLIER, '5')
        self.assertEqual([], list(weighers.contradictions(config)))

    @ddt.data(
        ([TURNS], 8, 1e5, f'whatever {TURNS} prefers'),
        ([TURNS, 'Theirs'], 2, 1e5, f'whatever {TURNS} and Theirs prefer.'),
        ([TURNS], 8, 0, ''),
        ([TURNS, 'Theirs'], 8, 0, 'whatever Theirs prefers'),
        ([TURNS], 1, 1e5, ''),
        ([], 8, 1e5, ''),
    )
    @ddt.unpack
    def test_chance(self, names, subset, multiplier, said):
        self.nova(host_subset_size=subset)
        self.ours(weighers=names, **{MULTIPLIER: multiplier})
        found = self.find()
        self.assertEqual(bool(said), bool(found), found)
        self.assertIn(said, '\n'.join(found))

    @ddt.data(([TURNS], False), (['Theirs'], True))
    @ddt.unpack
    def test_hosts_that_weigh_the_same(self, names, said):
        self.nova(shuffle_best_same_weighed_hosts=True)
        self.ours(weighers=names)
        found = '\n'.join(self.find())
        self.assertEqual(said, 'among hosts that Theirs weigh the' in found)
        self.assertEqual(said, bool(found), found)

    @ddt.data(
        # nova's own add up to 6.
        ({}, 6.1, ''),
        ({}, 6.0, 'together they add up to 6 '),
        ({'ram_weight_multiplier': -95.0}, 100.0, 'add up to 100 (most by '
         '[filter_scheduler] ram_weight_multiplier = -95)'),
        ({'ram_weight_multiplier': -95.0}, -100.0, f'{MULTIPLIER} is -100. '
         f'Set it above 100, or lower theirs.'),
        ({'ram_weight_multiplier': 94.0}, 100.0, ''),
        ({'ram_weight_multiplier': 94.0}, -101.0, ''),
    )  # fmt: skip
    @ddt.unpack
    def test_outweighed(self, nova_options, multiplier, said):
        self.nova(hypervisor_version_weight_multiplier=1.0, **nova_options)
        self.ours(**{MULTIPLIER: multiplier})
        found = self.find()
        self.assertEqual(bool(said), bool(found), found)
        self.assertIn(said, '\n'.join(found))


@ddt.ddt
class MultiplierNameTestCase(testtools.TestCase):
    @ddt.data(
        (TURNS, MULTIPLIER),
        ('RAMWeigher', 'ram_weight_multiplier'),
        ('RelativeRoomWeigher', 'relative_room_weight_multiplier'),
    )
    @ddt.unpack
    def test_as_nova(self, weigher, option):
        self.assertEqual(option, weighers.multiplier_name(weigher))
