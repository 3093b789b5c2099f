# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from nova import objects
import nova.conf
from nova.scheduler import filters
from nova.scheduler import request_filter
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.filters import base as filters_base
from nova_ext_sched.filters import blazar
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from nova_ext_sched.request_filters import isolation as isolation_request
from tests.unit.dryrun.cloud import clouds
from tests.unit.filters import base as filters_unit
from tests.unit.request_filters import base

BAD = declaration.Policy(name='bad', refuses='are bad')
GOOD = declaration.Policy(
    name='good', refuses='are not good', lacks='lack a good one', closes=True
)
FILTERS = [blazar.BlazarFilter, isolation_filter.IsolatedAggregatesFilter]

AGGREGATES = [
    objects.Aggregate(uuid=uuid, name=name, hosts=hosts, metadata=metadata)
    for uuid, name, hosts, metadata in (
        ('u1', 'windows', ['h1'], {'trait:X': 'required', 'trait:Y': ''}),
        ('u2', 'gpu\n', ['h1', 'h2'], {'reservation:gpu': 'true'}),
        ('u3', 'freepool', ['h3'], {}),
    )
]


def function(name, **attributes):
    return types.SimpleNamespace(__name__=name, **attributes)


class ReasonsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        self.useFixture(config_fixture.Config(nova.conf.CONF)).config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        classes = {cls.__name__: cls for cls in FILTERS}
        cloud = clouds.stub(
            {'h1': 'h1', 'h3': 'h3'},
            filter_cls_map=classes,
            aggs_by_id=dict(enumerate(AGGREGATES)),
            aggregates_of=lambda host: [
                one for one in AGGREGATES if host in one.hosts
            ],
        )
        spec = base.request_spec(availability_zone='az1')
        self.reasons = reasons.Reasons(cloud, spec)

    def test_lacking(self):
        zone = reasons.AVAILABILITY_ZONE
        for key, value, policy, phrase, cause, label in (
            ('resources', 'VCPU:4', None, 'lack VCPU', 'VCPU', ''),
            ('resources', 'CUSTOM_MINE:4', None, 'lack CUSTOM_MINE',
             'CUSTOM_MINE', 'custom resource'),
            ('required', 'T', None, 'lack the trait T', '', ''),
            ('root_required', '!T', None, 'have the forbidden trait T', '',
             ''),
            ('member_of', 'in:u1,u9', None,
             'are in none of the aggregates u9, windows', '', ''),
            ('in_tree', 'r1', None, 'are not the requested host',
             'requested host', ''),
            ('group', '1: resources=PGPU%3A1', None,
             'lack a provider for group 1: resources=PGPU:1', '', ''),
            # A zone goes by its name: its aggregates have names that no user
            # knows.
            ('member_of', 'in:u1,u9', zone,
             'are not in the availability zone az1', zone.name, ''),
            # A trait that only isolated hosts have.
            ('root_required', '!X', isolation.DECLARATION, 'are isolated',
             isolation.DECLARATION.name, ''),
        ):  # fmt: skip
            found = self.reasons.refuse_lacking(query.Part(key, value), policy)
            words = found.phrase, found.cause, found.label
            self.assertEqual((phrase, cause, label), words)
        self.assertIn('forbid_by_trait', found.detail)

    def test_cause_and_label_of_a_part(self):
        traits = 'required traits'
        for key, value, cause, label in (
            # A member writes any of these.
            ('required', 'CUSTOM_A', 'trait CUSTOM_A', traits),
            ('root_required', '!CUSTOM_A', 'forbidden trait CUSTOM_A', traits),
            ('group', '1: required=CUSTOM_A', '', 'other'),
            ('member_of', 'in:u1', '', 'other'),
        ):
            part = query.Part(key, value)
            self.assertEqual((cause, label), reasons.name_part(part))
            self.assertIn(cause, self.reasons.refuse_lacking(part).phrase)

    def test_forbidding(self):
        theirs = 'are in an aggregate that theirs forbids'
        for host, name, value, *expected in (
            # The policy's words, with the trait that is missing alone.
            ('h1', 'isolate_aggregates', '!in:u1', 'are isolated',
             'isolation', 'windows',
             'the request is not allowed in windows: it does not require X'),
            ('h3', 'blazar_reservations', '!in:u3', 'are managed by Blazar',
             'blazar', 'freepool',
             'aggregate freepool is a pool of Blazar (of free hosts) and the '
             'request names no reservation'),
            # Another filter's: not isolated, whatever its traits.
            ('h1', 'theirs', '!in:u1', theirs, '', 'windows', ''),
            # All of those that the part names.
            ('h1', 'theirs', '!in:u1,U2', theirs, '',
             "'gpu\\n' and windows", ''),
        ):  # fmt: skip
            part = query.Part('member_of', value)
            policy = reasons.policy_of_request_filter(function(name), FILTERS)
            found = self.reasons.refuse_forbidden(name, policy, part, [host])[
                host
            ]
            self.assertEqual(tuple(expected), found[:4])

    def test_say(self):
        for key, value, expected in (
            ('member_of', '!in:u1,u2', "not in aggregates 'gpu\\n', windows"),
            ('member_of', 'in:u1', 'in one of aggregates windows'),
            ('resources', 'VCPU:4', 'resources=VCPU:4'),
        ):
            found = self.reasons.say([query.Part(key, value)])
            self.assertEqual(expected, found)


