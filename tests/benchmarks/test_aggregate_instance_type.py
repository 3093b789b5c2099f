# SPDX-License-Identifier: Apache-2.0

"""AggregateInstanceTypeFilter beside AggregateInstanceExtraSpecsFilter.

Both filter 10,000 hosts in three aggregates each, in one run, and must give
the same answer before they are timed. A group of the report is a cloud and a
flavor; the ratio of its two medians is what is of interest.

On a machine that does other work too, add
``--benchmark-timer=time.process_time``.
"""

import functools
import itertools
import logging
import random

from nova import objects
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler.filters import aggregate_instance_extra_specs
import pytest

from nova_ext_sched import conf
from nova_ext_sched.filters import aggregate_instance_type

HOSTS = 10_000

conf.register_opts(nova.conf.CONF)
objects.register_all()


def make_aggregates(count, **extra):
    draw = random.Random(3).randrange
    return [
        objects.Aggregate(
            id=number,
            name=f'aggregate-{number}',
            metadata={
                'ssd': 'true' if draw(3) else 'false',
                'cpu': f'gen{draw(4)},gen{draw(4)}',
                'cores': str(4 + draw(12)),
                'rack': f'r{number}',
                **extra,
            },
        )
        for number in range(count)
    ]


def _host(number, aggregates):
    host = host_manager.HostState(f'host-{number}', f'node-{number}', None)
    # As HostManager._get_aggregates_info: a list for each host.
    host.aggregates = list(aggregates)
    return host


def _racked(**extra):
    """A hundred racks, each in a row and a zone of its own set."""
    aggregates = make_aggregates(120, **extra)
    sets = [
        (aggregates[n], aggregates[100 + n % 10], aggregates[110 + n % 7])
        for n in range(100)
    ]
    return [_host(n, sets[n % 100]) for n in range(HOSTS)]


def _own_sets(**extra):
    """Every host its own set out of 50 aggregates."""
    aggregates = make_aggregates(50, **extra)
    sets = list(itertools.combinations(aggregates, 3))
    random.Random(3).shuffle(sets)
    return [_host(n, sets[n]) for n in range(HOSTS)]


def _own_aggregates(**extra):
    """Every host in three aggregates that no other host is in."""
    aggregates = make_aggregates(3 * HOSTS, **extra)
    return [_host(n, aggregates[3 * n : 3 * n + 3]) for n in range(HOSTS)]


CLOUDS = {
    'racked': _racked,
    'own_sets': _own_sets,
    'own_aggregates': _own_aggregates,
}

FLAVORS = {
    'three_specs': {
        'ssd': 'true',
        'aggregate_instance_extra_specs:cpu': '<or> gen1 <or> gen3',
        'cores': '>= 9',
        'hw:cpu_policy': 'dedicated',
    },
    'fifty_specs': {
        'ssd': 'true',
        'cpu': '<or> gen1 <or> gen3',
        'cores': '>= 9',
        **{f'key{n}': str(n % 3) for n in range(22)},
        **{f'scope{n}:key': str(n % 3) for n in range(25)},
    },
}

FIFTY = {f'key{n}': f'{n % 3},9' for n in range(22)}


@functools.cache
def _cloud(name, flavor):
    extra = FIFTY if flavor == 'fifty_specs' else {}
    return CLOUDS[name](**extra)


def _spec(flavor):
    return objects.RequestSpec(
        flavor=objects.Flavor(name=flavor, extra_specs=FLAVORS[flavor])
    )


OURS = aggregate_instance_type.AggregateInstanceTypeFilter()
NOVAS = aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter()


def _filter(host_filter, hosts, spec):
    return list(host_filter.filter_all(hosts, spec))


@pytest.mark.parametrize('whose', ['ours', 'nova'])
@pytest.mark.parametrize('flavor', FLAVORS)
@pytest.mark.parametrize('cloud', CLOUDS)
def test_filter(benchmark, cloud, flavor, whose):
    benchmark.group = f'{cloud}, {flavor}'
    hosts = _cloud(cloud, flavor)
    spec = _spec(flavor)
    novas = _filter(NOVAS, hosts, spec)
    assert _filter(OURS, hosts, spec) == novas
    assert 0 < len(novas) < HOSTS
    benchmark(_filter, OURS if whose == 'ours' else NOVAS, hosts, spec)


@pytest.mark.parametrize('whose', ['ours', 'nova'])
@pytest.mark.parametrize('flavor', FLAVORS)
@pytest.mark.parametrize('cloud', ['racked', 'own_sets'])
def test_filter_with_a_forced_aggregate(benchmark, cloud, flavor, whose):
    """One aggregate is forced; nova's filter reads its items literally.

    The forced aggregate's items agree with the flavor, so that both filters
    still answer alike.
    """
    benchmark.group = f'{cloud}, {flavor}, one forced'
    extra = FIFTY if flavor == 'fifty_specs' else {}
    hosts = CLOUDS[cloud](**extra)
    forced = hosts[0].aggregates[0]
    specs = FLAVORS[flavor]
    # 'rack' stands in every aggregate and in no flavor.
    forced.metadata = {
        **{k: v for k, v in forced.metadata.items() if k in specs},
        'ssd': 'true',
        'cores': '9',
        'cpu': 'gen1',
        'force_metadata_check': 'true',
    }
    spec = _spec(flavor)
    novas = _filter(NOVAS, hosts, spec)
    assert _filter(OURS, hosts, spec) == novas
    assert 0 < len(novas) < HOSTS
    benchmark(_filter, OURS if whose == 'ours' else NOVAS, hosts, spec)


@pytest.mark.parametrize('whose', ['ours', 'nova'])
@pytest.mark.parametrize('cloud', CLOUDS)
def test_reject_every_host(benchmark, caplog, cloud, whose):
    """No host is left, at INFO: ours makes up the reasons, nova's logs none.

    For both causes: a value that nobody offers, and one that some do not.
    """
    benchmark.group = f'{cloud}, every host rejected'
    caplog.set_level(logging.INFO, logger='nova_ext_sched')
    caplog.set_level(logging.INFO, logger='nova')
    hosts = _cloud(cloud, 'three_specs')
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name='none', extra_specs={'cpu': 'gen1', 'ssd': 'perhaps'}
        )
    )
    assert _filter(NOVAS, hosts, spec) == []
    assert _filter(OURS, hosts, spec) == []
    (line,) = caplog.messages
    assert "wants 'cpu' to be 'gen1'" in line
    assert "wants 'ssd' to be 'perhaps'" in line
    benchmark(_filter, OURS if whose == 'ours' else NOVAS, hosts, spec)
