# SPDX-License-Identifier: Apache-2.0

"""Each operation that nova refuses is recorded once, with the real cause."""

import json
import pathlib

import fixtures
import jsonschema
from oslo_utils import fixture

from nova_ext_sched.cmd import records
from nova_ext_sched.cmd.explain import command as explain_command
from nova_ext_sched.cmd.watch import cells
from nova_ext_sched.cmd.watch import command
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import watcher
from tests import samples
from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


def schema(module, name):
    return json.loads(
        pathlib.Path(module.__file__).with_name(name).read_text()
    )


class WatchTestCase(base.CloudTestCase):
    """A watcher that takes a turn when the test wants it."""

    weights = {'host1': 2, 'host2': 1}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}
    most = 30

    def setUp(self):
        super().setUp()
        self.flags(cores=-1, ram=-1, group='quota')
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.records = folder / 'records'
        self.state = folder / 'state'
        self.watcher = self.watch()
        # The first turn notes where the cells stand.
        self.assertEqual(0, self.watcher.turn())

    def watch(self):
        self.metrics = metrics.Metrics()
        signals = interrupt.Interrupt()
        return watcher.Watcher(
            cells.Cells(),
            explainer.Explainer(self.metrics, signals, self.most),
            records.Records(self.records),
            position.File(self.state),
            self.metrics,
            signals,
        )

    def recorded(self):
        """Take a turn; return the records that it wrote."""
        before = self.read()
        count = self.watcher.turn()
        new = self.read()[len(before) :]
        self.assertEqual(count, len(new))
        return new

    def read(self):
        if not self.records.exists():
            return []
        found = [
            json.loads(line) for line in self.records.read_text().splitlines()
        ]
        for record in found:
            jsonschema.validate(record, schema(command, 'record.json'))
            if record['explanation'] is not None:
                jsonschema.validate(
                    record['explanation'],
                    schema(explain_command, 'schema.json'),
                )
        return found

    def disable(self, *hosts):
        """Disable hosts; the scheduler's request filter keeps them out."""
        for host in hosts:
            [service] = self.admin_api.get_services(
                binary='nova-compute', host=host
            )
            self.admin_api.put_service(service['id'], {'status': 'disabled'})

    def request_id(self, server, action):
        [found] = [
            one
            for one in self.admin_api.api_get(
                f'/servers/{server["id"]}/os-instance-actions'
            ).body['instanceActions']
            if one['action'] == action
        ]
        return found['request_id']


