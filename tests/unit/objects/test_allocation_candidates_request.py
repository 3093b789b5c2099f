# SPDX-License-Identifier: Apache-2.0

"""Tests of AllocationCandidatesRequest."""

import unittest
from urllib import parse

import ddt
import hypothesis

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.policy import extra_specs
from tests.unit.objects import strategies

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'

REFUSED = [
    ({'groups': []}, 'groups', 'one group or more'),
    (
        {'groups': [objects.RequestGroup(), objects.RequestGroup()]},
        'groups',
        'a suffix of its own',
    ),
    ({'group_policy': 'Isolate'}, 'group_policy', 'none or isolate'),
    ({'limit': 0}, 'limit', '1 or more'),
    ({'root_required': ['x']}, 'root_required', 'trait name'),
    ({'root_forbidden': ['!X']}, 'root_required', 'trait name'),
    ({'same_subtree': [[]]}, 'same_subtree', 'suffixes of groups'),
    ({'same_subtree': [['']]}, 'same_subtree', 'suffixes of groups'),
    ({'same_subtree': [['2']]}, 'same_subtree', '(1)'),
]

UNPARSED = [
    ([('resources', 'VCPU:1'), ('limits', '1')], 'query', 'parameter of GET'),
    ([('limit', '1')], 'groups', 'one group or more'),
    (
        [('resources', 'VCPU:1'), ('limit', '1'), ('limit', '2')],
        'limit',
        'once',
    ),
    ([('resources', 'VCPU:1'), ('limit', '0')], 'limit', '1 or more'),
    ([('resources', 'VCPU:1'), ('limit', 'all')], 'limit', '1 or more'),
    (
        [('resources', 'VCPU:1'), ('root_required', 'in:A,B')],
        'root_required',
        'X,!Y',
    ),
    (
        [('resources1', 'VCPU:1'), ('same_subtree', '1,')],
        'same_subtree',
        'suffixes of groups',
    ),
    (
        [('resources', 'VCPU:1'), ('member_of', f'in:{A},!{B}')],
        'member_of',
        'cannot stand inside',
    ),
]


@ddt.ddt
class AllocationCandidatesRequestTest(unittest.TestCase):
    def test_query(self):
        request = objects.AllocationCandidatesRequest(
            groups=[
                objects.RequestGroup(
                    suffix='2',
                    resources={'VGPU': 1},
                    forbidden_aggregates={B, A},
                ),
                objects.RequestGroup(
                    resources={'VCPU': 1}, required_aggregates=[[A]]
                ),
                objects.RequestGroup(suffix='1', resources={'VGPU': 1}),
            ],
            group_policy='isolate',
            limit=1000,
            root_required={'Y', 'X'},
            root_forbidden={'Z'},
            same_subtree=[['2', '1']],
        )
        self.assertEqual(
            [
                ('group_policy', 'isolate'),
                ('limit', '1000'),
                ('member_of', f'in:{A}'),
                ('member_of2', f'!in:{A},{B}'),
                ('resources', 'VCPU:1'),
                ('resources1', 'VGPU:1'),
                ('resources2', 'VGPU:1'),
                ('root_required', 'X,Y,!Z'),
                ('same_subtree', '1,2'),
            ],
            request.to_queryparams(),
        )
        self.assertIn(
            f'&member_of2=%21in%3A{A}%2C{B}&', request.to_querystring()
        )
        self.assertEqual(
            'RequestGroup(resources=VCPU:1; traits=; '
            f'aggregates=({A})); '
            'RequestGroup1(resources=VGPU:1; traits=; aggregates=); '
            'RequestGroup2(resources=VGPU:1; traits=; '
            f'aggregates=!{A} and !{B}); '
            'root: X and Y and !Z; same subtree: 1, 2; '
            'group_policy=isolate; limit=1000',
            str(request),
        )

    def test_order_makes_no_difference(self):
        groups = [
            objects.RequestGroup(suffix=s, resources={'VCPU': 1})
            for s in ('1', '2')
        ]
        self.assertEqual(
            objects.AllocationCandidatesRequest(
                groups=groups, same_subtree=[['1', '2'], ['2']]
            ),
            objects.AllocationCandidatesRequest(
                groups=reversed(groups), same_subtree=[['2'], ['2', '1']]
            ),
        )

    @ddt.idata(REFUSED)
    @ddt.unpack
    def test_refused(self, asked, where, expected):
        groups = [objects.RequestGroup(suffix='1', resources={'VCPU': 1})]
        with self.assertRaises(exception.InvalidValue) as caught:
            objects.AllocationCandidatesRequest(**{'groups': groups} | asked)
        self.assertEqual(where, caught.exception.where)
        self.assertIn(expected, caught.exception.expected)

    def test_an_empty_group_is_refused_when_built(self):
        request = objects.AllocationCandidatesRequest(
            groups=[
                objects.RequestGroup(),
                objects.RequestGroup(suffix='1', resources={'VCPU': 1}),
            ]
        )
        with self.assertRaises(exception.InvalidValue) as caught:
            request.to_querystring()
        self.assertEqual('groups', caught.exception.where)

    @ddt.idata(UNPARSED)
    @ddt.unpack
    def test_refused_when_parsed(self, params, where, expected):
        with self.assertRaises(exception.InvalidValue) as caught:
            objects.AllocationCandidatesRequest.from_queryparams(params)
        self.assertEqual(where, caught.exception.where)
        self.assertIn(expected, caught.exception.expected)

    def test_from_a_flavor(self):
        wanted = extra_specs.read(
            {
                'resources1:VGPU': '1',
                'trait1:CUSTOM_FAST': 'forbidden',
                'group_policy': 'none',
            },
            {'trait:HW_CPU_X86_AVX2': 'required'},
            extra_specs.own_resources(vcpus=2, ram_mb=512, root_gb=0),
        )
        self.assertEqual(
            [
                ('group_policy', 'none'),
                ('limit', '10'),
                ('required', 'HW_CPU_X86_AVX2'),
                ('required1', '!CUSTOM_FAST'),
                ('resources', 'MEMORY_MB:512,VCPU:2'),
                ('resources1', 'VGPU:1'),
            ],
            objects.AllocationCandidatesRequest.from_wanted(
                wanted, limit=10
            ).to_queryparams(),
        )

    @hypothesis.settings(deadline=None, max_examples=100)
    @hypothesis.given(strategies.requests())
    def test_round_trip(self, request):
        params = request.to_queryparams()
        self.assertEqual(sorted(params), params)
        self.assertEqual(
            request,
            objects.AllocationCandidatesRequest.from_queryparams(
                parse.parse_qsl(request.to_querystring(), strict_parsing=True)
            ),
        )
