# SPDX-License-Identifier: Apache-2.0

"""AggregateInstanceTypeFilter beside AggregateInstanceExtraSpecsFilter.

Both filter 10,000 hosts in three aggregates each, in one run, and must give
the same answer before they are timed. The ratio of the two medians of a group
of the report is what is of interest.

On a machine that does other work too, add
``--benchmark-timer=time.process_time``.
"""

import functools
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


def make_aggregates(count):
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
            },
        )
        for number in range(count)
    ]


def _host(number, aggregates):
    host = host_manager.HostState(f'host-{number}', f'node-{number}', None)
    # As HostManager._get_aggregates_info: a list for each host.
    host.aggregates = list(aggregates)
    return host


def _racked():
    """A hundred racks, each in a row and a zone of its own set."""
    aggregates = make_aggregates(120)
    sets = [
        (aggregates[n], aggregates[100 + n % 10], aggregates[110 + n % 7])
        for n in range(100)
    ]
    return [_host(n, sets[n % 100]) for n in range(HOSTS)]


def _own_aggregates():
    """Every host in three aggregates that no other host is in."""
    aggregates = make_aggregates(3 * HOSTS)
    return [_host(n, aggregates[3 * n : 3 * n + 3]) for n in range(HOSTS)]


CLOUDS = {'racked': _racked, 'own_aggregates': _own_aggregates}

EXTRA_SPECS = {
    'ssd': 'true',
    'aggregate_instance_extra_specs:cpu': '<or> gen1 <or> gen3',
    'cores': '>= 9',
    'hw:cpu_policy': 'dedicated',
}

FILTERS = {
    'ours': aggregate_instance_type.AggregateInstanceTypeFilter(),
    'nova': aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter(),
}


@functools.cache
def _cloud(name):
    return CLOUDS[name]()


def make_spec(extra_specs):
    return objects.RequestSpec(
        flavor=objects.Flavor(name='m1.fast', extra_specs=extra_specs)
    )


def _filter(whose, hosts, spec):
    return list(FILTERS[whose].filter_all(hosts, spec))


@pytest.mark.parametrize('whose', FILTERS)
@pytest.mark.parametrize('cloud', CLOUDS)
def test_filter(benchmark, cloud, whose):
    benchmark.group = cloud
    hosts = _cloud(cloud)
    spec = make_spec(EXTRA_SPECS)
    left = _filter('nova', hosts, spec)
    assert _filter('ours', hosts, spec) == left
    assert 0 < len(left) < HOSTS
    benchmark(_filter, whose, hosts, spec)


@pytest.mark.parametrize('whose', FILTERS)
@pytest.mark.parametrize('cloud', CLOUDS)
def test_reject_every_host(benchmark, caplog, cloud, whose):
    """No host is left, at INFO: ours makes up the reasons, nova's logs none.

    For both causes: a value that nobody offers, and one that some do not.
    """
    benchmark.group = f'{cloud}, every host rejected'
    caplog.set_level(logging.INFO, logger='nova_ext_sched')
    caplog.set_level(logging.INFO, logger='nova')
    hosts = _cloud(cloud)
    spec = make_spec({'cpu': 'gen1', 'ssd': 'perhaps'})
    assert _filter('nova', hosts, spec) == []
    assert _filter('ours', hosts, spec) == []
    (line,) = caplog.messages
    assert "wants 'cpu' to be 'gen1'" in line
    assert "wants 'ssd' to be 'perhaps'" in line
    benchmark(_filter, whose, hosts, spec)
