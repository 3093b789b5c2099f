# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import nova.conf
import yaml

from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import scenario

NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'nova_ext_sched.filters.all_filters'
DEFAULT = nova.conf.CONF.filter_scheduler.enabled_filters


def declare(text=''):
    return scenario.parse(
        {
            'hosts': ['a'],
            'flavors': {},
            'steps': [],
            **(yaml.safe_load(text) or {}),
        }
    )


@ddt.ddt
class ComposeTest(unittest.TestCase):
    def test_defaults(self):
        made = options.compose(declare(), plain=False)
        self.assertEqual(
            {'available_filters': [NOVA, OURS], 'enabled_filters': DEFAULT},
            made['filter_scheduler'],
        )
        self.assertEqual(-1, made['quota']['instances'])

    def test_plain_defaults(self):
        made = options.compose(declare(), plain=True)
        self.assertEqual(
            {'available_filters': [NOVA], 'enabled_filters': DEFAULT},
            made['filter_scheduler'],
        )

    def test_a_scenario_may_limit(self):
        made = options.compose(
            declare('nova_conf: {quota: {instances: 3}}'), plain=False
        )
        self.assertEqual('3', made['quota']['instances'])
        self.assertEqual(-1, made['quota']['cores'])

    def test_host_filters(self):
        declared = declare(
            'host_filters: [IsolatedAggregatesFilter, ComputeFilter, '
            'ServerGroupAntiAffinityFilter, IoOpsFilter]'
        )
        ours = options.compose(declared, plain=False)
        self.assertEqual(
            [*DEFAULT, 'IsolatedAggregatesFilter', 'IoOpsFilter'],
            ours['filter_scheduler']['enabled_filters'],
        )
        # Plain nova has no filter of the name of our own, and one of its own
        # where the names are the same.
        plain = options.compose(declared, plain=True)
        self.assertEqual(
            [*DEFAULT, 'IoOpsFilter'],
            plain['filter_scheduler']['enabled_filters'],
        )

    def test_plain_has_its_own(self):
        declared = declare(
            """
            nova_conf:
              nova_ext_sched: {enable_isolated_aggregate_filtering: true}
              scheduler: {max_attempts: 2}
              filter_scheduler:
                available_filters: [a.b, nova_ext_sched.filters.all_filters]
                enabled_filters: ComputeFilter, IsolatedAggregatesFilter
            host_filters: [IsolatedAggregatesFilter]
            plain:
              nova_conf: {scheduler: {max_attempts: 4}}
              host_filters: [IoOpsFilter]
            """
        )
        self.assertEqual(
            {
                'available_filters': ['a.b', OURS],
                'enabled_filters': [
                    'ComputeFilter',
                    'IsolatedAggregatesFilter',
                ],
            },
            options.compose(declared, plain=False)['filter_scheduler'],
        )
        plain = options.compose(declared, plain=True)
        self.assertNotIn('nova_ext_sched', plain)
        self.assertEqual({'max_attempts': '4'}, plain['scheduler'])
        self.assertEqual(
            {
                'available_filters': ['a.b'],
                'enabled_filters': ['ComputeFilter', 'IoOpsFilter'],
            },
            plain['filter_scheduler'],
        )

    @ddt.data(False, True)
    def test_prefer(self, plain):
        made = options.compose(declare('prefer: [a]'), plain)
        *others, ours = made['filter_scheduler']['weight_classes']
        self.assertEqual(['nova.scheduler.weights.all_weighers'], others)
        self.assertEqual(
            'nova_ext_sched.simulator.weigher.PreferredHosts', ours
        )

    def test_the_scenario_is_left_as_it_was(self):
        declared = declare('nova_conf: {filter_scheduler: {}}')
        options.compose(declared, plain=False)
        self.assertEqual({'filter_scheduler': {}}, declared.nova_conf)


@ddt.ddt
class UnusableTest(unittest.TestCase):
    def test_usable(self):
        self.assertEqual(
            [],
            list(
                options.unusable(
                    {
                        'nova_ext_sched': {
                            'enable_isolated_aggregate_filtering': 'yes',
                            'forbid_by_trait': ['CUSTOM_X'],
                            'max_forbidden_aggregates': 3,
                        },
                        'DEFAULT': {
                            'reserved_host_memory_mb': 0,
                            'cpu_allocation_ratio': 16.0,
                            'resize_confirm_window': '010',
                            'use_rootwrap_daemon': True,
                            'force_config_drive': False,
                        },
                    }
                )
            ),
        )

    def test_nothing_stays_set(self):
        before = nova.conf.CONF.scheduler.max_attempts
        list(options.unusable({'scheduler': {'max_attempts': 77}}))
        self.assertEqual(before, nova.conf.CONF.scheduler.max_attempts)

    def test_a_list_for_one_value(self):
        (found,) = options.unusable({'scheduler': {'max_attempts': [1]}})
        self.assertEqual(('scheduler', 'max_attempts'), found[:2])

    @ddt.unpack
    @ddt.data(
        ('DEFAULT', 'default_availability_zone', True),
        ('DEFAULT', 'default_availability_zone', False),
        ('DEFAULT', 'default_schedule_zone', True),
        ('filter_scheduler', 'enabled_filters', True),
    )
    def test_a_boolean_for_a_string(self, group, option, value):
        self.assertEqual(
            [(group, option, 'a string (quote it)', value)],
            list(options.unusable({group: {option: value}})),
        )

    def test_a_boolean_for_a_number(self):
        (found,) = options.unusable({'scheduler': {'max_attempts': True}})
        self.assertEqual(('scheduler', 'max_attempts'), found[:2])
        self.assertIs(True, found[3])
