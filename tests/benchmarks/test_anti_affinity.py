# SPDX-License-Identifier: Apache-2.0

"""The anti-affinity filter beside nova's, on the same host states.

A cloud is named by hosts x instances on each host - members of the group. The
members are spread over the hosts at random.
"""

import random
import uuid

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters import affinity_filter
import pytest

from nova_ext_sched.filters import anti_affinity

CLOUDS = {
    '10000x20-200': (10_000, 20, 200),
    '10000x20-5000': (10_000, 20, 5_000),
    '10000x20-10': (10_000, 20, 10),
    '1000x500-200': (1_000, 500, 200),
    '1000x500-10': (1_000, 500, 10),
}


@pytest.fixture(scope='module', params=CLOUDS)
def cloud(request):
    """Host states and a request; yields (name, states, RequestSpec)."""
    objects.register_all()
    count, each, members = CLOUDS[request.param]
    uuids = [str(uuid.uuid4()) for _ in range(count * each)]
    states = []
    for i in range(count):
        state = host_manager.HostState(f'h{i}', f'h{i}', 'cell')
        state.instances = {
            key: objects.Instance(uuid=key)
            for key in uuids[i * each : (i + 1) * each]
        }
        states.append(state)
    spec = objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()),
        instance_group=objects.InstanceGroup(
            uuid=str(uuid.uuid4()),
            policy='anti-affinity',
            members=random.Random(7).sample(uuids, members),
            rules={'max_server_per_host': '1'},
        ),
        scheduler_hints={},
    )
    return request.param, states, spec


def run(benchmark, cloud, name, host_filter):
    size, states, spec = cloud
    benchmark.group = f'anti-affinity {size}'
    benchmark.name = name
    benchmark.pedantic(
        lambda: list(host_filter.filter_all(states, spec)),
        rounds=20,
        warmup_rounds=2,
    )


def test_same_answer(cloud):
    _, states, spec = cloud
    nova, ours = (
        list(host_filter.filter_all(states, spec))
        for host_filter in (
            affinity_filter.ServerGroupAntiAffinityFilter(),
            anti_affinity.ServerGroupAntiAffinityFilter(),
        )
    )
    assert nova == ours
    assert 0 < len(ours) < len(states)


def test_nova(benchmark, cloud):
    run(
        benchmark,
        cloud,
        'nova',
        affinity_filter.ServerGroupAntiAffinityFilter(),
    )


def test_ours(benchmark, cloud):
    run(
        benchmark,
        cloud,
        'ours',
        anti_affinity.ServerGroupAntiAffinityFilter(),
    )
