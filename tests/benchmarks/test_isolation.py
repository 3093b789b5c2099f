# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of isolation beside nova's filter and beside the bare select.

In one run, on one SQLite database: 100 aggregates of 10 hosts and 1,000 of
20, each isolating on a trait of its own.
"""

import fixtures
from nova import context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler import utils
from oslo_db.sqlalchemy import enginefacade
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched.policy import isolation
from nova_ext_sched.queries import aggregates
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from tests.unit.request_filters import base

CONF = nova.conf.CONF
SIZES = [(100, 10), (1000, 20)]


@pytest.fixture(params=SIZES, ids=lambda size: '{}x{}'.format(*size))
def cloud(request, tmp_path):
    """Aggregates on a database file; yields (RequestContext, name of size)."""
    count, hosts = request.param
    conf.register_opts(CONF)
    CONF([], project='nova', default_config_files=[])
    objects.register_all()
    facade = enginefacade.transaction_context()
    facade.configure(connection=f'sqlite:///{tmp_path}/api.db')
    engine = facade.writer.get_engine()
    reset = api_db.context_manager.patch_factory(facade)
    models.BASE.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            sa.insert(models.Aggregate),
            [
                {'id': i, 'name': f'a{i}', 'uuid': uuidutils.generate_uuid()}
                for i in range(1, count + 1)
            ],
        )
        connection.execute(
            sa.insert(models.AggregateMetadata),
            [
                {
                    'aggregate_id': i,
                    'key': f'trait:CUSTOM_T{i}',
                    'value': 'required',
                }
                for i in range(1, count + 1)
            ],
        )
        connection.execute(
            sa.insert(models.AggregateHost),
            [
                {'aggregate_id': i, 'host': f'h{i}-{j}'}
                for i in range(1, count + 1)
                for j in range(hosts)
            ],
        )
    with fixtures.Fixture() as overrides:
        for group, name, value in (
            ('scheduler', 'enable_isolated_aggregate_filtering', True),
            ('nova_ext_sched', 'enable_isolated_aggregate_filtering', True),
            ('nova_ext_sched', 'max_forbidden_aggregates', count),
        ):
            CONF.set_override(name, value, group)
            overrides.addCleanup(CONF.clear_override, name, group)
        yield context.get_admin_context(), '{}x{}'.format(*request.param)
    reset()
    engine.dispose()


def make_spec():
    """A request that requires one of the traits."""
    spec = base.request_spec()
    spec.flavor.extra_specs = {'trait:CUSTOM_T7': 'required'}
    return spec


@api_db.context_manager.reader
def bare_select(context):
    """(uuid, key) of every isolating item, and nothing made of it."""
    metadata = models.AggregateMetadata
    return context.session.execute(
        sa.select(models.Aggregate.uuid, metadata.key)
        .join(metadata, metadata.aggregate_id == models.Aggregate.id)
        .where(metadata.key.like('trait:%'), metadata.value == 'required')
    ).all()


def run(benchmark, cloud, name, fn):
    ctxt, size = cloud
    benchmark.group = f'isolation {size}'
    benchmark.name = name
    return benchmark.pedantic(
        fn, setup=lambda: ((ctxt, make_spec()), {}), rounds=30, warmup_rounds=3
    )


def test_same_answer(cloud):
    ctxt, _ = cloud
    answers = []
    for fn in (
        nova_request_filter.isolate_aggregates,
        isolation_request_filter.isolate_aggregates,
    ):
        spec = make_spec()
        assert fn(ctxt, spec)
        answers.append(spec.requested_destination.forbidden_aggregates)
    assert answers[0] == answers[1]
    assert len(answers[0]) in (99, 999)


def test_nova(benchmark, cloud):
    run(benchmark, cloud, 'nova', nova_request_filter.isolate_aggregates)


def test_ours(benchmark, cloud):
    run(
        benchmark,
        cloud,
        'ours, all UUIDs in the query',
        isolation_request_filter.isolate_aggregates,
    )


def test_ours_bounded(benchmark, cloud):
    """The default bound, with the host filter to judge the rest."""
    CONF.set_override('max_forbidden_aggregates', 100, 'nova_ext_sched')
    CONF.set_override(
        'enabled_filters', ['IsolatedAggregatesFilter'], 'filter_scheduler'
    )
    try:
        run(
            benchmark,
            cloud,
            'ours, 100 UUIDs in the query',
            isolation_request_filter.isolate_aggregates,
        )
    finally:
        CONF.clear_override('enabled_filters', 'filter_scheduler')


def test_ours_decision(benchmark, cloud):
    def decide(ctxt, spec):
        items = aggregates.get_metadata(ctxt, [isolation.PREFIX])
        required = utils.ResourceRequest.from_request_spec(spec)
        isolation.lacking_traits(
            isolation.read(items)[0], required.all_required_traits
        )

    run(benchmark, cloud, 'ours, look-up and decision', decide)


def test_bare(benchmark, cloud):
    def bare(ctxt, spec):
        bare_select(ctxt)
        utils.ResourceRequest.from_request_spec(spec)

    run(benchmark, cloud, 'bare select + from_request_spec', bare)
