# SPDX-License-Identifier: Apache-2.0

"""Tests of what a flavor and an image ask of placement."""

import unittest
from urllib import parse

import ddt
import hypothesis
from hypothesis import strategies as st
from nova import objects as nova_objects
from nova.scheduler import utils as nova_utils
import os_resource_classes

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.policy import extra_specs
from tests.unit.objects import strategies

nova_objects.register_all()

OWN = {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 10}

# Extra specs; the amounts of the group without a suffix.
RESOURCES = [
    ({}, OWN),
    ({'resources:VCPU': '4'}, OWN | {'VCPU': 4}),
    ({'resources:VCPU': '0'}, {'MEMORY_MB': 512, 'DISK_GB': 10}),
    (
        {'resources:PCPU': '2'},
        {'PCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 10},
    ),
    # Named in a granular group: the flavor's own is left out too.
    ({'resources1:MEMORY_MB': '1'}, {'VCPU': 2, 'DISK_GB': 10}),
    ({'resources:CUSTOM_FPGA': '1'}, OWN | {'CUSTOM_FPGA': 1}),
    ({'resources:CUSTOM_FPGA': '0'}, OWN),
    ({'hw:cpu_policy': 'shared', 'resources_VCPU': '4'}, OWN),
]

UNREAD = [
    (
        {'resources:FPGAS': '1'},
        'extra spec resources:FPGAS: expected a standard resource class or '
        "one that begins with CUSTOM_, got 'FPGAS'; nova ignores it",
    ),
    (
        {'resources1:VCPU': '-1'},
        'extra spec resources1:VCPU: expected an integer, 0 or more, got '
        "'-1'; nova ignores it",
    ),
    (
        {'resources:VCPU': 'two'},
        'extra spec resources:VCPU: expected an integer, 0 or more, got '
        "'two'; nova ignores it",
    ),
    (
        {'trait:CUSTOM_SSD': 'preferred'},
        'extra spec trait:CUSTOM_SSD: expected required or forbidden, got '
        "'preferred'; nova ignores it",
    ),
    (
        {'group_policy': 'any'},
        "extra spec group_policy: expected none or isolate, got 'any'; nova "
        'ignores it',
    ),
]


@ddt.ddt
class ReadTest(unittest.TestCase):
    @ddt.idata(RESOURCES)
    @ddt.unpack
    def test_resources(self, specs, expected):
        wanted = extra_specs.read(specs, own=OWN)
        self.assertEqual(expected, wanted.groups[''].resources)
        self.assertEqual([], wanted.unread)

    @ddt.idata(UNREAD)
    @ddt.unpack
    def test_what_nova_ignores_is_reported(self, specs, sentence):
        wanted = extra_specs.read(specs, own=OWN)
        self.assertEqual([sentence], wanted.unread)
        self.assertEqual(extra_specs.read({}, own=OWN).groups, wanted.groups)
        self.assertIsNone(wanted.group_policy)

    def test_traits_of_flavor_and_image(self):
        wanted = extra_specs.read(
            {
                'trait:A': 'required',
                'trait:B': 'forbidden',
                'trait_NET:C': 'required',
                'trait_NET:D': 'forbidden',
            },
            {
                'trait:E': 'required',
                'trait:F': 'forbidden',
                'trait1:G': 'required',
                'os_type': 'linux',
            },
        )
        self.assertEqual(
            {
                '': extra_specs.Group(
                    required_traits={'A', 'E'}, forbidden_traits={'B'}
                ),
                '_NET': extra_specs.Group(
                    required_traits={'C'}, forbidden_traits={'D'}
                ),
            },
            wanted.groups,
        )
        self.assertEqual({'A', 'C', 'E'}, wanted.required_traits())

    @ddt.data(
        ({}, {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 5}),
        ({'ephemeral_gb': 2, 'swap_mb': 1024}, {'DISK_GB': 8}),
        ({'swap_mb': 1}, {'DISK_GB': 6}),
        ({'swap_mb': 1025, 'boots_from_volume': True}, {'DISK_GB': 2}),
    )
    @ddt.unpack
    def test_own_resources(self, more, expected):
        own = extra_specs.own_resources(vcpus=1, ram_mb=64, root_gb=5, **more)
        self.assertEqual(own | expected, own)


_CLASSES = st.one_of(
    st.sampled_from(['VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB']),
    st.sampled_from(os_resource_classes.STANDARDS),
    st.from_regex(r'CUSTOM_[A-Z0-9_]{1,8}', fullmatch=True),
    st.sampled_from(['FPGAS', 'vcpu', '']),
)
_SUFFIXES = st.one_of(
    st.sampled_from(['', '', '', '1', '2', '_NET', 'a-b']),
    strategies.suffixes,
)
_AMOUNTS = st.one_of(
    st.integers(min_value=0, max_value=64).map(str),
    st.sampled_from(['-1', 'x', '1.5', '', ' 3', '1_0', '0']),
)
_EXTRA_SPECS = st.dictionaries(
    st.one_of(
        st.builds('resources{}:{}'.format, _SUFFIXES, _CLASSES),
        st.builds('trait{}:{}'.format, _SUFFIXES, strategies.traits),
        st.sampled_from(
            ['group_policy', 'quota:cpu_shares', 'resources', 'traits:X']
        ),
    ),
    st.one_of(
        _AMOUNTS,
        st.sampled_from(['required', 'forbidden', 'Required', 'none']),
        st.sampled_from(['required', 'isolate']),
    ),
    max_size=8,
)
_IMAGE_PROPERTIES = st.dictionaries(
    st.one_of(
        strategies.traits.map('trait:'.__add__),
        st.sampled_from(['trait1:X', 'vendor', 'traits:X']),
    ),
    st.sampled_from(['required', 'forbidden', 'linux']),
    max_size=4,
)
_SIZES = st.fixed_dictionaries(
    {
        'vcpus': st.integers(0, 8),
        'memory_mb': st.integers(0, 4096),
        'root_gb': st.integers(0, 20),
        'ephemeral_gb': st.integers(0, 5),
        'swap': st.integers(0, 3000),
    }
)


class NovaEquivalenceTest(unittest.TestCase):
    """The same request as nova's ResourceRequest builds.

    Compared as parsed queries: nova writes an empty ``resources`` parameter
    for a group that asks for traits alone, which says nothing.
    """

    maxDiff = None

    def assert_nova_builds(self, ours, nova_request):
        nova_query = nova_request.to_querystring()
        self.assertEqual(
            parse.parse_qs(nova_query), parse.parse_qs(ours.to_querystring())
        )
        self.assertEqual(
            objects.AllocationCandidatesRequest.from_queryparams(
                parse.parse_qsl(nova_query)
            ),
            ours,
        )

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        specs=_EXTRA_SPECS,
        properties=_IMAGE_PROPERTIES,
        sizes=_SIZES,
        is_bfv=st.booleans(),
    )
    def test_flavor_and_image(self, specs, properties, sizes, is_bfv):
        own = extra_specs.own_resources(
            vcpus=sizes['vcpus'],
            ram_mb=sizes['memory_mb'],
            root_gb=sizes['root_gb'],
            ephemeral_gb=sizes['ephemeral_gb'],
            swap_mb=sizes['swap'],
            boots_from_volume=is_bfv,
        )
        wanted = extra_specs.read(specs, properties, own)
        hypothesis.assume(wanted.groups)
        flavor = nova_objects.Flavor(
            flavorid='1', name='f', extra_specs=specs, **sizes
        )
        image = nova_objects.ImageMeta(
            properties=nova_objects.ImageMetaProps.from_dict(properties)
        )
        nova_request = nova_utils.ResourceRequest.from_request_spec(
            nova_objects.RequestSpec(
                flavor=flavor,
                image=image,
                is_bfv=is_bfv,
                request_level_params=nova_objects.RequestLevelParams(),
            )
        )
        self.assert_nova_builds(
            objects.AllocationCandidatesRequest.from_wanted(
                wanted, limit=1000
            ),
            nova_request,
        )
        self.assertEqual(
            nova_request.all_required_traits, wanted.required_traits()
        )

    @hypothesis.settings(deadline=None, max_examples=100)
    @hypothesis.given(strategies.requests())
    def test_aggregates_trees_and_subtrees(self, request):
        nova_request = nova_utils.ResourceRequest.from_request_groups(
            [
                nova_objects.RequestGroup(
                    requester_id=group.suffix or None,
                    resources=dict(group.resources),
                    required_traits=set(group.required_traits),
                    forbidden_traits=set(group.forbidden_traits),
                    aggregates=group.required_aggregates,
                    forbidden_aggregates=set(group.forbidden_aggregates),
                    in_tree=group.in_tree,
                )
                for group in request.groups
                if group.suffix
            ],
            nova_objects.RequestLevelParams(
                root_required=set(request.root_required),
                root_forbidden=set(request.root_forbidden),
                same_subtree=[list(s) for s in request.same_subtree],
            ),
            request.group_policy,
        )
        for group in request.groups:
            if not group.suffix:
                unsuffixed = nova_request.get_request_group(None)
                unsuffixed.resources = dict(group.resources)
                unsuffixed.required_traits = set(group.required_traits)
                unsuffixed.forbidden_traits = set(group.forbidden_traits)
                unsuffixed.aggregates = group.required_aggregates
                unsuffixed.forbidden_aggregates = set(
                    group.forbidden_aggregates
                )
                unsuffixed.in_tree = group.in_tree
        nova_request._group_policy = request.group_policy
        nova_request._limit = request.limit
        self.assert_nova_builds(request, nova_request)

    def test_what_nova_passes_on_and_placement_refuses(self):
        for specs in (
            {'trait:lower': 'required'},
            {'trait:A,B': 'forbidden'},
            {'resources:CUSTOM_lower': '1'},
        ):
            wanted = extra_specs.read(specs, own=OWN)
            with self.assertRaises(exception.InvalidValue):
                objects.AllocationCandidatesRequest.from_wanted(wanted)
