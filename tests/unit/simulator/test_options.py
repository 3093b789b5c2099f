# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import nova.conf

from nova_ext_sched import exception
from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import scenario
from tests.unit.simulator import tables

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


#: What a scenario declares, and what is said of it, or of plain nova.
NOT_INSTALLED = f"""
{{host_filters: [IsolatedAggregatesFilter, IoOpsFilter]}}
{{plain: {{host_filters: [IsolatedAggregatesFilter]}}}}
{{host_filters: [IoOpsFilter, IsolatedAggregateFilter]}}
  ours: host_filters: expected a host filter that is installed, got
    'IsolatedAggregateFilter'; did you mean IsolatedAggregatesFilter?
  plain: host_filters: expected a host filter that is installed, got
    'IsolatedAggregateFilter'; did you mean IsolatedAggregatesFilter?
{{nova_conf: {{filter_scheduler: {{enabled_filters: 'IoOpsFilter,Nowhere'}}}}}}
  ours: host_filters: expected a host filter that is installed, got 'Nowhere'
  plain: host_filters: expected a host filter that is installed, got 'Nowhere'
{{plain: {{host_filters: [Nothing]}}}}
  plain: host_filters: expected a host filter that is installed, got 'Nothing'
# Plain nova does not read it.
{{nova_conf: {{nova_ext_sched: {{request_filters: 'failure_domains, \
isolate_aggregats'}}}}}}
  ours: nova_conf.nova_ext_sched.request_filters: expected a request filter
    that is installed, got 'isolate_aggregats'; did you mean
    isolate_aggregates?
# It has no filter but one.
{{nova_conf: {{filter_scheduler: {{available_filters: {ONE}, \
enabled_filters: 'IoOpsFilter, ComputeFilter'}}}}}}
  ours: host_filters: expected a host filter that is installed, got
    'ComputeFilter'; did you mean IoOpsFilter?
  plain: host_filters: expected a host filter that is installed, got
    'ComputeFilter'; did you mean IoOpsFilter?
"""


def declare(text='', **data):
    data |= document.parse(text) or {}
    return scenario.parse({'hosts': ['a'], 'flavors': {}, 'steps': [], **data})


def compose(text, plain, group='filter_scheduler'):
    return options.compose(declare(text), plain)[group]


def filters_and_weighers(available, enabled, weighers):
    return {
        'available_filters': available,
        'enabled_filters': enabled,
        'weight_classes': weighers,
    }


