# SPDX-License-Identifier: Apache-2.0

"""audit --plan on 300 hosts, 200 servers of which violate a policy.

192 hosts are in 64 isolated aggregates, 36 in 12 reserved ones. The servers
stand in the isolated ones, one in five of them in one of eight anti-affinity
groups. The other 72 hosts have room for 216 of them.
"""

import json
import logging
import sys
import time

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_utils import uuidutils
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models
import sqlalchemy as sa

from tests.benchmarks import many_hosts
from tests.benchmarks import test_audit
from tests.functional import plans

HOSTS = 300
VIOLATIONS = 200
GROUPS = 8
SECONDS = 60


class PlanBenchmark(many_hosts.ManyHostsTestCase, plans.PlanTestCase):
    hosts = HOSTS
    weights = {'host0': 1}

    def setUp(self):
        super().setUp()
        logging.getLogger('nova').setLevel(logging.ERROR)
        self.flags(server_groups=-1, group='quota')
        groups = [self.group()['group'] for _ in range(GROUPS)]
        flavor = self.sized(3)
        kinds = [
            self.boot(flavor=flavor, az='nova:host0')['id'],
            self.boot(
                flavor=flavor, hints={'group': groups[0]}, az='nova:host0'
            )['id'],
        ]
        self.fill(kinds, groups)
        for kind in kinds:
            self._delete_server({'id': kind})
        for number in range(76):
            self.many(f'isolated{number}', range(number, HOSTS, 100))
            key = 'reservation:a' if number > 63 else 'trait:CUSTOM_A'
            self.set_metadata(f'isolated{number}', {key: 'required'})

    def fill(self, kinds, groups):
        """Copy the rows of two servers, one of them in a group."""
        mapping = self.cell_mappings['cell1']
        ctxt = nova_context.get_admin_context()
        with nova_context.target_cell(ctxt, mapping) as target:
            cell = main_db.get_engine(context=target)
        api = api_db.context_manager.writer.get_engine()
        placement = placement_db.get_placement_engine()
        instances = test_audit.Rows(cell, main_models.Instance, 'uuid', kinds)
        specs = test_audit.Rows(
            api, api_models.RequestSpec, 'instance_uuid', kinds
        )
        others = [
            test_audit.Rows(engine, model, 'instance_uuid', kinds)
            for engine, model in (
                (cell, main_models.InstanceExtra),
                (cell, main_models.InstanceInfoCache),
                (api, api_models.InstanceMapping),
            )
        ]
        consumers = test_audit.Rows(
            placement, placement_models.Consumer, 'uuid', kinds
        )
        with api.connect() as connection:
            table = api_models.InstanceGroup.__table__
            ids = dict(
                connection.execute(sa.select(table.c.uuid, table.c.id)).all()
            )
        with placement.connect() as connection:
            table = placement_models.ResourceProvider.__table__
            providers = dict(
                connection.execute(sa.select(table.c.uuid, table.c.id)).all()
            )
        members, allocations = [], []
        for number in range(VIOLATIONS):
            uuid = uuidutils.generate_uuid()
            kind = int(number % 5 == 0)
            # 64 of each 100 hosts are isolated.
            index = number % 64 + 100 * (number // 64 % 3)
            host = f'copy{index}'
            instances.copy(kind, uuid=uuid, host=host, node=host)
            group = groups[number // 5 % GROUPS]
            specs.copy(
                kind,
                instance_uuid=uuid,
                spec=specs.rows[kind]['spec'].replace(groups[0], group),
            )
            if kind:
                members.append({'instance_uuid': uuid, 'group_id': ids[group]})
            for rows in others:
                rows.copy(kind, instance_uuid=uuid)
            consumers.copy(kind, uuid=uuid)
            allocations += [
                {
                    'resource_provider_id': providers[self.uuids[index]],
                    'consumer_id': uuid,
                    'resource_class_id': class_,
                    'used': used,
                }
                for class_, used in ((0, 3), (1, 64))
            ]
        for rows in (instances, specs, *others, consumers):
            rows.insert()
        with api.begin() as connection:
            connection.execute(
                sa.insert(api_models.InstanceGroupMember), members
            )
        with placement.begin() as connection:
            connection.execute(
                sa.insert(placement_models.Allocation), allocations
            )

    def test_plan(self):
        self.flags(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=True,
            placement_req_default_forbidden_member_prefix=['reservation:'],
        )
        start, cpu = time.monotonic(), time.process_time()
        # Other copies have a row in one table alone.
        _, text = self.run_audit(
            '--plan', '--policy', 'isolation', '-f', 'json'
        )
        plan = json.loads(text)['plan']
        print(
            f'\n{plan["sentence"]} {HOSTS} hosts: '
            f'{time.monotonic() - start:.1f} s, '
            f'{time.process_time() - cpu:.1f} s of CPU',
            file=sys.stderr,
        )
        for one in plan['without_place'][:2]:
            print(one, file=sys.stderr)
        self.assertEqual(VIOLATIONS, len(plan['moves']))
        self.assertLess(time.process_time() - cpu, SECONDS)
