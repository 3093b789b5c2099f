# SPDX-License-Identifier: Apache-2.0

"""Each operation that nova refuses is recorded once, with the real cause."""

import json
import pathlib
import time

import fixtures
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.watch import cells as watched_cells
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import recorder
from nova_ext_sched.watch import sink
from tests import schemas
from tests.functional import base

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class WatchTestCase(base.CloudTestCase):
    """A watcher that takes a turn when the test wants it."""

    weights = {'host1': 2, 'host2': 1}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}
    most = 30

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.records = folder / 'records'
        self.state = folder / 'state'
        self.watcher = self.watch()
        # The first turn notes where the cells stand.
        self.assertEqual([], self.recorded())

    def watch(self):
        self.sink = sink.Sink(self.records, self.state)
        self.metrics = metrics.Metrics()
        signals = interrupt.Interrupt()
        asked = cells.Cells()
        return recorder.Recorder(
            feed.Feed(watched_cells.WatchedCells(asked), self.sink.read()),
            explainer.Explainer(self.metrics, signals, asked, self.most),
            self.sink,
            self.metrics,
            signals,
        )

    def recorded(self):
        """Take a turn; return the records that it wrote."""
        before = self.read()
        self.watcher.turn()
        return self.read()[len(before) :]

    def read(self):
        if not self.records.exists():
            return []
        found = [
            json.loads(line) for line in self.records.read_text().splitlines()
        ]
        for record in found:
            schemas.validate(record, 'watch/record.json')
        return found

    def figure(self, name, **labels):
        return self.metrics.registry.get_sample_value(
            f'nova_ext_sched_{name}', labels
        )

    def refuse(self):
        """Boot a server that is too large for every host; return it."""
        return self.boot(
            flavor=self._create_flavor(memory_mb=64, vcpu=500, disk=0),
            expected_state='ERROR',
        )

    def request_ids(self, server, action):
        """Return the IDs of requests for an action, the first one first."""
        return [
            one['request_id']
            for one in reversed(
                self.admin_api.api_get(
                    f'/servers/{server["id"]}/os-instance-actions'
                ).body['instanceActions']
            )
            if one['action'] == action
        ]


