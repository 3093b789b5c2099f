# SPDX-License-Identifier: Apache-2.0

"""Hosts that Blazar manages, beside blazar-nova's BlazarFilter, in one run.

A cloud of 10,000 hosts: 100 leases of 50, 2,000 free hosts, and 3,000 that
Blazar does not manage. blazar-nova's looks at every host. Ours asks the API
database (SQLite), writes placement's query, and looks at the hosts that
placement answers with. What placement takes to answer is in neither number.
"""

import timeit

import fixtures
from nova import exception
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
import pytest

from nova_ext_sched import conf
from nova_ext_sched.filters import blazar as filters
from nova_ext_sched.request_filters import blazar as blazar_request_filter
from tests.benchmarks import aggregates
from tests.unit.request_filters import base as test_base

CONF = nova.conf.CONF
OWNER = 'owner'
POOLS = [('freepool', 2000)] + [(f'lease{i}', 50) for i in range(100)]
PLAIN = 3000

# blazar-nova's takes 72 ms on a quiet machine, and both stages of ours may
# take 5.
LEAST_RATIO = 14

# Project, hints and extra specs of the requests, and how many hosts each may
# use.
REQUESTS = {
    'no reservation': ('anyone', {}, {}, PLAIN),
    'own reservation': (OWNER, {'reservation': ['lease7']}, {}, 50),
    "another's reservation": ('anyone', {'reservation': ['lease7']}, {}, 0),
    'preemptible': ('anyone', {}, {'blazar:preemptible': 'true'}, 2000),
}


class Cloud(fixtures.Fixture):
    """The hosts in memory, and their aggregates in a database."""

    def _setUp(self):
        conf.register_opts(CONF)
        config = self.useFixture(config_fixture.Config(CONF)).config
        config(group='filter_scheduler', enabled_filters=['BlazarFilter'])
        config(group='blazar:physical:host', allow_preemptibles=True)
        pools = [(name, self._hosts(name, size)) for name, size in POOLS]
        self.hosts = sum(
            (hosts for _, hosts in pools), self._hosts('plain', PLAIN)
        )
        self.ctxt = self.useFixture(
            aggregates.Aggregates(
                (
                    name,
                    {
                        'availability_zone': f'blazar_{name}',
                        'blazar:owner': OWNER,
                    }
                    if name != 'freepool'
                    else {'blazar:owner': 'blazar'},
                    hosts,
                )
                for name, hosts in pools
            )
        ).ctxt

    def _hosts(self, name, size):
        return [
            host_manager.HostState(
                f'{name}-{i}', f'{name}-{i}', uuidutils.generate_uuid()
            )
            for i in range(size)
        ]


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as fixture:
        yield fixture


@pytest.fixture(scope='module')
def blazar():
    """BlazarFilter; only the environment of the benchmarks has it."""
    return pytest.importorskip(
        'blazarnova.scheduler.filters.blazar_filter'
    ).BlazarFilter


def spec_of(name):
    project, hints, extra_specs, _ = REQUESTS[name]
    return test_base.request_spec(
        project_id=project,
        scheduler_hints=hints,
        flavor=test_base.flavor(extra_specs=extra_specs),
    )


def post_filter(filter_class, hosts, spec):
    """Return the hosts that a host filter lets pass."""
    return list(filter_class().filter_all(hosts, spec))


def write_query(cloud, spec):
    """Return placement's query, or None where the request is refused."""
    spec.requested_destination = None
    try:
        blazar_request_filter.blazar_reservations(cloud.ctxt, spec)
    except exception.RequestFilterFailed:
        return None
    return utils.resources_from_request_spec(
        cloud.ctxt, spec, None
    ).to_querystring()


def hosts_of_query(cloud, spec):
    """Return the hosts that placement would answer with."""
    if write_query(cloud, spec) is None:
        return []
    destination = spec.requested_destination
    required = [set(one.split(',')) for one in destination.aggregates or ()]
    forbidden = destination.forbidden_aggregates or set()
    found = []
    for host in cloud.hosts:
        uuids = {aggregate.uuid for aggregate in host.aggregates}
        if uuids.isdisjoint(forbidden) and not any(
            uuids.isdisjoint(one) for one in required
        ):
            found.append(host)
    return found


@pytest.mark.parametrize('name', REQUESTS)
def test_both_stages_beside_blazar_nova(cloud, blazar, name):
    spec = spec_of(name)
    same = post_filter(blazar, cloud.hosts, spec)
    assert len(same) == REQUESTS[name][-1]
    assert post_filter(filters.BlazarFilter, cloud.hosts, spec) == same
    left = hosts_of_query(cloud, spec)
    # One pool more than the query has room for.
    assert len(same) <= len(left) <= len(same) + 50
    assert post_filter(filters.BlazarFilter, left, spec) == same

    def both():
        write_query(cloud, spec)
        post_filter(filters.BlazarFilter, left, spec)

    ours = _least_seconds(both, 20)
    theirs = _least_seconds(lambda: post_filter(blazar, cloud.hosts, spec), 3)
    print(
        f'{name}: ours {1000 * ours:.2f} ms, '
        f'blazar-nova {1000 * theirs:.2f} ms'
    )
    assert ours <= theirs / LEAST_RATIO


def _least_seconds(function, times):
    return min(timeit.repeat(function, number=1, repeat=times))
