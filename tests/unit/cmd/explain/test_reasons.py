# SPDX-License-Identifier: Apache-2.0

import collections
import types
from unittest import mock

import ddt
from nova import objects
import nova.conf
from nova.scheduler import filters
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons
from nova_ext_sched.filters import base as filters_base
from nova_ext_sched.filters import blazar
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from tests.unit.filters import base as filters_unit
from tests.unit.request_filters import base

BAD = declaration.Policy(name='bad', refuses='are bad')
GOOD = declaration.Policy(
    name='good', refuses='are not good', lacks='lack a good one'
)
FILTERS = [blazar.BlazarFilter, isolation_filter.IsolatedAggregatesFilter]

Aggregate = collections.namedtuple('Aggregate', 'uuid name hosts metadata')

AGGREGATES = [
    Aggregate('u1', 'windows', ['h1'], {'trait:X': 'required', 'trait:Y': ''}),
    Aggregate('u2', 'gpu\n', ['h1', 'h2'], {'reservation:gpu': 'true'}),
    Aggregate('u3', 'freepool', ['h3'], {}),
]


@ddt.ddt
class ReasonsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        self.useFixture(config_fixture.Config(nova.conf.CONF)).config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        classes = {cls.__name__: cls for cls in FILTERS}
        scheduler = mock.Mock(
            aggs_by_id=dict(enumerate(AGGREGATES)),
            filter_cls_map=classes,
            hosts={name: mock.Mock(host=name) for name in ('h1', 'h3')},
        )
        scheduler.aggregates_of = lambda host: [
            one for one in AGGREGATES if host in one.hosts
        ]
        self.reasons = reasons.Reasons(scheduler, base.request_spec())

    @ddt.data(
        ('resources', 'VCPU:4', 'lack VCPU', 'VCPU'),
        ('required', 'T', 'lack the trait T', ''),
        ('root_required', '!T', 'have the forbidden trait T', ''),
        (
            'root_required',
            '!COMPUTE_STATUS_DISABLED',
            'are disabled',
            'disabled service',
        ),
        (
            'member_of',
            'in:u1,u9',
            'are in none of the aggregates u9, windows',
            '',
        ),
        ('in_tree', 'r1', 'are not the requested host', 'requested host'),
        (
            'group',
            '1: resources=PGPU%3A1',
            'lack a provider for group 1: resources=PGPU:1',
            '',
        ),
    )
    @ddt.unpack
    def test_lacking(self, key, value, kind, cause):
        found = self.reasons.lacking(query.Part(key, value))
        self.assertEqual((kind, cause), (found.kind, found.cause))

    def test_a_trait_that_only_isolated_hosts_have(self):
        part = query.Part('root_required', '!X')
        found = self.reasons.lacking(part, isolation.DECLARATION)
        self.assertEqual('are isolated', found.kind)
        self.assertIn('forbid_by_trait', found.detail)

    @ddt.data(
        # The policy's words, with the trait that is missing alone.
        (
            'h1',
            'isolate_aggregates',
            '!in:u1',
            'are isolated',
            'windows',
            'aggregate windows is isolated and the request does not require X',
        ),
        (
            'h3',
            'blazar_reservations',
            '!in:u3',
            'are managed by Blazar',
            'freepool',
            'aggregate freepool is a pool of Blazar (of free hosts) and the '
            'request names no reservation',
        ),
        # Another filter's aggregate: not isolated, whatever its traits.
        (
            'h1',
            'theirs',
            '!in:u1',
            'are in an aggregate that theirs forbids',
            'windows',
            '',
        ),
        (
            'h1',
            'isolate_aggregates',
            '!in:u9',
            'are isolated',
            '',
            'by an aggregate only placement knows',
        ),
        # The first by name, of those that the part names.
        (
            'h1',
            'theirs',
            '!in:u1,U2',
            'are in an aggregate that theirs forbids',
            "'gpu\\n'",
            '',
        ),
    )
    @ddt.unpack
    def test_forbidding(self, host, name, value, kind, shown, detail):
        part = query.Part('member_of', value)
        policy = policies.of_request_filter(
            types.SimpleNamespace(__name__=name), FILTERS
        )
        cause = policy.name if policy else ''
        found = self.reasons.forbidding(name, policy, part, [host])[host]
        self.assertEqual(
            (kind, cause, shown, detail),
            (found.kind, found.cause, found.name, found.detail),
        )

    @ddt.data(
        ('member_of', '!in:u1,u2', "not in aggregates 'gpu\\n', windows"),
        ('member_of', 'in:u1', 'in one of aggregates windows'),
        ('resources', 'VCPU:4', 'resources=VCPU:4'),
    )
    @ddt.unpack
    def test_describe(self, key, value, expected):
        part = query.Part(key, value)
        self.assertEqual(expected, self.reasons.describe(part))


