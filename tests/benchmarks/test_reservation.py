# SPDX-License-Identifier: Apache-2.0

"""Reserved aggregates beside blazar-nova's BlazarFilter, in one run.

A cloud of 10,000 hosts: 100 reservations of 50, a pool of 2,000 free hosts,
and 3,000 plain ones. The aggregates are what Blazar makes (name, zone,
``blazar:owner``), and carry our key beside. BlazarFilter looks at every host;
ours asks the API database (SQLite) and writes placement's query. What
placement takes to answer is in neither number.
"""

import fixtures
from nova import context
from nova import exception
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import host_manager
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
from oslo_db.sqlalchemy import enginefacade
from oslo_utils import uuidutils
import pytest

from nova_ext_sched import conf
from nova_ext_sched.filters import isolated_aggregates
from nova_ext_sched.request_filters import reserved_aggregates
from tests import databases
from tests.unit.request_filters import base as test_base

CONF = nova.conf.CONF
OWNER = 'owner'
POOLS = [('freepool', 2000)] + [(f'lease{i}', 50) for i in range(100)]
PLAIN = 3000

# Project and hints of the requests, and how many hosts each may use.
REQUESTS = {
    'no reservation': ('anyone', {}, PLAIN),
    'own reservation': (OWNER, {'reservation': ['lease7']}, 50),
    "another's reservation": ('anyone', {'reservation': ['lease7']}, 0),
}


class Cloud(fixtures.Fixture):
    """The hosts in memory, and their aggregates in a database."""

    def _setUp(self):
        database = self.useFixture(databases.Database('sqlite'))
        facade = enginefacade.transaction_context()
        facade.configure(connection=database.url)
        engine = facade.writer.get_engine()
        self.addCleanup(engine.dispose)
        self.addCleanup(api_db.context_manager.patch_factory(facade))
        models.BASE.metadata.create_all(engine)
        conf.register_opts(CONF)
        self.useFixture(config_fixture.Config(CONF)).config(
            group='nova_ext_sched',
            placement_req_required_member_prefix=['reservation:'],
            placement_req_default_forbidden_member_prefix=['reservation:'],
            member_sources=['hint'],
            member_project_keys=['blazar:owner'],
            max_forbidden_aggregates=len(POOLS),
        )
        self.ctxt = context.get_admin_context()
        self.hosts = [self._host(f'plain{i}') for i in range(PLAIN)]
        for name, size in POOLS:
            aggregate = objects.Aggregate(
                self.ctxt,
                name=name,
                uuid=uuidutils.generate_uuid(),
                metadata={
                    'availability_zone': f'blazar_{name}',
                    'blazar:owner': OWNER,
                    f'reservation:{name}': 'true',
                },
                hosts=[],
            )
            # The hosts of the database play no part.
            with facade.writer.using(self.ctxt) as session:
                row = models.Aggregate(name=name, uuid=aggregate.uuid)
                session.add(row)
                session.flush()
                session.add_all(
                    models.AggregateMetadata(
                        aggregate_id=row.id, key=key, value=value
                    )
                    for key, value in aggregate.metadata.items()
                )
            self.hosts += [
                self._host(f'{name}-{i}', aggregate) for i in range(size)
            ]

    def _host(self, name, *aggregates):
        state = host_manager.HostState(name, name, uuidutils.generate_uuid())
        state.aggregates = list(aggregates)
        return state


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


@pytest.fixture(params=REQUESTS)
def request_spec(request, benchmark):
    project, hints, _ = REQUESTS[request.param]
    benchmark.group = f'10,000 hosts, {request.param}'
    return test_base.request_spec(project_id=project, scheduler_hints=hints)


def post_filter(filter_class, cloud, spec):
    """Return the hosts that a host filter lets pass."""
    return list(filter_class().filter_all(cloud.hosts, spec))


def write_query(cloud, spec):
    """Return placement's query, or None where the request is refused."""
    spec.requested_destination = None
    try:
        reserved_aggregates.reserved_aggregates(cloud.ctxt, spec)
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
def test_same_answer(cloud, blazar, name):
    project, hints, count = REQUESTS[name]
    spec = test_base.request_spec(project_id=project, scheduler_hints=hints)
    theirs = post_filter(blazar, cloud, spec)
    assert len(theirs) == count
    assert hosts_of_query(cloud, spec) == theirs
    assert (
        post_filter(isolated_aggregates.IsolatedAggregatesFilter, cloud, spec)
        == theirs
    )


def test_blazar_nova(benchmark, cloud, blazar, request_spec):
    benchmark.name = 'blazar-nova, BlazarFilter'
    benchmark(post_filter, blazar, cloud, request_spec)


def test_ours_query(benchmark, cloud, request_spec):
    benchmark.name = 'ours, stage 1: the query'
    benchmark(write_query, cloud, request_spec)


def test_ours_host_filter(benchmark, cloud, request_spec):
    """As if placement had let every host through."""
    benchmark.name = 'ours, stage 2: the host filter'
    benchmark(
        post_filter,
        isolated_aggregates.IsolatedAggregatesFilter,
        cloud,
        request_spec,
    )
