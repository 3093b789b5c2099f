# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain in a cloud of 10,000 hosts.

A real nova-api and a real placement in process, on SQLite, with the hosts
written into their databases: three resource classes, 60 traits and three
aggregates each, 100 aggregates of which a quarter isolates. The number of
requests is printed beside the time and must not grow with the hosts, but for
the pages of nova's list.
"""

import collections
import os
import time

from nova import context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils import timeutils
from oslo_utils import uuidutils
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models
import pytest
import requests
import sqlalchemy as sa

from tests.functional import explain

CONF = nova.conf.CONF
HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))
AGGREGATES = 100
ISOLATING = 25
TRAITS = 60
INVENTORY = {'VCPU': 64, 'MEMORY_MB': 262144, 'DISK_GB': 2000}


class ExplainBenchmark(explain.ExplainTestCase):
    """A test case, because nova's fixtures belong to one."""

    host_filters = ('IsolatedAggregatesFilter',)

    @pytest.fixture(autouse=True)
    def _benchmark(self, benchmark):
        self.benchmark = benchmark

    def setUp(self):
        super().setUp()
        self.uuids = [uuidutils.generate_uuid() for _ in range(HOSTS)]
        self.names = [f'host{i:05}' for i in range(HOSTS)]
        self.fill_placement()
        self.fill_nova()
        self.fill_aggregates()

    def test_explain(self):
        """A flavor of two traits, in a zone."""
        flavor = self._create_flavor(
            memory_mb=4096,
            vcpu=4,
            disk=20,
            ephemeral=0,
            extra_spec={'trait:HW_CPU_X86_AVX2': 'required'},
        )
        sent = []
        seconds = collections.Counter()
        send = requests.Session.send

        def counting_send(session, request, **kwargs):
            sent.append(request.path_url)
            start = time.monotonic()
            try:
                return send(session, request, **kwargs)
            finally:
                path = request.path_url.partition('?')[0]
                seconds[path] += time.monotonic() - start

        self.stub_out('requests.Session.send', counting_send)
        arguments = ('--flavor', flavor, '--availability-zone', 'az1')
        self.explain(*arguments)
        sent.clear()
        seconds.clear()
        rows = self.benchmark.pedantic(
            self.explain, arguments, rounds=3, iterations=1
        )
        pages = -(-HOSTS // 1000)
        per_run = len(sent) / 3
        self.benchmark.extra_info['requests'] = per_run
        slowest = [
            f'{path} {total / 3:.1f} s'
            for path, total in seconds.most_common(4)
        ]
        print(f'\n{HOSTS} hosts: {per_run:g} requests;', ', '.join(slowest))
        self.assertEqual(HOSTS, rows[-1]['Left'] + _removed(rows))
        self.assertLess(per_run, 30 + pages)

    def fill_placement(self):
        engine = placement_db.placement_context_manager.writer.get_engine()
        with engine.begin() as connection:
            classes = dict(
                connection.execute(
                    sa.text('SELECT name, id FROM resource_classes')
                ).fetchall()
            )
            traits = connection.execute(
                sa.text(
                    "SELECT id FROM traits WHERE name LIKE 'HW_CPU_X86_%' "
                    "OR name LIKE 'COMPUTE_NET_%' OR name = 'OWNER_NOVA' "
                    f'ORDER BY name LIMIT {TRAITS}'
                )
            ).fetchall()
            # The computes of the base class, of which there are none.
            ids = range(1, HOSTS + 1)
            for table, rows in (
                (
                    placement_models.ResourceProvider,
                    [
                        {
                            'id': i,
                            'uuid': uuid,
                            'name': name,
                            'generation': 1,
                            'root_provider_id': i,
                        }
                        for i, uuid, name in zip(
                            ids, self.uuids, self.names, strict=True
                        )
                    ],
                ),
                (
                    placement_models.Inventory,
                    [
                        {
                            'resource_provider_id': i,
                            'resource_class_id': classes[name],
                            'total': total,
                            'reserved': 0,
                            'min_unit': 1,
                            'max_unit': total,
                            'step_size': 1,
                            'allocation_ratio': 1.0,
                        }
                        for i in ids
                        for name, total in INVENTORY.items()
                    ],
                ),
                (
                    placement_models.ResourceProviderTrait,
                    [
                        {'resource_provider_id': i, 'trait_id': trait}
                        for i in ids
                        for (trait,) in traits
                    ],
                ),
            ):
                connection.execute(sa.insert(table.__table__), rows)

    def fill_nova(self):
        ctxt = context.get_admin_context()
        cell = self.cell_mappings['cell1']
        now = timeutils.utcnow()
        with context.target_cell(ctxt, cell) as target:
            with target.db_connection.writer.using(target) as session:
                session.execute(
                    sa.insert(main_models.Service),
                    [
                        {
                            'uuid': uuidutils.generate_uuid(),
                            'host': name,
                            'binary': 'nova-compute',
                            'topic': 'compute',
                            'report_count': 1,
                            'last_seen_up': now,
                            'updated_at': now,
                            'version': objects.service.SERVICE_VERSION,
                        }
                        for name in self.names
                    ],
                )
                session.execute(
                    sa.insert(main_models.ComputeNode),
                    [
                        {
                            'uuid': uuid,
                            'host': name,
                            'hypervisor_hostname': name,
                            'hypervisor_type': 'fake',
                            'hypervisor_version': 1000,
                            'host_ip': '192.0.2.1',
                            'vcpus': 64,
                            'memory_mb': 262144,
                            'local_gb': 2000,
                            'vcpus_used': 0,
                            'memory_mb_used': 0,
                            'local_gb_used': 0,
                            'free_ram_mb': 0,
                            'free_disk_gb': 0,
                            'current_workload': 0,
                            'running_vms': 0,
                            'disk_available_least': 0,
                            'cpu_info': '{}',
                            'cpu_allocation_ratio': 1.0,
                            'ram_allocation_ratio': 1.0,
                            'disk_allocation_ratio': 1.0,
                            'mapped': 1,
                        }
                        for name, uuid in zip(
                            self.names, self.uuids, strict=True
                        )
                    ],
                )
        self.insert_api(
            api_models.HostMapping,
            [{'cell_id': cell.id, 'host': name} for name in self.names],
        )

    def fill_aggregates(self):
        uuids = [uuidutils.generate_uuid() for _ in range(AGGREGATES)]
        members = {
            (1 + (i + shift) % AGGREGATES, i)
            for i in range(HOSTS)
            for shift in (0, 1, 40)
        }
        metadata = [
            {'aggregate_id': i, 'key': 'trait:CUSTOM_X', 'value': 'required'}
            for i in range(1, ISOLATING + 1)
        ] + [
            {'aggregate_id': i, 'key': 'availability_zone', 'value': 'az1'}
            for i in range(1, AGGREGATES // 2)
        ]
        self.insert_api(
            api_models.Aggregate,
            [
                {'id': i, 'uuid': uuid, 'name': f'agg{i}'}
                for i, uuid in enumerate(uuids, 1)
            ],
        )
        self.insert_api(api_models.AggregateMetadata, metadata)
        self.insert_api(
            api_models.AggregateHost,
            [
                {'aggregate_id': i, 'host': self.names[number]}
                for i, number in members
            ],
        )
        engine = placement_db.placement_context_manager.writer.get_engine()
        with engine.begin() as connection:
            connection.execute(
                sa.insert(placement_models.PlacementAggregate.__table__),
                [{'id': i, 'uuid': uuid} for i, uuid in enumerate(uuids, 1)],
            )
            connection.execute(
                sa.insert(
                    placement_models.ResourceProviderAggregate.__table__
                ),
                [
                    {'resource_provider_id': number + 1, 'aggregate_id': i}
                    for i, number in members
                ],
            )

    def insert_api(self, table, rows):
        ctxt = context.get_admin_context()
        with api_db.context_manager.writer.using(ctxt) as session:
            session.execute(sa.insert(table), rows)


def _removed(rows):
    return sum(row['Removed'] for row in rows)
