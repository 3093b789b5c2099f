# SPDX-License-Identifier: Apache-2.0

"""Failure domains: both stages, with 10,000 hosts in 100 racks.

Each rack is an aggregate. A server group of 200 fills 98 of them; one member
a rack is asked for.
"""

import contextlib
import random

import fixtures
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import host_manager
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched.filters import failure_domain
from nova_ext_sched.request_filters import (
    failure_domain as failure_domain_request_filter,
)
from tests import databases
from tests.benchmarks import aggregates
from tests.unit.request_filters import base

CONF = nova.conf.CONF
RACKS, HOSTS_OF_RACK, MEMBERS = 100, 100, 200
FREE = (7, 61)


class Cloud(fixtures.Fixture):
    """The hosts in memory; racks and members in databases."""

    def _setUp(self):
        conf.register_opts(CONF)
        CONF([], project='nova', default_config_files=[])
        objects.register_all()
        self.useFixture(config_fixture.Config(CONF)).config(
            group='filter_scheduler', enabled_filters=['FailureDomainFilter']
        )
        self.racks = [
            [
                host_manager.HostState(f'r{rack}h{i}', f'r{rack}h{i}', 'cell')
                for i in range(HOSTS_OF_RACK)
            ]
            for rack in range(RACKS)
        ]
        self.states = sum(self.racks, [])
        self.ctxt = self.useFixture(
            aggregates.Aggregates(
                (f'rack {rack}', {'failure_domain': f'r{rack}'}, states)
                for rack, states in enumerate(self.racks)
            )
        ).ctxt
        # Two members in most of the racks that are not free.
        chooser = random.Random(7)
        full = [rack for rack in range(RACKS) if rack not in FREE]
        filled = full + full + chooser.sample(full, MEMBERS - 2 * len(full))
        self.members = {
            uuidutils.generate_uuid(): f'r{rack}h{number % HOSTS_OF_RACK}'
            for number, rack in enumerate(filled)
        }
        engine = self.useFixture(databases.Database('sqlite')).replace(
            main_db.context_manager
        )
        models.BASE.metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(
                sa.insert(models.Instance),
                [
                    {'uuid': uuid, 'host': host, 'vm_state': 'active'}
                    for uuid, host in self.members.items()
                ],
            )
        with api_db.context_manager.writer.get_engine().begin() as connection:
            connection.execute(
                sa.insert(api_models.CellMapping),
                {
                    'id': 1,
                    'uuid': uuidutils.generate_uuid(),
                    'transport_url': 'none:///',
                    'database_connection': 'sqlite://',
                },
            )
            connection.execute(
                sa.insert(api_models.InstanceMapping),
                [
                    {'instance_uuid': uuid, 'cell_id': 1, 'project_id': 'p'}
                    for uuid in self.members
                ],
            )
        # The database of the cell is the one of this process.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.context.target_cell',
                lambda ctxt, _: contextlib.nullcontext(ctxt),
            )
        )

    def both_stages(self):
        spec = base.request_spec(
            instance_uuid=uuidutils.generate_uuid(),
            scheduler_hints={'different_failure_domain': ['true']},
            instance_group=objects.InstanceGroup(
                uuid=uuidutils.generate_uuid(),
                policy='anti-affinity',
                members=list(self.members),
                hosts=sorted(set(self.members.values())),
            ),
        )
        assert failure_domain_request_filter.failure_domains(self.ctxt, spec)
        return failure_domain.FailureDomainFilter().filter_all(
            self.states, spec
        )


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as fixture:
        yield fixture


def test_both_stages(cloud, benchmark):
    free = [state for rack in FREE for state in cloud.racks[rack]]
    assert cloud.both_stages() == free
    benchmark.group = 'failure domains, 10,000 hosts'
    benchmark.name = 'both stages'
    benchmark.pedantic(cloud.both_stages, rounds=20, warmup_rounds=2)