@ddt.ddt
class ComposeTest(unittest.TestCase):
    @ddt.unpack
    @ddt.data((False, [NOVA, OURS], WEIGHERS), (True, [NOVA], WEIGHERS[:1]))
    def test_defaults(self, plain, available, weighers):
        self.assertEqual(
            filters_and_weighers(available, DEFAULT, weighers),
            compose('', plain),
        )
        self.assertEqual(-1, compose('', plain, 'quota')['instances'])

    @ddt.unpack
    @ddt.data(
        ('quota: {instances: 3}', ('3', -1)),
        # An old name, as it stands in nova.conf.
        ('DEFAULT: {quota_cores: 3}', (-1, '3')),
    )
    def test_a_scenario_may_limit(self, text, expected):
        made = compose(f'nova_conf: {{{text}}}', False, 'quota')
        self.assertEqual(expected, (made['instances'], made['cores']))

    def test_host_filters(self):
        text = (
            'host_filters: [IsolatedAggregatesFilter, ComputeFilter, '
            'ServerGroupAntiAffinityFilter, IoOpsFilter]'
        )
        # Plain nova has no filter of the name of our own, and one of its own
        # where the names are the same.
        for plain, ours in ((False, ['IsolatedAggregatesFilter']), (True, [])):
            self.assertEqual(
                [*DEFAULT, *ours, 'IoOpsFilter'],
                compose(text, plain)['enabled_filters'],
            )

    def test_plain_has_its_own(self):
        text = f"""
nova_conf:
  nova_ext_sched: {{enable_isolated_aggregate_filtering: true}}
  scheduler: {{max_attempts: 2}}
  filter_scheduler:
    available_filters: [{NOVA}, {ONE}, {OURS}]
    enabled_filters: ComputeFilter, IsolatedAggregatesFilter
host_filters: [IsolatedAggregatesFilter]
plain:
  nova_conf: {{scheduler: {{max_attempts: 4}}}}
  host_filters: [IoOpsFilter]
"""
        enabled = ['ComputeFilter', 'IsolatedAggregatesFilter']
        self.assertEqual(
            filters_and_weighers([NOVA, ONE, OURS], enabled, WEIGHERS),
            compose(text, False),
        )
        enabled = ['ComputeFilter', 'IoOpsFilter']
        self.assertEqual(
            filters_and_weighers([NOVA, ONE], enabled, WEIGHERS[:1]),
            compose(text, True),
        )
        self.assertNotIn(
            'nova_ext_sched', options.compose(declare(text), plain=True)
        )
        isolates = {'enable_isolated_aggregate_filtering': 'true'}
        self.assertEqual(
            {'max_attempts': '4', **isolates}, compose(text, True, 'scheduler')
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
        *others, ours = compose('prefer: [a]', plain)['weight_classes']
        self.assertEqual(WEIGHERS[: 1 if plain else 2], others)
        self.assertEqual(
            'nova_ext_sched.simulator.weigher.PreferredHosts', ours
        )

    @ddt.unpack
    @ddt.data(
        # A scenario that has no request filters of ours has no weigher.
        (f'available_filters: [{NOVA}]', WEIGHERS[:1], WEIGHERS[:1]),
        ('weight_classes: [a.b]', ['a.b'], ['a.b']),
        (f'weight_classes: [{WEIGHERS[1]}]', WEIGHERS[1:], []),
    )
    def test_weighers(self, text, *expected):
        text = f'nova_conf: {{filter_scheduler: {{{text}}}}}'
        found = [compose(text, is_plain) for is_plain in (False, True)]
        self.assertEqual(
            [*expected], [made['weight_classes'] for made in found]
        )

    @ddt.unpack
    @ddt.data(*tables.read(NOT_INSTALLED))
    def test_filters_that_are_not_installed(self, data, *expected):
        declared = declare(**data)
        found = []
        for is_plain, where in ((False, 'ours'), (True, 'plain')):
            try:
                options.compose(declared, is_plain)
            except exception.ScenarioInvalid as exc:
                found += [f'{where}: {one}' for one in exc.findings]
        self.assertEqual([*expected], found)

    def test_the_scenario_is_left_as_it_was(self):
        declared = declare('nova_conf: {filter_scheduler: {}}')
        options.compose(declared, plain=False)
        self.assertEqual({'filter_scheduler': {}}, declared.nova_conf)


def faults(groups):
    data = {
        'hosts': ['a'],
        'flavors': {'f': {}},
        'steps': [{'boot': 'x', 'flavor': 'f'}],
        'nova_conf': groups,
    }
    return [str(fault) for fault in check.findings(data, options.keywords())]


FAULTS = """
scheduler: {max_attempts: ['1']}
  nova_conf.scheduler.max_attempts: expected a value of its type, got ['1']
scheduler: {max_attempts: '0'}
  nova_conf.scheduler.max_attempts: expected a value of its type (Should be
DEFAULT: {cpu_allocation_ratio: x}
  nova_conf.DEFAULT.cpu_allocation_ratio: expected a value of its type (
DEFAULT: {allow_resize_to_same_host: [a]}
  nova_conf.DEFAULT.allow_resize_to_same_host: expected a value of its type,
    got ['a']
DEFAULT: {force_config_drive: x}
  nova_conf.DEFAULT.force_config_drive: expected a value of its type
    (Unexpected boolean value 'x'), got 'x'
scheduler: {max_attempt: '3'}
  nova_conf.scheduler.max_attempt: expected an option of [scheduler], got
    max_attempt; did you mean max_attempts?
schedular: {x: '1'}
  nova_conf.schedular.x: expected a group of nova.conf, got schedular; did you
    mean scheduler?
"""


@ddt.ddt
class FaultsTest(unittest.TestCase):
    def test_nothing_stays_set(self):
        before = nova.conf.CONF.scheduler.max_attempts
        faults({'scheduler': {'max_attempts': '77'}})
        self.assertEqual(before, nova.conf.CONF.scheduler.max_attempts)

    @ddt.unpack
    @ddt.data(*tables.read(FAULTS))
    def test_fault(self, groups, beginning):
        (fault,) = faults(groups)
        self.assertEqual(beginning, fault[: len(beginning)])