class PairFilter(filters_base.PolicyFilter):
    """Two policies: no aggregate may be bad, and one must be good."""

    policies = (BAD, GOOD)

    def decisions(self, spec_obj):
        def judge_bad(aggregates):
            bad = [one.name for one in aggregates if 'bad' in one.metadata]
            if not bad:
                return verdict.PASS
            return verdict.reject(f'{bad[0]} is bad', aggregate=bad[0])

        def judge_good(aggregates):
            if any('good' in one.metadata for one in aggregates):
                return verdict.PASS
            return verdict.reject('no good one', lacks=True)

        yield BAD, filters_base.ByAggregates(judge_bad)
        yield GOOD, filters_base.ByAggregates(judge_good)


class PlainFilter(filters.BaseHostFilter):
    def filter_all(self, states, spec_obj):
        return None


class PlainDeclaredFilter(PlainFilter):
    policies = (BAD,)


class NumberFilter(filters_base.PolicyFilter):
    policies = (GOOD,)

    def decisions(self, spec_obj):
        yield GOOD, lambda state: verdict.reject(f'{state.host} is odd')


class ComputeFilter(PlainFilter):
    """nova's name counts."""


LACKING = refusals.Refusal('lack a good one', 'good', '', 'no good one')


@ddt.ddt
class ExplainFilterTestCase(testtools.TestCase):
    def explain(self, host_filter, *metadata, **fields):
        aggregates = (
            objects.Aggregate(name=f'agg{number}', metadata=one)
            for number, one in enumerate(metadata)
        )
        state = filters_unit.host_state('host1', *aggregates)
        vars(state).update(fields)
        found = reasons.ask_filter(host_filter, base.request_spec(), [state])
        return tuple(found[state.uuid])

    def test_what_filters_say(self):
        good = LACKING[:4]
        for host_filter, metadata, *expected in (
            # The first policy that refuses, its aggregate, and the others.
            (PairFilter(), [{'good': ''}, {'bad': ''}],
             *('are bad', 'bad', 'agg1', 'agg1 is bad')),
            (PairFilter(), [{}], *good),
            (PairFilter(), [], *good),
            (PairFilter(), [{'bad': ''}],
             *('are bad', 'bad', 'agg0', 'agg0 is bad', (LACKING,))),
            (PlainFilter(), [], 'are refused by PlainFilter', 'PlainFilter'),
            # What it declares, and nothing more.
            (PlainDeclaredFilter(), [], 'are bad', 'bad'),
            (NumberFilter(), [], 'are not good', 'good', '', 'host1 is odd'),
        ):  # fmt: skip
            found = self.explain(host_filter, *metadata)
            # A host in no good aggregate is not closed to others.
            is_closed = expected[0] == 'are not good'
            rank = refusals.CLOSED if is_closed else refusals.IN_THE_WAY
            self.assertEqual(refusals.Refusal(*expected, rank=rank), found)

    def test_services(self):
        for disabled, *expected in (
            (True, 'are disabled', 'disabled service', '', ''),
            (False, 'are down', 'service that is down', '', ''),
        ):
            service = {'disabled': disabled}
            found = self.explain(ComputeFilter(), service=service)
            self.assertEqual(tuple(expected), found[:4])

    @ddt.data(
        # Who disabled it; whether that is to be enabled by the command.
        ('', [('policy', False)]),
        ('broken disk', [('policy', False)]),
        ('AUTO: Connection to libvirt lost: 1', [('repair', True)]),
        ('nova-ext-sched: being emptied, by the plan of x', []),
        ('nova-ext-sched: making room, by the plan of x', []),
    )
    @ddt.unpack
    def test_who_disabled_a_service(self, reason, expected):
        found = reasons.disabled({'disabled_reason': reason})
        acts = [(one.kind, one.by_command) for one in found.acts]
        self.assertEqual(expected, acts)

    def test_a_service_that_is_forced_down(self):
        service = {'disabled': False, 'forced_down': True}
        found = self.explain(ComputeFilter(), service=service)
        found = refusals.Refusal(*found)
        self.assertEqual(
            [('policy', False)],
            [(one.kind, one.by_command) for one in found.acts],
        )


QUIET = declaration.Policy(
    name='quiet', refuses='are quiet', request_filter='quiet_aggregates'
)


class QuietFilter(filters.BaseHostFilter):
    policies = (QUIET,)


class PoliciesTestCase(testtools.TestCase):
    def test_request_filter(self):
        classes = [isolation_filter.IsolatedAggregatesFilter, QuietFilter]
        nova = request_filter
        for filter_, expected in (
            (isolation_request.isolate_aggregates, isolation.DECLARATION),
            # nova's of the same name is the same policy.
            (nova.isolate_aggregates, isolation.DECLARATION),
            (nova.require_tenant_aggregate, reasons.TENANT),
            (nova.map_az_to_placement_aggregate, reasons.AVAILABILITY_ZONE),
            (nova.compute_status_filter, reasons.DISABLED),
            # By the declaration of the host filter, or its own.
            (function('quiet_aggregates'), QUIET),
            (function('other_name', policies=(QUIET,)), QUIET),
            (function('accelerators_filter'), None),
        ):
            found = reasons.policy_of_request_filter(filter_, classes)
            self.assertIs(expected, found)

    def test_host_filter_of_two_policies(self):
        both = isolation_filter.IsolatedAggregatesFilter()
        found = reasons.policy_of_host_filter(both)
        self.assertIs(isolation.DECLARATION, found)

    def test_novas_filters_exist(self):
        """A name that nova no longer has would explain nothing."""
        names = {cls.__name__ for cls in filters.all_filters()}
        for policy in reasons.NOVA:
            self.assertTrue(hasattr(request_filter, policy.request_filter))
            if policy.host_filter:
                self.assertIn(policy.host_filter, names)