class PairFilter(filters_base.AggregatesFilter):
    """Two policies: no aggregate may be bad, and one must be good."""

    policies = (BAD, GOOD)

    def decisions(self, spec_obj):
        def judge_bad(aggregates):
            for name, metadata in aggregates:
                if 'bad' in metadata:
                    return verdict.reject(f'{name} is bad')
            return verdict.PASS

        def judge_good(aggregates):
            if any('good' in metadata for _, metadata in aggregates):
                return verdict.PASS
            return verdict.reject('no good one')

        yield BAD, judge_bad
        yield GOOD, judge_good


class PlainFilter(filters.BaseHostFilter):
    def filter_all(self, states, spec_obj):
        return None


class PlainDeclaredFilter(PlainFilter):
    policies = (BAD,)


class NumberFilter(filters_base.PolicyFilter):
    policies = (GOOD,)

    def judge(self, spec_obj):
        return lambda state: verdict.reject(f'{state.host} is odd')


class ComputeFilter(PlainFilter):
    """nova's name counts."""


LACKING = funnel.Refusal('lack a good one', 'good', '', 'no good one')


@ddt.ddt
class ExplainFilterTestCase(testtools.TestCase):
    def explain(self, host_filter, *metadata, **fields):
        state = filters_unit.host_state(
            'host1',
            *(
                objects.Aggregate(name=f'agg{number}', metadata=one)
                for number, one in enumerate(metadata)
            ),
        )
        vars(state).update(fields)
        found = reasons.ask_filter(host_filter, base.request_spec(), [state])
        return tuple(found[state.uuid])

    @ddt.data(
        # The first policy that refuses, its aggregate, and the others.
        (
            [{'good': ''}, {'bad': ''}],
            ('are bad', 'bad', 'agg1', 'agg1 is bad'),
        ),
        ([{}], ('lack a good one', 'good', '', 'no good one')),
        ([], ('lack a good one', 'good', '', 'no good one')),
        ([{'bad': ''}], ('are bad', 'bad', 'agg0', 'agg0 is bad', (LACKING,))),
    )
    @ddt.unpack
    def test_two_policies(self, metadata, expected):
        self.assertEqual(
            funnel.Refusal(*expected), self.explain(PairFilter(), *metadata)
        )

    def test_a_policy_of_its_own_name(self):
        self.assertEqual(
            funnel.Refusal('are refused by PlainFilter', 'PlainFilter'),
            self.explain(PlainFilter()),
        )

    def test_declared_and_nothing_more(self):
        self.assertEqual(
            funnel.Refusal('are bad', 'bad'),
            self.explain(PlainDeclaredFilter()),
        )

    def test_words_for_a_host(self):
        self.assertEqual(
            funnel.Refusal('are not good', 'good', '', 'host1 is odd'),
            self.explain(NumberFilter()),
        )

    @ddt.data(
        (True, ('are disabled', 'disabled service', '', '')),
        (False, ('are down', 'service that is down', '', '')),
    )
    @ddt.unpack
    def test_services(self, disabled, expected):
        self.assertEqual(
            funnel.Refusal(*expected),
            self.explain(ComputeFilter(), service={'disabled': disabled}),
        )

    def test_nothing_refused(self):
        found = reasons.ask_filter(NumberFilter(), base.request_spec(), [])
        self.assertEqual({}, found)
