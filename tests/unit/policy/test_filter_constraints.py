# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import filter_constraints
from nova_ext_sched.policy import placement_query
from nova_ext_sched.policy import scheduling

WINDOWS = explanation.Aggregate(
    'uuid-windows', 'windows', {'trait:CUSTOM_WINDOWS': 'required'}
)
SSD = explanation.Aggregate('uuid-ssd', 'ssd', {'disk': 'ssd'})
RESERVED = explanation.Aggregate('uuid-r', 'r', {'reservation:1': ''})
GROUP = scheduling.ServerGroup(
    'uuid-group', 'db', 'anti-affinity', {'max_server_per_host': 2}, 'abc'
)


def host(*aggregates, **changes):
    return explanation.Host(
        'h', 'h', 'uuid-h', aggregates=aggregates, **changes
    )


def build(filters, members=None, options=None, **changes):
    request = scheduling.Request(
        **{'flavor': 'f', 'vcpus': 1, 'ram_mb': 1, 'root_gb': 0} | changes
    )
    options = scheduling.Options(enabled_filters=filters, **(options or {}))
    query = placement_query.plan(request, options, [WINDOWS], ())
    return filter_constraints.constraints(
        request, options, query, [WINDOWS], members or {}
    )


ISOLATION = {'enable_isolated_aggregate_filtering': True}
RESERVATION = {
    'placement_req_required_member_prefix': ['reservation:'],
    'placement_req_default_forbidden_member_prefix': ['reservation:'],
}


@ddt.ddt
class ConstraintsTest(unittest.TestCase):
    def judge(self, constraints, subject):
        """Return the only constraint's refusal, as phrase and reason."""
        ((constraint,), unknown) = constraints
        self.assertEqual([], unknown)
        refusal = constraint.judge(subject)
        return refusal and (refusal.phrase, refusal.reason)

    @ddt.data(
        ({}, None),
        ({'up': False}, ('are down', 'nova-compute is down')),
        (
            {'enabled': False},
            ('are disabled', 'nova-compute is disabled: no reason is given'),
        ),
        (
            {'enabled': False, 'disabled_reason': 'disk', 'up': False},
            ('are disabled', 'nova-compute is disabled: disk'),
        ),
    )
    @ddt.unpack
    def test_compute(self, changes, expected):
        found = build(['ComputeFilter'])
        self.assertEqual(expected, self.judge(found, host(**changes)))

    @ddt.data(
        ({}, [WINDOWS], True),
        ({'trait:CUSTOM_WINDOWS': 'required'}, [WINDOWS], False),
        ({}, [SSD], False),
        ({}, [], False),
    )
    @ddt.unpack
    def test_isolation(self, specs, aggregates, refused):
        found = build(
            ['IsolatedAggregatesFilter'], options=ISOLATION, extra_specs=specs
        )
        expected = refused and (
            'are isolated by aggregate windows (trait CUSTOM_WINDOWS)',
            'aggregate windows is isolated and the request does not require '
            'CUSTOM_WINDOWS',
        )
        self.assertEqual(
            expected or None, self.judge(found, host(*aggregates))
        )

    def test_isolation_is_off(self):
        self.assertEqual(([], []), build(['IsolatedAggregatesFilter']))

    @ddt.data(
        ({}, [RESERVED], 'aggregate r is reserved by reservation:1'),
        ({'reservation:1': ''}, [RESERVED], None),
        ({'reservation:1': ''}, [], 'no aggregate of the host has the'),
        ({}, [], None),
    )
    @ddt.unpack
    def test_reservation(self, specs, aggregates, reason):
        found = build(
            ['IsolatedAggregatesFilter'],
            options=RESERVATION,
            extra_specs=specs,
        )
        refusal = self.judge(found, host(*aggregates))
        if reason is None:
            self.assertIsNone(refusal)
        else:
            self.assertEqual('are refused by reserved aggregates', refusal[0])
            self.assertIn(reason, refusal[1])

    @ddt.data(
        ('ssd', [SSD], None),
        ('hdd', [SSD], "wants 'hdd' of 'disk' and its aggregates offer 'ssd'"),
        ('ssd', [], 'offer no such key'),
    )
    @ddt.unpack
    def test_extra_specs(self, wanted, aggregates, reason):
        found = build(
            ['AggregateInstanceTypeFilter'], extra_specs={'disk': wanted}
        )
        refusal = self.judge(found, host(*aggregates))
        if reason is None:
            self.assertIsNone(refusal)
        else:
            self.assertEqual(
                'are refused by the extra specs of flavor f', refusal[0]
            )
            self.assertIn(reason, refusal[1])

    @ddt.data(
        # members on the host, the server itself, refused
        ('', None, False),
        ('a', None, False),
        ('ab', None, True),
        ('ab', 'a', False),
        ('xy', None, False),
    )
    @ddt.unpack
    def test_anti_affinity(self, held, server, refused):
        found = build(
            ['ServerGroupAntiAffinityFilter'],
            members={'h': list(held)},
            group=GROUP,
            server=server,
        )
        expected = refused and (
            'are refused by the anti-affinity of server group db',
            'the host holds 2 of server group db, max_server_per_host is 2',
        )
        self.assertEqual(expected or None, self.judge(found, host()))

    def test_other_policies_are_not_judged(self):
        group = scheduling.ServerGroup('u', 'g', 'affinity')
        self.assertEqual(
            ([], []), build(['ServerGroupAntiAffinityFilter'], group=group)
        )

    def test_order_and_unknown_filters(self):
        found, unknown = build(
            [
                'OddFilter',
                'IsolatedAggregatesFilter',
                'ComputeFilter',
            ],
            options=ISOLATION,
        )
        self.assertEqual(['OddFilter'], unknown)
        self.assertEqual(
            ['IsolatedAggregatesFilter', 'ComputeFilter'],
            [constraint.words.partition(':')[0] for constraint in found],
        )

    def test_forced_host_meets_no_host_filter(self):
        self.assertEqual(
            ([], []), build(['ComputeFilter', 'Other'], host='h', forced=True)
        )
