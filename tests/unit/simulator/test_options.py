# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import nova.conf

from nova_ext_sched import exception
from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import scenario

NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'nova_ext_sched.filters.all_filters'
ONE = 'nova.scheduler.filters.io_ops_filter.IoOpsFilter'
WEIGHERS = [
    'nova.scheduler.weights.all_weighers',
    'nova_ext_sched.weighers.all_weighers',
]
DEFAULT = nova.conf.CONF.filter_scheduler.enabled_filters


ISOLATING = (
    'nova_conf: {nova_ext_sched: '
    '{enable_isolated_aggregate_filtering: true}}\n'
)


def declare(text=''):
    return scenario.parse(
        {
            'hosts': ['a'],
            'flavors': {},
            'steps': [],
            **(document.parse(text) or {}),
        }
    )


@ddt.ddt
class ComposeTest(unittest.TestCase):
    @ddt.unpack
    @ddt.data((False, [NOVA, OURS], WEIGHERS), (True, [NOVA], WEIGHERS[:1]))
    def test_defaults(self, plain, available, weighers):
        made = options.compose(declare(), plain)
        self.assertEqual(
            {
                'available_filters': available,
                'enabled_filters': DEFAULT,
                'weight_classes': weighers,
            },
            made['filter_scheduler'],
        )
        self.assertEqual(-1, made['quota']['instances'])

    def test_a_scenario_may_limit(self):
        made = options.compose(
            declare('nova_conf: {quota: {instances: 3}}'), plain=False
        )
        self.assertEqual('3', made['quota']['instances'])
        self.assertEqual(-1, made['quota']['cores'])

    def test_an_old_name(self):
        """As it stands in nova.conf."""
        made = options.compose(
            declare('nova_conf: {DEFAULT: {quota_cores: 3}}'), plain=False
        )
        self.assertEqual('3', made['quota']['cores'])

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
                available_filters: [NOVA, ONE, OURS]
                enabled_filters: ComputeFilter, IsolatedAggregatesFilter
            host_filters: [IsolatedAggregatesFilter]
            plain:
              nova_conf: {scheduler: {max_attempts: 4}}
              host_filters: [IoOpsFilter]
            """.replace('NOVA', NOVA)
            .replace('ONE', ONE)
            .replace('OURS', OURS)
        )
        self.assertEqual(
            {
                'available_filters': [NOVA, ONE, OURS],
                'enabled_filters': [
                    'ComputeFilter',
                    'IsolatedAggregatesFilter',
                ],
                'weight_classes': WEIGHERS,
            },
            options.compose(declared, plain=False)['filter_scheduler'],
        )
        plain = options.compose(declared, plain=True)
        self.assertNotIn('nova_ext_sched', plain)
        self.assertEqual(
            {
                'max_attempts': '4',
                'enable_isolated_aggregate_filtering': 'true',
            },
            plain['scheduler'],
        )
        self.assertEqual(
            {
                'available_filters': [NOVA, ONE],
                'enabled_filters': ['ComputeFilter', 'IoOpsFilter'],
                'weight_classes': WEIGHERS[:1],
            },
            plain['filter_scheduler'],
        )

    @ddt.unpack
    @ddt.data(
        ('', None),
        ('nova_conf: {nova_ext_sched: {forbid_by_trait: X}}', None),
        (ISOLATING, 'true'),
        (
            ISOLATING + 'plain: {nova_conf: {scheduler: '
            '{enable_isolated_aggregate_filtering: false}}}',
            'false',
        ),
    )
    def test_plain_nova_isolates_where_ours_does(self, text, expected):
        declared = declare(text)
        option = 'enable_isolated_aggregate_filtering'
        plain = options.compose(declared, plain=True).get('scheduler', {})
        self.assertEqual(expected, plain.get(option))
        ours = options.compose(declared, plain=False)
        self.assertNotIn('scheduler', ours)

    @ddt.data(False, True)
    def test_prefer(self, plain):
        made = options.compose(declare('prefer: [a]'), plain)
        *others, ours = made['filter_scheduler']['weight_classes']
        self.assertEqual(WEIGHERS[: 1 if plain else 2], others)
        self.assertEqual(
            'nova_ext_sched.simulator.weigher.PreferredHosts', ours
        )

    @ddt.unpack
    @ddt.data(
        # A scenario that has no request filters of ours has no weigher.
        (f'available_filters: [{NOVA}]', WEIGHERS[:1]),
        ('weight_classes: [a.b]', ['a.b']),
        (f'weight_classes: [{WEIGHERS[1]}]', WEIGHERS[1:], []),
    )
    def test_weighers(self, text, ours, plain=None):
        declared = declare(f'nova_conf: {{filter_scheduler: {{{text}}}}}')
        for is_plain, expected in (
            (False, ours),
            (True, ours if plain is None else plain),
        ):
            made = options.compose(declared, is_plain)
            self.assertEqual(
                expected, made['filter_scheduler']['weight_classes']
            )

    @ddt.unpack
    @ddt.data(
        ('host_filters: [IsolatedAggregatesFilter, IoOpsFilter]', []),
        ('plain: {host_filters: [IsolatedAggregatesFilter]}', []),
        (
            'host_filters: [IoOpsFilter, IsolatedAggregateFilter]',
            [
                "got 'IsolatedAggregateFilter'; did you mean "
                'IsolatedAggregatesFilter?'
            ],
        ),
        (
            'nova_conf: {filter_scheduler: {enabled_filters: "IoOpsFilter, '
            'Nowhere"}}',
            ["got 'Nowhere'"],
        ),
        ('plain: {host_filters: [Nothing]}', [], ["got 'Nothing'"]),
        (
            'nova_conf: {nova_ext_sched: {request_filters: "failure_domains, '
            'isolate_aggregats"}}',
            ["got 'isolate_aggregats'; did you mean isolate_aggregates?"],
            # Plain nova does not read it.
            [],
            'nova_conf.nova_ext_sched.request_filter',
        ),
        # It has no filter but one.
        (
            f'nova_conf: {{filter_scheduler: {{available_filters: {ONE}, '
            'enabled_filters: "IoOpsFilter, ComputeFilter"}}',
            ["got 'ComputeFilter'; did you mean IoOpsFilter?"],
        ),
    )
    def test_filters_that_are_not_installed(
        self, text, ours, plain=None, kind='host_filter'
    ):
        declared = declare(text)
        for is_plain, expected in (
            (False, ours),
            (True, ours if plain is None else plain),
        ):
            found = []
            try:
                options.compose(declared, is_plain)
            except exception.ScenarioInvalid as exc:
                found = [str(one) for one in exc.findings]
            self.assertEqual(
                [
                    f'{kind}s: expected a '
                    f'{kind.rpartition(".")[2].replace("_", " ")} that is '
                    f'installed, {got}'
                    for got in expected
                ],
                found,
            )

    def test_the_scenario_is_left_as_it_was(self):
        declared = declare('nova_conf: {filter_scheduler: {}}')
        options.compose(declared, plain=False)
        self.assertEqual({'filter_scheduler': {}}, declared.nova_conf)


def faults(groups, **changes):
    data = {
        'hosts': ['a'],
        'flavors': {'f': {}},
        'steps': [{'boot': 'x', 'flavor': 'f'}],
        'nova_conf': groups,
        **changes,
    }
    return [str(fault) for fault in check.findings(data, options.keywords())]


@ddt.ddt
class FaultsTest(unittest.TestCase):
    def test_nothing_stays_set(self):
        before = nova.conf.CONF.scheduler.max_attempts
        faults({'scheduler': {'max_attempts': '77'}})
        self.assertEqual(before, nova.conf.CONF.scheduler.max_attempts)

    @ddt.unpack
    @ddt.data(
        ('scheduler', 'max_attempts', ['1'], "a value of its type, got ['1']"),
        ('scheduler', 'max_attempts', '0', 'a value of its type (Should be'),
        ('DEFAULT', 'cpu_allocation_ratio', 'x', 'a value of its type ('),
        (
            'DEFAULT',
            'allow_resize_to_same_host',
            ['a'],
            "a value of its type, got ['a']",
        ),
        (
            'DEFAULT',
            'force_config_drive',
            'x',
            "a value of its type (Unexpected boolean value 'x'), got 'x'",
        ),
        (
            'scheduler',
            'max_attempt',
            '3',
            'an option of [scheduler], got max_attempt; did you mean '
            'max_attempts?',
        ),
        (
            'schedular',
            'x',
            '1',
            'a group of nova.conf, got schedular; did you mean scheduler?',
        ),
    )
    def test_fault(self, group, option, value, expected):
        (fault,) = faults({group: {option: value}})
        beginning = f'nova_conf.{group}.{option}: expected {expected}'
        self.assertEqual(beginning, fault[: len(beginning)])
