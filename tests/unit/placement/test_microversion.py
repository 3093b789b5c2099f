# SPDX-License-Identifier: Apache-2.0

"""Tests of which microversion each part of a request needs."""

import unittest

import ddt

from nova_ext_sched import objects
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
    ({}, '1.25'),
    ({'limit': 5}, '1.25'),
    ({'group_policy': 'none'}, '1.25'),
    ({'root_required': ['A']}, '1.35'),
    ({'root_forbidden': ['A']}, '1.35'),
    ({'same_subtree': [['1']]}, '1.36'),
]


def least(features):
    return microversion.show(max(feature.least for feature in features))


@ddt.ddt
class MicroversionTest(unittest.TestCase):
    @ddt.idata(GROUPS)
    @ddt.unpack
    def test_group(self, asked, candidates, providers):
        if providers is not None:
            group = objects.RequestGroup(**asked)
            self.assertEqual(
                providers, least(microversion.of_providers(group))
            )
        if candidates is not None:
            group = objects.RequestGroup(**{'resources': {'VCPU': 1}} | asked)
            request = objects.AllocationCandidatesRequest(groups=[group])
            self.assertEqual(
                candidates, least(microversion.of_candidates(request))
            )

    @ddt.idata(REQUESTS)
    @ddt.unpack
    def test_request(self, asked, expected):
        group = objects.RequestGroup(suffix='1', resources={'VCPU': 1})
        request = objects.AllocationCandidatesRequest(groups=[group], **asked)
        self.assertEqual(expected, least(microversion.of_candidates(request)))

    def test_limit(self):
        request = objects.AllocationCandidatesRequest(
            groups=[objects.RequestGroup(resources={'VCPU': 1})], limit=5
        )
        self.assertEqual('1.16', least(microversion.of_candidates(request)))

    def test_a_group_without_resources(self):
        request = objects.AllocationCandidatesRequest(
            groups=[
                objects.RequestGroup(suffix='1', resources={'VCPU': 1}),
                objects.RequestGroup(suffix='2', required_traits={'A'}),
            ]
        )
        self.assertEqual('1.36', least(microversion.of_candidates(request)))

    def test_unsupported(self):
        server = microversion.Range((1, 0), (1, 31))
        features = {
            microversion.Feature.ROOT_REQUIRED,
            microversion.Feature.FORBIDDEN_AGGREGATES,
            microversion.Feature.CANDIDATES_IN_TREE,
        }
        self.assertEqual(
            [
                microversion.Feature.FORBIDDEN_AGGREGATES,
                microversion.Feature.ROOT_REQUIRED,
            ],
            server.unsupported(features),
        )

    def test_a_server_newer_than_this_client(self):
        server = microversion.Range((1, 0), (1, 99))
        self.assertEqual(microversion.KNOWN, server.usable)

    @ddt.data('1', '1.2.3', 'latest', '')
    def test_parse_refuses(self, text):
        self.assertRaises(ValueError, microversion.parse, text)
