# SPDX-License-Identifier: Apache-2.0

"""Tests of RequestGroup."""

import json
import unittest
from urllib import parse

import ddt
import hypothesis
from hypothesis import strategies as st

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.objects import base
from tests.unit.objects import strategies

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
C = 'cccccccc-0000-4000-8000-000000000003'
D = 'dddddddd-0000-4000-8000-000000000004'

ALL = {
    'suffix': '_net-1',
    'resources': {'SRIOV_NET_VF': 1},
    'required_traits': {'CUSTOM_PHYSNET_1'},
    'required_aggregates': [[A]],
    'forbidden_aggregates': {B},
    'in_tree': C,
}

# What is asked; the query that it builds, not encoded.
QUERIES = [
    ({}, ''),
    ({'resources': {'VCPU': 2, 'MEMORY_MB': 1024}},
     'resources=MEMORY_MB:1024,VCPU:2'),
    ({'required_traits': {'B', 'A'}, 'forbidden_traits': {'D', 'C'}},
     'required=A,B,!C,!D'),
    (
        # specs/negative-aggregate-membership: in A or B, in C, not in D.
        {'required_aggregates': [[C], [B, A]], 'forbidden_aggregates': {D}},
        f'member_of=!in:{D}&member_of=in:{A},{B}&member_of=in:{C}',
    ),
    ({'required_aggregates': [[A, B], [B, A, A]]}, f'member_of=in:{A},{B}'),
    (ALL,
     f'in_tree_net-1={C}&member_of_net-1=!in:{B}&member_of_net-1=in:{A}&'
     'required_net-1=CUSTOM_PHYSNET_1&resources_net-1=SRIOV_NET_VF:1'),
]  # fmt: skip

# A field and a value that placement would refuse (test_syntax has the forms);
# the path that is named and the form that is expected.
REFUSED = [
    ({'suffix': 'a b'}, 'suffix', '1 to 64 characters'),
    ({'resources': {'VCPU': 0}}, 'resources VCPU', '1 or more'),
    ({'resources': {'vcpu': 1}}, 'resources', 'resource class name'),
    ({'required_traits': {'A,B'}}, 'required_traits[A,B]', 'trait name'),
    ({'forbidden_traits': {'!SSD'}}, 'forbidden_traits[!SSD]', 'trait name'),
    ({'required_aggregates': [[A], ['windows']]}, 'required_aggregates[1][0]',
     'UUID'),
    ({'forbidden_aggregates': {'!' + A}}, f'forbidden_aggregates[!{A}]',
     'UUID'),
    ({'in_tree': ''}, 'in_tree', 'UUID'),
]  # fmt: skip

# Forms that placement takes, beside those that we build.
PARSED = [
    (f'member_of={A}', {'required_aggregates': [[A]]}),
    (f'member_of=!in:{A}&member_of=!{B}', {'forbidden_aggregates': {A, B}}),
    ('required=!X,A', {'required_traits': {'A'}, 'forbidden_traits': {'X'}}),
    ('resources=VCPU:01', {'resources': {'VCPU': 1}}),
]

ONE_GROUP = 'parameters of one request group'

# What is refused, by the parameter or by the field that it says; the path that
# is named and the form that is expected.
UNPARSED = [
    (f'member_of=in:{A},', 'required_aggregates[0][1]', 'a UUID'),
    (f'member_of=!!{A}', f'forbidden_aggregates[!{A}]', 'a UUID'),
    ('required=!!A', 'forbidden_traits[!A]', 'trait name'),
    # One of several traits came with microversion 1.39.
    ('required=in:A,B', 'required_traits[in:A]', 'trait name'),
    ('required=A&required=B', 'required', 'once'),
    ('resources=VCPU', 'resources VCPU', '1 or more'),
    ('resources=VCPU:1,VCPU:2', 'resources', 'each class once'),
    (f'in_tree={A}&in_tree={B}', 'in_tree', 'once'),
    ('resources1=VCPU:1&required2=A', ONE_GROUP, 'same suffix'),
    ('limit=5', ONE_GROUP, 'resources, required, member_of, in_tree'),
]


def pairs(query):
    """Return the parameters of a query that is not encoded."""
    return [tuple(one.split('=', 1)) for one in query.split('&') if one]


