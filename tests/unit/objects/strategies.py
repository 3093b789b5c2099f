# SPDX-License-Identifier: Apache-2.0

"""What hypothesis draws request groups from."""

import uuid

import hypothesis
from hypothesis import strategies as st

from nova_ext_sched.objects import request_group

_NAME = st.from_regex(r'[A-Z0-9_]{1,12}', fullmatch=True)

uuids = st.uuids().map(str)
# Few enough that sets overlap.
aggregates = st.sampled_from([str(uuid.UUID(int=n)) for n in range(1, 9)])
# Not among them.
ANOTHER = str(uuid.UUID(int=9))
traits = st.one_of(
    _NAME,
    _NAME.map('CUSTOM_'.__add__),
    st.sampled_from(['HW_CPU_X86_AVX2', 'COMPUTE_NODE', 'CUSTOM_SSD']),
)
resources = st.dictionaries(
    st.one_of(_NAME, st.sampled_from(['VCPU', 'MEMORY_MB', 'DISK_GB'])),
    st.integers(min_value=1, max_value=2**31),
    max_size=4,
)
suffixes = st.from_regex(r'[a-zA-Z0-9_-]{1,64}', fullmatch=True)


@st.composite
def request_groups(draw, suffix=None):
    if suffix is None:
        suffix = draw(st.one_of(st.just(''), suffixes))
    group = request_group.RequestGroup(
        suffix=suffix,
        resources=draw(resources),
        required_traits=draw(st.sets(traits, max_size=4)),
        forbidden_traits=draw(st.sets(traits, max_size=4)),
        required_aggregates=draw(
            st.lists(st.lists(aggregates, min_size=1, max_size=4), max_size=4)
        ),
        forbidden_aggregates=draw(st.sets(aggregates, max_size=4)),
        in_tree=draw(st.none() | uuids),
    )
    hypothesis.assume(
        not suffix or values(group) != values(type(group)(suffix=suffix))
    )
    return group


def values(versioned):
    """Return the values of the fields of an object."""
    return {name: getattr(versioned, name) for name in versioned.fields}