class OperationsTest(WatchTestCase):
    """One cloud for all operations, in an order in which none hinders."""

    def assertRecorded(self, operation, action, constraint, server):
        [record] = self.recorded()
        self.assertEqual(
            (operation, server['id'], constraint, None),
            (
                record['operation'],
                record['server'],
                record['constraint'],
                record['unexplained'],
            ),
        )
        self.assertEqual(
            [record['request_id']], self.request_ids(server, action)
        )
        self.assertEqual(self.api.project_id, record['project'])
        self.assertTrue(
            record['fault'].startswith('No valid host'), record['fault']
        )
        explanation = record['explanation']
        self.assertEqual(operation, explanation['request']['operation'])
        self.assertFalse(explanation['answer']['finds_host'])
        self.assertEqual(
            constraint, explanation['answer']['reasons'][0]['cause']
        )
        for key in ('flavor', 'image'):
            asked = explanation['request'][key]
            self.assertEqual(
                {'id': asked['id'], 'name': asked['name']}, record[key]
            )
        self.assertEqual([], self.recorded())
        return record

    def assertFailed(
        self,
        server,
        operation,
        event,
        constraint='disabled service',
        kind=None,
    ):
        """Wait until an operation has failed, and check its record.

        :param event: of nova, with which it ends
        :param kind: of nova's action, where it has another name
        """
        kind = kind or operation
        self._wait_for_action_fail_completion(server, kind, event)
        self.assertRecorded(operation, kind, constraint, server)

    def test_operations(self):
        self.flags(shelved_offload_time=0)
        self.boot_of_several()
        server, shelved = self.boot(), self.boot()
        self.act(shelved, 'shelve', 'SHELVED_OFFLOADED')
        self.resize_twice(server)
        self.set_service('host2', status='disabled')
        self.act(server, 'migrate')
        self.assertFailed(server, 'migrate', 'cold_migrate')
        self.live_migrate(server)
        self.assertFailed(
            *(server, 'live-migrate', 'conductor_live_migrate_instance'),
            kind='live-migration',
        )
        self.isolate('windows', ['host1'], TRAIT)
        self.boot_of_one()
        self.rebuild()
        self.set_service('host1', status='disabled')
        # nova adds no fault; the event of the action tells.
        self.act(shelved, 'unshelve')
        self.assertFailed(shelved, 'unshelve', 'schedule_instances')
        self.lose('host1')
        self.act(server, 'evacuate')
        self.assertFailed(server, 'evacuate', 'rebuild_server')

    def boot_of_several(self):
        """One explanation for all, that of the whole request.

        So the records grow no more than what a member sends.
        """
        flavor = self._create_flavor(memory_mb=6000, vcpu=1, disk=0)
        server = self._build_server(
            flavor_id=flavor, image_uuid=self.image(), networks='none'
        )
        server.update(min_count=3, max_count=3, name='x' * 240)
        hints = {f'hint{number}': 'x' * 250 for number in range(100)}
        body = {'server': server, 'os:scheduler_hints': hints}
        self.api.post_server(body)
        self.wait_for_errors(3)
        records = self.recorded()
        self.assertEqual(3, len(records))
        self.assertEqual(1, len({r['request_id'] for r in records}))
        self.assertEqual(3, len({r['server'] for r in records}))
        sent, kept = len(json.dumps(body)), self.records.stat().st_size
        # A record without its explanation has ids, times and a name.
        self.assertLess(kept, 1.2 * sent + 3 * 1500)
        first, *others = records
        request = first['explanation']['request']
        self.assertEqual(
            (first['server'], 3), (request['server'], request['instances'])
        )
        self.assertEqual(
            [(None, first['id'], 'too few hosts')] * 2,
            [
                (one['explanation'], one['explained_by'], one['constraint'])
                for one in others
            ],
        )
        self.assertEqual(1, self.figure('explanation_duration_seconds_count'))

    def boot_of_one(self):
        """Of one host each, the answer names what is disabled first."""
        server = self.assertNoValidHost()
        record = self.assertRecorded(
            'boot', 'create', 'disabled service', server
        )
        self.assertIn('windows', record['explanation']['answer']['sentence'])

    def resize_twice(self, server):
        """Both before the watcher looks: each has its request and flavor."""
        wanted = [500, 501]
        for vcpus in wanted:
            flavor = self._create_flavor(memory_mb=64, vcpu=vcpus, disk=0)
            self.act(server, 'resize', flavorRef=flavor)
            self.wait_for_fault(vcpus - 499)
        records = self.recorded()
        self.assertEqual(
            [('resize', 'VCPU', vcpus) for vcpus in wanted],
            [
                (
                    record['operation'],
                    record['constraint'],
                    record['explanation']['request']['flavor']['vcpus'],
                )
                for record in records
            ],
        )
        self.assertEqual(
            self.request_ids(server, 'resize'),
            [record['request_id'] for record in records],
        )

    def wait_for_fault(self, count):
        """Wait until cell1 has so many faults."""
        faults = sa.select(sa.func.count(models.InstanceFault.id))
        for _ in range(600):
            with self.cell_engine('cell1').connect() as connection:
                if connection.scalar(faults) == count:
                    return
            time.sleep(0.05)
        self.fail(f'expected {count} faults')

    def rebuild(self):
        """Stage 2 alone judges it."""
        server = self.boot(
            image=self.image(props={f'trait:{TRAIT}': 'required'})
        )
        self.act(server, 'rebuild', imageRef=self.image())
        self.assertFailed(server, 'rebuild', 'rebuild_server', 'isolation')