class OperationsTest(WatchTestCase):
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
        self.assertEqual(self.request_id(server, action), record['request_id'])
        self.assertEqual(self.api.project_id, record['project'])
        self.assertTrue(
            record['fault'].startswith('No valid host'), record['fault']
        )
        explanation = record['explanation']
        self.assertEqual(operation, explanation['request']['operation'])
        self.assertFalse(explanation['answer']['finds_host'])
        self.assertEqual([], self.recorded())
        return record

    def test_boot(self):
        self.isolate('windows', ['host1', 'host2'], TRAIT)
        server = self.assertNoValidHost()
        record = self.assertRecorded('boot', 'create', 'isolation', server)
        self.assertIn('windows', record['explanation']['answer']['sentence'])

    def test_boot_of_several(self):
        """One explanation for all, that of the whole request."""
        self.flags(max_attempts=1, group='scheduler')
        flavor = self._create_flavor(memory_mb=6000, vcpu=1, disk=0)
        request = self._build_server(
            flavor_id=flavor, image_uuid=self.image(), networks='none'
        )
        request.update(min_count=3, max_count=3)
        self.api.post_server({'server': request})
        self.wait_for_errors(3)
        records = self.recorded()
        self.assertEqual(3, len(records))
        self.assertEqual(1, len({r['request_id'] for r in records}))
        self.assertEqual(3, len({r['server'] for r in records}))
        for record in records:
            request = record['explanation']['request']
            self.assertEqual(
                (record['server'], 3),
                (request['server'], request['instances']),
            )
        [sample] = [
            one.value
            for family in self.metrics.registry.collect()
            for one in family.samples
            if one.name.endswith('explanation_duration_seconds_count')
        ]
        self.assertEqual(1, sample)

    def test_resize(self):
        server = self.boot()
        flavor = self._create_flavor(memory_mb=64, vcpu=500, disk=0)
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': flavor}}
        )
        self._wait_for_action_fail_completion(server, 'resize', 'cold_migrate')
        record = self.assertRecorded('resize', 'resize', 'VCPU', server)
        self.assertEqual(
            500, record['explanation']['request']['flavor']['vcpus']
        )

    def test_migrate(self):
        server = self.boot()
        self.disable('host2')
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_action_fail_completion(
            server, 'migrate', 'cold_migrate'
        )
        self.assertRecorded('migrate', 'migrate', 'disabled service', server)

    def test_live_migrate(self):
        server = self.boot()
        self.disable('host2')
        self.admin_api.post_server_action(
            server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_action_fail_completion(
            server, 'live-migration', 'conductor_live_migrate_instance'
        )
        self.assertRecorded(
            'live-migrate', 'live-migration', 'disabled service', server
        )

    def test_evacuate(self):
        server = self.boot()
        self.computes['host1'].stop()
        [service] = self.admin_api.get_services(
            binary='nova-compute', host='host1'
        )
        self.admin_api.put_service(service['id'], {'forced_down': True})
        self.disable('host2')
        self.admin_api.post_server_action(server['id'], {'evacuate': {}})
        self._wait_for_action_fail_completion(
            server, 'evacuate', 'rebuild_server'
        )
        self.assertRecorded('evacuate', 'evacuate', 'disabled service', server)

    def test_rebuild(self):
        """Stage 2 alone judges it."""
        self.isolate('windows', ['host1'], TRAIT)
        server = self.boot(
            image=self.image(props={f'trait:{TRAIT}': 'required'})
        )
        self.api.post_server_action(
            server['id'], {'rebuild': {'imageRef': self.image()}}
        )
        self._wait_for_action_fail_completion(
            server, 'rebuild', 'rebuild_server'
        )
        self.assertRecorded('rebuild', 'rebuild', 'isolation', server)

    def test_unshelve(self):
        """nova adds no fault; the event of the action tells."""
        self.flags(shelved_offload_time=0)
        server = self.boot()
        self.api.post_server_action(server['id'], {'shelve': {}})
        self._wait_for_state_change(server, 'SHELVED_OFFLOADED')
        self.disable('host1', 'host2')
        self.api.post_server_action(server['id'], {'unshelve': None})
        self._wait_for_action_fail_completion(
            server, 'unshelve', 'schedule_instances'
        )
        self.assertRecorded('unshelve', 'unshelve', 'disabled service', server)


class PageTest(WatchTestCase):
    """What the page about watch shows."""

    maxDiff = None
    weights = {f'host{number}': 10 - number for number in range(1, 5)}

    def setUp(self):
        super().setUp()
        samples.skip_other_releases(self)
        self.useFixture(
            fixtures.EnvironmentVariable('COLUMNS', str(samples.WIDTH))
        )

    @samples.compares('tools/watch/recorded.txt')
    def test_the_page(self):
        self.isolate('windows', ['host1', 'host2', 'host3'], TRAIT)
        self.disable('host4')
        server = self.assertNoValidHost(
            flavor=self._create_flavor(
                name='small', memory_mb=64, vcpu=1, disk=0, ephemeral=0
            ),
            name='web-7',
        )
        [record] = self.recorded()
        # The server is gone, and the host is back.
        self.api.delete_server(server['id'])
        command = f'explain --recorded {record["request_id"]}'
        self.useFixture(fixture.TimeFixture()).advance_time_seconds(7205)
        answer = explain.run(
            *command.split()[1:], '--records', str(self.records)
        )
        self.assertEqual(3, answer.status, answer.err)
        samples.check(
            self,
            'tools/watch/recorded.txt',
            f'$ nova-ext-sched {command}\n{answer.out}',
            self.api.project_id,
        )


class ResilienceTest(WatchTestCase):
    def refuse(self):
        return self.boot(
            flavor=self._create_flavor(memory_mb=64, vcpu=500, disk=0),
            expected_state='ERROR',
        )

    def test_deleted_in_the_meantime(self):
        server = self.refuse()
        self.api.delete_server(server['id'])
        self._wait_until_deleted(server)
        [record] = self.recorded()
        # nova keeps the request of a deleted server until it is archived.
        self.assertIn(record['unexplained'], (None, 'gone'))

    def test_a_restart_goes_on_behind_the_last_record(self):
        self.refuse()
        [first] = self.recorded()
        second = self.refuse()
        self.watcher = self.watch()
        [record] = self.recorded()
        self.assertEqual(second['id'], record['server'])

    def test_a_crash_between_record_and_state_repeats_nothing(self):
        state = self.state.read_text()
        self.refuse()
        self.assertEqual(1, len(self.recorded()))
        self.state.write_text(state)
        self.watcher = self.watch()
        self.watcher.turn()
        self.assertEqual(1, len(self.read()))
        self.refuse()
        self.assertEqual(1, len(self.recorded()))

    def test_placement_away(self):
        self.refuse()
        with self.away():
            self.assertEqual(0, self.watcher.turn())
            self.assertEqual(1, self.figure('refusals_waiting'))
        [record] = self.recorded()
        self.assertEqual('VCPU', record['constraint'])
        self.assertEqual(0, self.figure('refusals_waiting'))

    def test_placement_away_for_long(self):
        self.refuse()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.watcher.PATIENCE',
                position.SETTLED * 0,
            )
        )
        with self.away():
            [record] = self.recorded()
        self.assertEqual('unavailable', record['unexplained'])
        self.assertEqual([], self.recorded())

    def away(self):
        from keystoneauth1 import exceptions as ks_exc

        def fail(*args, **kwargs):
            raise ks_exc.ConnectFailure('no route to placement')

        return fixtures.MonkeyPatch(
            'nova.scheduler.client.report.SchedulerReportClient.get', fail
        )

    def figure(self, name):
        return self.metrics.registry.get_sample_value(f'nova_ext_sched_{name}')

    def test_a_full_disk(self):
        self.refuse()
        self.records.symlink_to('/dev/full')
        self.assertRaises(OSError, self.watcher.turn)
        self.records.unlink()
        self.assertEqual(1, len(self.recorded()))


class LimitTest(WatchTestCase):
    most = 1

    def test_the_rest_is_recorded_without_an_explanation(self):
        for vcpus in (500, 501):
            self.boot(
                flavor=self._create_flavor(memory_mb=64, vcpu=vcpus, disk=0),
                expected_state='ERROR',
            )
        first, second = self.recorded()
        self.assertIsNone(first['unexplained'])
        self.assertEqual('limit', second['unexplained'])
        self.assertEqual('limit', second['constraint'])
