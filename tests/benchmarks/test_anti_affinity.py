# SPDX-License-Identifier: Apache-2.0

"""The anti-affinity filter beside nova's, on the same host states.

A cloud is named by hosts x instances on each host - members of the group. The
members are spread over the hosts at random.
"""

import random

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters import affinity_filter
from oslo_utils import uuidutils
import pytest

from nova_ext_sched.filters import anti_affinity

CLOUDS = {
    '10000x20-200': (10_000, 20, 200),
    '10000x20-5000': (10_000, 20, 5_000),
    '10000x20-10': (10_000, 20, 10),
    '1000x500-200': (1_000, 500, 200),
    '1000x500-10': (1_000, 500, 10),
}
FILTERS = {
    'ours': anti_affinity.ServerGroupAntiAffinityFilter(),
    'nova': affinity_filter.ServerGroupAntiAffinityFilter(),
}


def fill(states, each, members):
    """Put instances on hosts; return a request of a group of some of them.

    :param each: how many instances a host has
    :param members: how many of all are in the group
    """
    uuids = []
    for state in states:
        mine = [uuidutils.generate_uuid() for _ in range(each)]
        state.instances = {key: objects.Instance(uuid=key) for key in mine}
        uuids += mine
    return objects.RequestSpec(
        instance_uuid=uuidutils.generate_uuid(),
        instance_group=objects.InstanceGroup(
            uuid=uuidutils.generate_uuid(),
            policy='anti-affinity',
            members=random.Random(7).sample(uuids, members),
            rules={'max_server_per_host': '1'},
        ),
        scheduler_hints={},
    )


@pytest.fixture(scope='module', params=CLOUDS)
def cloud(request):
    """Host states and a request; yields (name, states, RequestSpec)."""
    objects.register_all()
    count, each, members = CLOUDS[request.param]
    states = [
        host_manager.HostState(f'h{i}', f'h{i}', 'cell') for i in range(count)
    ]
    return request.param, states, fill(states, each, members)


@pytest.mark.parametrize('whose', FILTERS)
def test_filter(benchmark, cloud, whose):
    size, states, spec = cloud
    left = {
        name: list(host_filter.filter_all(states, spec))
        for name, host_filter in FILTERS.items()
    }
    assert left['nova'] == left['ours']
    assert 0 < len(left['ours']) < len(states)
    benchmark.group = f'anti-affinity {size}'
    benchmark.name = whose
    benchmark.pedantic(
        lambda: list(FILTERS[whose].filter_all(states, spec)),
        rounds=20,
        warmup_rounds=2,
    )
