# SPDX-License-Identifier: Apache-2.0

"""Tests of which microversion each part of a request needs."""

import unittest

import ddt
from keystoneauth1 import discover

from nova_ext_sched import objects
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import microversion

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'

# A group; the least microversion for candidates, None where placement's
# documentation has no such query; the least for providers.
GROUPS = [
    ({}, None, '1.0'),
    ({'resources': {'VCPU': 1}}, '1.12', '1.4'),
    ({'required_traits': {'A'}}, '1.17', '1.18'),
    ({'forbidden_traits': {'A'}}, '1.22', '1.22'),
    ({'required_aggregates': [[A, B]]}, '1.21', '1.3'),
    ({'required_aggregates': [[A], [B]]}, '1.24', '1.24'),
    ({'required_aggregates': [[A], [A]]}, '1.21', '1.3'),
    ({'forbidden_aggregates': {A}}, '1.32', '1.32'),
    (
        {'required_aggregates': [[A]], 'forbidden_aggregates': {B}},
        '1.32',
        '1.32',
    ),
    ({'in_tree': A}, '1.31', '1.14'),
    ({'suffix': '1'}, '1.25', None),
    ({'suffix': '12'}, '1.25', None),
    ({'suffix': '0'}, '1.33', None),
    ({'suffix': '01'}, '1.33', None),
    ({'suffix': '_NET'}, '1.33', None),
]

# What is asked of a request as a whole; the least microversion.
REQUESTS = [
    ({}, '1.12'),
    ({'limit': 5}, '1.16'),
    ({'group_policy': 'none'}, '1.25'),
]


def least(needs):
    return discover.version_to_string(max(needs.values()))


def candidates(*groups, group_policy=None, limit=None):
    return least(microversion.candidates_needs(groups, group_policy, limit))


@ddt.ddt
class MicroversionTest(unittest.TestCase):
    @ddt.idata(GROUPS)
    @ddt.unpack
    def test_group(self, asked, for_candidates, for_providers):
        if for_providers is not None:
            group = objects.RequestGroup(**asked)
            self.assertEqual(
                for_providers, least(microversion.providers_needs(group))
            )
        if for_candidates is not None:
            group = objects.RequestGroup(**{'resources': {'VCPU': 1}} | asked)
            self.assertEqual(for_candidates, candidates(group))

    @ddt.idata(REQUESTS)
    @ddt.unpack
    def test_request(self, asked, expected):
        group = objects.RequestGroup(resources={'VCPU': 1})
        self.assertEqual(expected, candidates(group, **asked))

    def test_a_group_without_resources(self):
        self.assertEqual(
            '1.36',
            candidates(
                objects.RequestGroup(suffix='1', resources={'VCPU': 1}),
                objects.RequestGroup(suffix='2', required_traits={'A'}),
            ),
        )

    def test_none_later_than_the_client_knows(self):
        server = (1, 0), (1, 99)
        self.assertEqual('1.39', microversion.choose(server, {'a': (1, 32)}))
        with self.assertRaises(errors.MicroversionUnsupported):
            microversion.choose(server, {'a': (1, 40)})

    def test_what_the_server_lacks_is_told_together(self):
        needs = {'b': (1, 35), 'a': (1, 32), 'c': (1, 31)}
        with self.assertRaises(errors.MicroversionUnsupported) as caught:
            microversion.choose(((1, 0), (1, 31)), needs)
        self.assertEqual('1.35', caught.exception.needed)
        self.assertIn(
            'needs microversion 1.35 (a: 1.32, b: 1.35), but the server has '
            '1.0 to 1.31; nothing was sent',
            caught.exception.args[0],
        )