@ddt.ddt
class RequestGroupTest(unittest.TestCase):
    def parse(self, query):
        return objects.RequestGroup.from_queryparams(pairs(query))

    def assertInvalid(self, where, expected, call):
        with self.assertRaises(exception.InvalidValue) as caught:
            call()
        self.assertEqual(where, caught.exception.where)
        self.assertIn(expected, caught.exception.expected)
        self.assertIn(repr(caught.exception.got), str(caught.exception))

    @ddt.idata(QUERIES)
    @ddt.unpack
    def test_query(self, asked, query):
        group = objects.RequestGroup(**asked)
        self.assertEqual(pairs(query), group.to_queryparams())
        self.assertEqual(group, self.parse(query))

    @ddt.idata(REFUSED)
    @ddt.unpack
    def test_refused_when_created_and_when_set(self, asked, where, expected):
        [(name, value)] = asked.items()
        group = objects.RequestGroup()
        for call in (
            lambda: objects.RequestGroup(**asked),
            lambda: setattr(group, name, value),
        ):
            self.assertInvalid(where, expected, call)

    @ddt.idata(PARSED)
    @ddt.unpack
    def test_forms_of_others(self, query, asked):
        self.assertEqual(
            strategies.values(objects.RequestGroup(**asked)),
            strategies.values(self.parse(query)),
        )

    @ddt.idata(UNPARSED)
    @ddt.unpack
    def test_refused_when_parsed(self, query, where, expected):
        self.assertInvalid(where, expected, lambda: self.parse(query))

    def test_exclamation_mark_inside_of_in_is_named_with_what_was_got(self):
        with self.assertRaisesRegex(
            exception.InvalidValue,
            r'^member_of: expected member_of=in:<uuid>,<uuid> for one of '
            r"several and another member_of=!in:.*, got 'in:.*,!.*'$",
        ):
            self.parse(f'member_of=in:{A},!{B}')

    def test_text_shows_what_is_forbidden(self):
        group = objects.RequestGroup(
            suffix='1',
            resources={'VCPU': 2, 'DISK_GB': 5},
            forbidden_traits={'Y'},
            required_aggregates=[[B, A]],
        )
        self.assertEqual(
            f'RequestGroup(member_of1=in:{A},{B}, required1=!Y, '
            'resources1=DISK_GB:5,VCPU:2)',
            str(group),
        )

    def test_upper_case_uuids_are_normalised(self):
        # Placement compares strings: upper case would forbid nothing.
        asked = {
            'required_aggregates': [[A.upper(), A], [B.upper()]],
            'forbidden_aggregates': {C.upper(), C},
            'in_tree': D.upper(),
        }
        created, later = objects.RequestGroup(**asked), objects.RequestGroup()
        for name, value in asked.items():
            setattr(later, name, value)
        later.forbidden_aggregates.add(C.upper())
        parsed = self.parse(
            f'member_of=in:{A.upper()},{A}&member_of={B.upper()}&'
            f'member_of=!{C.upper()}&in_tree={D.upper()}'
        )
        for group in (created, later, parsed):
            self.assertEqual([[A, A], [B]], group.required_aggregates)
            self.assertEqual({C}, group.forbidden_aggregates)
            self.assertEqual(D, group.in_tree)

    @ddt.data(
        (
            {'required_aggregates': [[A], []]},
            'required_aggregates',
            'one aggregate or more',
        ),
        ({'suffix': '1'}, 'request group 1', 'aggregates or in_tree'),
    )
    @ddt.unpack
    def test_refused_when_built(self, asked, where, expected):
        group = objects.RequestGroup(**asked)
        self.assertInvalid(where, expected, group.to_queryparams)

    @hypothesis.given(strategies.request_groups())
    def test_round_trip(self, group):
        params = group.to_queryparams()
        self.assertEqual(sorted(params), params)
        parsed = objects.RequestGroup.from_queryparams(params)
        self.assertEqual(params, parsed.to_queryparams())
        self.assertEqual(group, parsed)
        self.assertEqual(
            params,
            parse.parse_qsl(group.to_querystring(), strict_parsing=True)
            if params
            else [],
        )
        primitive = json.loads(json.dumps(group.obj_to_primitive()))
        restored = base.NovaExtSchedObject.obj_from_primitive(primitive)
        self.assertEqual(strategies.values(group), strategies.values(restored))
        self.assertEqual(group, restored)
        self.assertEqual(group, group.obj_clone())
        self.assertRaises(TypeError, hash, group)

    @hypothesis.given(strategies.request_groups(''), st.data())
    def test_equal_where_the_queries_are(self, group, data):
        other = data.draw(strategies.request_groups(''))
        self.assertEqual(
            group.to_queryparams() == other.to_queryparams(), group == other
        )
        other = group.obj_clone()
        or_sets = [
            data.draw(st.permutations([*uuids, *uuids[:1]]))
            for uuids in group.required_aggregates
        ]
        other.required_aggregates = data.draw(
            st.permutations(or_sets + or_sets[:1])
        )
        self.assertEqual(group, other)
        other.forbidden_aggregates.add(strategies.ANOTHER)
        self.assertNotEqual(group, other)
        self.assertNotEqual(group, other.to_queryparams())

    @hypothesis.given(
        st.lists(
            st.tuples(
                st.sampled_from(['resources', 'required', 'member_of1'])
                | st.text(),
                st.text()
                | st.sampled_from([f'in:{A},!{B}', 'VCPU:1', 'X' * 5000]),
            ),
            max_size=3,
        )
    )
    def test_whatever_is_written_is_told_on_one_line(self, params):
        try:
            group = objects.RequestGroup.from_queryparams(params)
        except exception.InvalidValue as exc:
            self.assertTrue(str(exc).isprintable(), ascii(str(exc)))
            self.assertGreater(5000, len(str(exc)))
        else:
            self.assertTrue(str(group).isprintable())
