# SPDX-License-Identifier: Apache-2.0

"""``openstack move plan apply`` against a real nova and placement."""

import io
import json
from unittest import mock

import fixtures
from nova import exception
from nova.compute import manager
from nova.virt import fake

from nova_ext_sched.cmd import drain as drain_command
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_run
from tests.functional import explain
from tests.functional import plans

APPLY = ('move', 'plan', 'apply')


class ApplyTestCase(plans.PlanTestCase):
    """host1 is to be empty, which has a running and a stopped server."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.patch(moves_run, 'SECONDS', 0.05)
        self.openstack = self.use_client()
        self.running = self.boot(host='host1', name='[bold]web[/] $(reboot)')
        self.stopped = self.boot_stopped(host='host1')

    def drain(self):
        return self.plan('host1', by=drain_command.Drain)

    def apply(self, plan, *arguments, status=0):
        """Run the command; return the result of each move."""
        path = f'{self.useFixture(fixtures.TempDir()).path}/plan.json'
        with open(path, 'w') as file:
            json.dump(plan, file)
        got, output, errors = self.openstack.run_apart(
            *APPLY, path, *arguments, '-f', 'json'
        )
        self.assertEqual(status, got, output + errors)
        self.said = ' '.join(errors.split())
        if not output:
            return []
        self.rows = json.loads(output)
        return [row['Result'] for row in self.rows]

    def migrations(self):
        """Return kind and status of all, sorted."""
        found = self.admin_api.api_get('/os-migrations').body['migrations']
        return sorted((one['migration_type'], one['status']) for one in found)

    def assertMoved(self, plan):
        """Check that each server is where it belongs, moved once."""
        for move in plan['moves']:
            found = self.admin_api.get_server(move['server'])
            self.assertEqual(
                move['expected'], found['OS-EXT-SRV-ATTR:host'], found
            )
            self.assertIn(found['status'], ('ACTIVE', 'SHUTOFF'))
        self.assertEqual(
            [('live-migration', 'completed'), ('migration', 'confirmed')],
            self.migrations(),
        )
        provider = self._get_provider_uuid_by_host('host1')
        self.assertEqual({}, self._get_allocations_by_provider_uuid(provider))


class DrainTest(ApplyTestCase):
    def test_to_the_end(self):
        plan = self.drain()
        before = self.migrations()
        self.assertEqual(
            ['planned', 'planned'], self.apply(plan, '--dry-run', status=3)
        )
        self.assertEqual(before, self.migrations())
        self.assertEqual(
            {('live', ''), ('cold', 'stopped')},
            {(one['method'], one['why_cold']) for one in plan['moves']},
        )
        self.assertEqual(['moved', 'moved'], self.apply(plan))
        self.assertIn('2 of 2 moves are done: moved 2.', self.said)
        self.assertEqual(
            [
                (m['server'], m['name'], m['host'], m['to'], m['method'])
                for m in plan['moves']
            ],
            [
                (r['Server'], r['Name'], r['Host'], r['To'], r['Method'])
                for r in self.rows
            ],
        )
        self.assertMoved(plan)
        for arguments in ((), ('--dry-run',)):
            self.assertEqual(
                ['already there'] * 2, self.apply(plan, *arguments)
            )
        self.assertMoved(plan)
        with fixtures.MonkeyPatch('sys.stdin', io.StringIO(json.dumps(plan))):
            self.assertEqual(2, self.openstack.run(*APPLY, '-')[0])
            status, text = self.openstack.run(*APPLY, '-', '--yes')
        self.assertEqual(0, status)
        self.assertTrue(
            text.startswith('2 of 2 moves are done:\n  2  already there\n'),
            text,
        )
        # As a user wrote it.
        self.assertIn('  [bold]web[/]', text)
        status, text = self.openstack.run(*APPLY, 'no/such/file')
        self.assertEqual(2, status)
        self.assertIn('cannot be read: No such file', text)


class NightTest(ApplyTestCase):
    """What users and faults do between a plan and its moves."""

    def only(self, kind):
        """Return a plan with the move of one kind alone."""
        plan = self.drain()
        moves = [one for one in plan['moves'] if one['method'] == kind]
        return {**plan, 'moves': moves}

    def test_a_server_that_runs_now_is_moved_live(self):
        """And one that is stopped now cold; none is shut down."""
        plan = self.drain()
        self.act(self.stopped, 'os-start', 'ACTIVE')
        self.act(self.running, 'os-stop', 'SHUTOFF')
        with mock.patch.object(
            fake.FakeDriver, 'power_off', side_effect=AssertionError
        ):
            self.assertEqual(
                ['planned'] * 2, self.apply(plan, '--dry-run', status=3)
            )
            self.assertEqual(['moved', 'moved'], self.apply(plan))
        methods = {one['server']: one['method'] for one in plan['moves']}
        swapped = {'live': 'cold', 'cold': 'live'}
        self.assertEqual(
            {uuid: swapped[kind] for uuid, kind in methods.items()},
            {row['Server']: row['Method'] for row in self.rows},
        )
        self.assertMoved(plan)
        for server, status in (
            (self.stopped, 'ACTIVE'),
            (self.running, 'SHUTOFF'),
        ):
            found = self.admin_api.get_server(server['id'])
            self.assertEqual(status, found['status'])

    def test_nova_does_not_live_migrate_it(self):
        """Then it is left out, and runs."""
        plan = self.only('cold')
        self.act(self.stopped, 'os-start', 'ACTIVE')
        with mock.patch.object(
            fake.FakeDriver,
            'check_can_live_migrate_destination',
            side_effect=exception.MigrationPreCheckError(reason='no CPU'),
        ):
            self.assertEqual(['left out'], self.apply(plan, status=3))
        self.assertIn('was left out: it is running now, and nova', self.said)
        found = self.admin_api.get_server(self.stopped['id'])
        self.assertEqual('ACTIVE', found['status'])
        self.assertEqual('host1', self.host_of(self.stopped))

    def test_room_that_nova_never_gives_back(self):
        """It is named, drain names it, and what is said frees it."""
        self.patch(moves_making, 'HELD', 1)
        plan = self.drain()
        for move in plan['moves']:
            move['needs'] = []
        with mock.patch.object(
            manager.ComputeManager, '_delete_allocation_after_move'
        ):
            self.assertEqual(['moved', 'moved'], self.apply(plan, status=3))
        commands = {
            f'openstack resource provider allocation delete {uuid}'
            for uuid in self.find_held()
        }
        self.assertEqual(2, len(commands))
        for one in commands:
            self.assertIn(f'still holds its room on host1: {one}.', self.said)
        again = self.plan_status(3)
        self.assertEqual(
            commands, {one['would_help'] for one in again['without_place']}
        )
        self.assertIn(
            'The host will not be empty.', again['answer']['sentence']
        )
        self.assertEqual(['already there'] * 2, self.apply(plan, status=3))
        for one in commands:
            self.placement.delete(f'/allocations/{one.split()[-1]}')
        again = self.plan_status(0)
        self.assertIn('The host will be empty.', again['answer']['sentence'])
        self.assertEqual(['already there'] * 2, self.apply(plan))

    def find_held(self):
        """Return the consumers of host1."""
        uuid = self._get_provider_uuid_by_host('host1')
        return self._get_allocations_by_provider_uuid(uuid)

    def plan_status(self, status):
        found = explain.ask(drain_command.Drain, 'drain', 'host1')
        self.assertEqual(status, found.status)
        return found.plan

    def test_hosts_that_get_no_server(self):
        plan = self.plan('host1', '--not-to', 'host2', by=drain_command.Drain)
        self.assertEqual(
            ['host3', 'host3'], [one['to'] for one in plan['moves']]
        )

    def test_keep_going_and_skip(self):
        plan = self.drain()
        first, second = (one['server'] for one in plan['moves'])
        self.assertEqual(
            ['left out', 'moved'], self.apply(plan, '--skip', first, status=3)
        )
        self.assertIn('was left out: by --skip.', self.said)
        self.assertEqual(['moved', 'already there'], self.apply(plan))
