# SPDX-License-Identifier: Apache-2.0

"""As many requests at once as nova-scheduler has threads, for one group.

The databases are real, and slow.
"""

from concurrent import futures
import contextlib
import time

import fixtures
from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_messaging import conffixture
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nova_ext_sched import request_state
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import gets
from nova_ext_sched.queries import group_members
from nova_ext_sched.queries import joined
from nova_ext_sched.queries import servers
from nova_ext_sched.request_filters import failure_domain
from tests import databases
from tests.unit.request_filters import base

#: nova's executor_thread_pool_size.
AT_ONCE = 64
MEMBERS = [getattr(uuids, f'member {number}') for number in range(200)]


class BurstTestCase(base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(conffixture.ConfFixture(base.CONF))
        self.enable('FailureDomainFilter')
        self.replace('queries.group_members._known', group_members._Known())
        self.replace('queries.cells.current', cells.Cells())
        api = self.open(api_db, 'api')
        api_models.BASE.metadata.create_all(api)
        cell = {'id': 1, 'uuid': uuids.cell, 'transport_url': 'none:///'}
        cell['database_connection'] = 'sqlite://'
        mapping = {'cell_id': 1, 'project_id': 'p'}
        domain = {'key': 'failure_domain', 'value': 'a'}
        for model, rows in (
            (api_models.CellMapping, [cell]),
            (api_models.InstanceMapping,
             [mapping | {'instance_uuid': uuid} for uuid in MEMBERS]),
            (api_models.Aggregate,
             [{'id': 1, 'uuid': uuids.rack, 'name': 'rack'}]),
            (api_models.AggregateMetadata, [{'aggregate_id': 1} | domain]),
            (api_models.AggregateHost, [{'aggregate_id': 1, 'host': 'h'}]),
        ):  # fmt: skip
            self.insert(api, model, rows)
        self.cell = self.open(main_db, 'cell')
        models.BASE.metadata.create_all(self.cell)
        # The database of the cell is the one of this process.
        self.patch(
            context,
            'target_cell',
            lambda ctxt, _: contextlib.nullcontext(ctxt),
        )

    def open(self, module, name):
        database = self.useFixture(databases.Database('sqlite'))
        # Many threads share what is in memory, and meet in it.
        folder = self.useFixture(fixtures.TempDir()).path
        database.url = f'sqlite:///{folder}/{name}'
        return database.replace(module.context_manager)

    @staticmethod
    def insert(engine, model, rows):
        with engine.begin() as connection:
            connection.execute(sa.insert(model), rows)

    def insert_members(self, **fields):
        rows = [{'uuid': uuid, **fields} for uuid in MEMBERS]
        self.insert(self.cell, models.Instance, rows)

    def request(self, number):
        spec = base.request_spec(
            scheduler_hints={'different_failure_domain': ['true']},
            instance_uuid=getattr(uuids, f'new {number}'),
            instance_group=base.group(*MEMBERS),
        )
        failure_domain.failure_domains(context.get_admin_context(), spec)
        _, forbidden = base.destination_of(spec)
        return forbidden, request_state.of(spec).group.members

    def burst(self):
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return [*pool.map(self.request, range(AT_ONCE))]

    def test_a_cell(self):
        """64 answers that take 0.15 s each, and a limit of five seconds."""
        self.patch(joined, 'SECONDS', 5)
        self.insert_members(host='h', vm_state='active')
        asked = []
        select = servers.select_places

        def slow(ctxt, wanted):
            asked.append(len(wanted))
            time.sleep(0.15)
            return select(ctxt, wanted)

        self.replace('queries.servers.select_places', slow)
        for forbidden, members in self.burst():
            self.assertEqual({uuids.rack}, set(forbidden))
            self.assertEqual(200, len(members.hosts))
        # How many meet depends on the machine.
        self.assertLess(len(asked), AT_ONCE / 4)
        self.assertEqual({200}, {*asked})

    def test_placement(self):
        """Each asks about the 50 newest members that are under way.

        Each answer takes 0.02 s; ten requests go to placement at once.
        """
        self.insert_members(vm_state='building')
        node = models.ComputeNode.__table__
        row = {one.name: 0 for one in node.c if not one.nullable}
        row |= {'id': 1, 'uuid': uuids.node, 'host': 'h', 'deleted': 0}
        self.insert(self.cell, models.ComputeNode, [row])
        asked = []

        def send(ctxt, url):
            asked.append(url.removeprefix('/allocations/'))
            time.sleep(0.02)
            return {'allocations': {uuids.node: {}, uuids.device: {}}}

        self.replace('queries.placement.current', gets.Gets(send))
        for forbidden, members in self.burst():
            self.assertEqual({uuids.rack}, set(forbidden))
            self.assertEqual({*MEMBERS[-50:]}, {*members.hosts})
        self.assertEqual({*MEMBERS[-50:]}, {*asked})
        self.assertLess(len(asked), AT_ONCE * 50 / 4)
