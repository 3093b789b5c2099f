# SPDX-License-Identifier: Apache-2.0

"""The audit of 10,000 servers on 200 hosts: time and peak memory.

Servers are booted on a real nova once for each kind, and their rows copied.
Every policy is on; one server in five belongs to one of 40 anti-affinity
groups. The databases are SQLite, in memory.
"""

import gc
import itertools
import random
import resource
import sys
import time
import tracemalloc

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.cloud import snapshot
from tests.functional import audits

SERVERS = 10_000
HOSTS = [f'host{number}' for number in range(200)]
GROUPS = 40

# Megabytes that thousands of servers may add to what is alive.
GROWTH = 1
SECONDS = 60


class AuditBenchmark(audits.AuditTestCase):
    weights = {HOSTS[0]: 1}

    def setUp(self):
        super().setUp()
        self.flags(server_groups=-1, group='quota')
        self.rng = random.Random(7)
        self._create_trait('CUSTOM_A')
        self.add_traits(HOSTS[0], 'CUSTOM_A')
        groups = [
            self.api.post_server_groups(
                {
                    'name': f'group{number}',
                    'policy': 'anti-affinity',
                    'rules': {'max_server_per_host': 2},
                }
            )
            for number in range(GROUPS)
        ]
        self.groups = [group['id'] for group in groups]
        self.kinds = [
            self.boot(**kind)['id']
            for kind in (
                {},
                {'flavor': self.flavor(specs={'trait:CUSTOM_A': 'required'})},
                {'flavor': self.flavor(ssd='~')},
                {},
                {'hints': {'group': self.groups[0]}},
            )
        ]
        # Placement knows one host; the rest has names alone.
        for number in range(40):
            metadata = ({}, {'trait:CUSTOM_A': 'required'}, {'ssd': 'true'})
            self.aggregate(f'aggregate{number}', (), **metadata[number % 3])
        self.fill()

    def fill(self):
        """Copy the rows of the servers that were booted."""
        mapping = self.cell_mappings['cell1']
        ctxt = nova_context.get_admin_context()
        with nova_context.target_cell(ctxt, mapping) as target:
            cell = main_db.get_engine(context=target)
        api = api_db.context_manager.writer.get_engine()
        instances = Rows(cell, main_models.Instance, 'uuid', self.kinds)
        extras = Rows(
            cell, main_models.InstanceExtra, 'instance_uuid', self.kinds
        )
        specs = Rows(api, api_models.RequestSpec, 'instance_uuid', self.kinds)
        members = []
        with api.connect() as connection:
            table = api_models.InstanceGroup.__table__
            ids = dict(
                connection.execute(sa.select(table.c.uuid, table.c.id)).all()
            )
        for number in range(SERVERS - len(self.kinds)):
            uuid = uuidutils.generate_uuid()
            kind = number % len(self.kinds)
            instances.copy(kind, uuid=uuid, host=self.rng.choice(HOSTS))
            extras.copy(kind, instance_uuid=uuid)
            group = self.rng.choice(self.groups)
            specs.copy(
                kind,
                instance_uuid=uuid,
                spec=specs.rows[kind]['spec'].replace(self.groups[0], group),
            )
            if kind == 4:
                members.append({'instance_uuid': uuid, 'group_id': ids[group]})
        for rows in (instances, extras, specs):
            rows.insert()
        with api.begin() as connection:
            connection.execute(
                sa.insert(api_models.InstanceGroupMember), members
            )
            connection.execute(
                sa.insert(api_models.AggregateHost),
                [
                    {'host': host, 'aggregate_id': number}
                    for number in self.aggregate_ids.values()
                    for host in self.rng.sample(HOSTS, 10)
                ],
            )

    def audit_hosts(self, hosts=None, advance=lambda: None):
        """Audit, keep no finding, and return the auditor and the seconds."""
        start = time.monotonic()
        auditing = auditor.Auditor(snapshot.Snapshot(), hosts=hosts)
        auditing.count()
        for _ in auditing.judge(advance):
            pass
        return auditing, time.monotonic() - start

    def trace_memory(self, hosts):
        """Return megabytes alive after each 500 servers, garbage collected.

        Python leaves circular garbage until it is a quarter of the heap; that
        share does not grow with the servers.
        """
        alive = []

        def advance():
            if next(steps) % 500 == 0:
                gc.collect()
                alive.append(tracemalloc.get_traced_memory()[0] / 2**20)

        steps = itertools.count(1)
        gc.collect()
        tracemalloc.start()
        try:
            self.audit_hosts(set(hosts), advance)
        finally:
            tracemalloc.stop()
        return alive

    def test_ten_thousand(self):
        cpu = time.process_time()
        whole, seconds = self.audit_hosts()
        cpu = time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        alive = self.trace_memory(HOSTS[:80])
        print(
            f'\n{whole.totals.servers} servers: {cpu:.1f} s of the processor '
            f'({seconds:.1f} s on the clock), {whole.totals.violating} found; '
            f'peak of the process {peak:.0f} MB, databases and nova included. '
            f'Alive after each 500 servers: '
            + ', '.join(f'{megabytes:.1f}' for megabytes in alive)
            + ' MB',
            file=sys.stderr,
        )
        self.assertEqual(SERVERS, whole.totals.servers)
        self.assertGreater(whole.totals.violating, SERVERS / 20)
        self.assertLess(alive[-1], alive[0] + GROWTH)
        # The databases are in this process. What other processes take of the
        # machine is no matter of the audit.
        self.assertLess(cpu, SECONDS)


class Rows:
    """Rows of a table, to be copied.

    :param key: the column with the server's UUID
    :param uuids: the servers whose rows are the originals
    """

    def __init__(self, engine, model, key, uuids):
        self._engine = engine
        self._table = model.__table__
        with engine.connect() as connection:
            found = {
                row[key]: dict(row)
                for row in connection.execute(
                    sa.select(self._table)
                ).mappings()
            }
        self.rows = [found[uuid] for uuid in uuids]
        self._copies = []

    def copy(self, number, **changes):
        row = {**self.rows[number], **changes}
        del row['id']
        self._copies.append(row)

    def insert(self):
        with self._engine.begin() as connection:
            connection.execute(sa.insert(self._table), self._copies)
        self._copies = []
