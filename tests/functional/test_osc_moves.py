# SPDX-License-Identifier: Apache-2.0

"""``openstack move plan apply`` against a real nova and placement."""

import io
import json
import re
import shlex
import time
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova import exception
from nova.compute import manager
from nova.scheduler.client import report as client
from nova.virt import fake

from nova_ext_sched.cmd import drain as drain_command
from nova_ext_sched.osc import moves_again
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_run
from tests.functional import explain
from tests.functional import plans

APPLY = ('move', 'plan', 'apply')


class ApplyTestCase(plans.PlanTestCase):
    """host1 is to be empty, which has a running and a stopped server."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    #: Whether there is the stopped one.
    has_stopped = True

    def setUp(self):
        super().setUp()
        self.patch(moves_run, 'SECONDS', 0.05)
        self.patch(moves_making, 'SETTLED', 0.5)
        self.patch(moves_again, 'AGAIN', 0.5)
        self.openstack = self.use_client()
        self.running = self.boot(host='host1', name='[bold]web[/] $(reboot)')
        if self.has_stopped:
            self.stopped = self.boot_stopped(host='host1')

    def drain(self):
        return self.plan('host1', by=drain_command.Drain)

    def only(self, kind, plan=None):
        """Return a plan with the moves of one kind alone.

        The servers of the others stay.
        """
        plan = plan or self.drain()
        moves = [one for one in plan['moves'] if one['method'] == kind]
        return {**plan, 'moves': moves, 'to_be_empty': []}

    def apply(self, plan, *arguments, status=0):
        """Run the command; return the result of each move."""
        got, results = self.run_apply(plan, *arguments)
        self.assertEqual(status, got, self.said)
        return results

    def run_apply(self, plan, *arguments):
        """Run the command; return its exit status and the results."""
        path = f'{self.useFixture(fixtures.TempDir()).path}/plan.json'
        with open(path, 'w') as file:
            json.dump(plan, file)
        got, output, errors = self.openstack.run_apart(
            *APPLY, path, *arguments, '-f', 'json'
        )
        self.said = ' '.join(errors.split())
        self.rows = json.loads(output) if output else []
        return got, [row['Result'] for row in self.rows]

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
        elsewhere = self.plan(
            'host1', '--not-to', 'host2', by=drain_command.Drain
        )
        self.assertEqual(
            ['host3', 'host3'], [one['to'] for one in elsewhere['moves']]
        )
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
        # nova has noted how long one of each kind took.
        again = self.plan('host2', 'host3', by=drain_command.Drain)
        self.assertEqual(2, len(again['moves']))
        self.assertIsNone(plan['seconds'])
        self.assertIsInstance(again['seconds'], int)
        status, text = self.openstack.run(*APPLY, 'no/such/file')
        self.assertEqual(2, status)
        self.assertIn('cannot be read: No such file', text)


class NightTest(ApplyTestCase):
    """What users and faults do between a plan and its moves."""

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

    def test_keep_going_and_skip(self):
        plan = self.drain()
        first, second = (one['server'] for one in plan['moves'])
        self.assertEqual(
            ['left out', 'moved'], self.apply(plan, '--skip', first, status=3)
        )
        self.assertIn('was left out: by --skip.', self.said)
        self.assertEqual(['moved', 'already there'], self.apply(plan))


class BrokenTest(ApplyTestCase):
    """nova leaves a server in ERROR on its old host."""

    has_stopped = False

    def setUp(self):
        super().setUp()
        self.made = self.only('live')
        self.activate = (
            f'If its guest runs: openstack server set --state active '
            f'{self.running["id"]}. Fix that, then run the command again to '
            'continue.'
        )

    def test_nova_compute_undoes_it_and_raises(self):
        """As libvirt's driver does since 2025.2, for no reason that nova says.

        Of one that was aborted nova says so first, for some seconds.
        """
        for status, is_late in (('failed', False), ('cancelled', True)):
            with mock.patch.object(
                fake.FakeDriver, 'live_migration', refuse(status, is_late)
            ):
                self.assertEqual(['failed'], self.apply(self.made, status=1))
            self.assertIn(
                'it is on host1 in ERROR, power state Running: its '
                'live-migration failed, and nova does not say why. See the '
                f'nova-compute log of host1. {self.activate}',
                self.said,
            )
            self.assertNotIn('--not-to', self.said)
            found = self.admin_api.get_server(self.running['id'])
            self.assertEqual('ERROR', found['status'])
            # A later run says the same, and changes nothing.
            before = self.migrations()
            self.assertEqual(['failed'], self.apply(self.made, status=1))
            self.assertIn(self.activate, self.said)
            self.assertEqual(before, self.migrations())
            self.reset_state(self.running, 'active')
        self.assertEqual(['moved'], self.apply(self.made))
        self.assertEqual('ACTIVE', self.show(self.running)['status'])

    def test_nova_conductor_does_not_know_what_was_raised(self):
        """As where placement, keystone or a database is away meanwhile."""
        with mock.patch(
            'nova.conductor.tasks.live_migrate.LiveMigrationTask._execute',
            side_effect=keystone_exceptions.ConnectFailure('away'),
        ):
            self.assertEqual(['failed'], self.apply(self.made, status=1))
        self.assertIn('in ERROR, power state Running', self.said)
        self.assertIn('its live-migration failed (', self.said)
        self.assertIn(self.activate, self.said)
        self.reset_state(self.running, 'active')
        self.assertEqual(['moved'], self.apply(self.made))

    def test_one_that_was_stopped(self):
        """What is said brings it back as it was."""
        self.stopped = self.boot_stopped(host='host1')
        self.reset_state(self.stopped, 'error')
        [move] = self.made['moves']
        plan = {
            **self.made,
            'moves': [{**move, 'server': self.stopped['id']}],
        }
        self.assertEqual(['failed'], self.apply(plan, status=1))
        self.assertIn(
            'power state Shutdown. See the nova-compute log of host1. It is '
            f'stopped: openstack server set --state active '
            f'{self.stopped["id"]}, then openstack server stop',
            self.said,
        )
        self.reset_state(self.stopped, 'active')
        self.act(self.stopped, 'os-stop', 'SHUTOFF')

    def test_what_a_dry_run_lists_then(self):
        """What was done, also after the move that failed, and what is left."""
        self.stopped = self.boot_stopped(host='host1')
        third = self.boot(host='host1')
        made = self.drain()
        order = [self.running['id'], self.stopped['id'], third['id']]
        made['moves'].sort(key=lambda one: order.index(one['server']))
        for move in made['moves']:
            move['needs'] = []
        self.assertEqual(
            ['left out', 'moved', 'left out'],
            self.apply(
                made, *(f'--skip={order[n]}' for n in (0, 2)), status=3
            ),
        )
        self.reset_state(self.running, 'error')
        self.assertEqual(
            ['failed', 'not tried', 'not tried'], self.apply(made, status=1)
        )
        before = self.migrations()
        self.assertEqual(
            ['failed', 'already there', 'planned'],
            self.apply(made, '--dry-run', status=1),
        )
        self.assertEqual(before, self.migrations())
        self.reset_state(self.running, 'active')

    def test_three_servers_in_error_are_enough(self):
        """One wrong rule of a firewall would leave each in ERROR."""
        for _ in range(3):
            self.boot(host='host1')
        plan = self.only('live')
        with mock.patch.object(
            fake.FakeDriver, 'live_migration', refuse('failed')
        ):
            results = self.apply(plan, '--keep-going', status=1)
        self.assertEqual(['failed'] * 3 + ['not tried'], results)
        self.assertIn('Nothing more was begun: 3 servers are in', self.said)

    def show(self, server):
        return self.admin_api.get_server(server['id'])


def refuse(status, is_late=False):
    """Return a driver's live migration that is undone, and raises.

    :param is_late: whether some time passes in between
    """

    def migrate(
        self, context, instance, dest, post, recover, block=False, data=None
    ):
        recover(context, instance, dest, data, migration_status=status)
        time.sleep(0.3 * is_late)
        raise ValueError('libvirt refuses it')

    return migrate


class LastLookTest(ApplyTestCase):
    """What is on hosts that are to be empty counts before a reboot."""

    def test_a_server_that_a_user_created_meanwhile(self):
        plan = self.drain()
        new = self.boot(host='host1', name='new')
        results = self.apply(plan, '--disable', status=3)
        self.assertEqual(['moved', 'moved', 'not in the plan'], results)
        self.assertIn(
            '1 server not in the plan is on a host that is to be empty: new '
            'on host1. Make a new plan: nova-ext-sched ',
            self.said,
        )
        self.live_migrate(new, 'host2')
        self._wait_for_migration_status(new, ['completed'])
        self.assertEqual(['already there'] * 2, self.apply(plan))

    def test_it_cannot_be_looked_at(self):
        plan = self.drain()
        with mock.patch.object(
            moves_cloud.Cloud,
            '_get_servers',
            side_effect=keystone_exceptions.Forbidden('no'),
        ):
            self.assertEqual(['moved'] * 2, self.apply(plan, status=1))
        self.assertIn('could not be read', self.said)

    def test_a_server_whose_deletion_does_not_end(self):
        """A nova-compute that started anew, or a request that was lost."""
        self.patch(moves_making, 'HELD', 0.3)
        plan = self.drain()
        with mock.patch('nova.compute.rpcapi.ComputeAPI.terminate_instance'):
            self.api.delete_server(self.running['id'])
            results = self.apply(plan, '--keep-going', status=3)
        self.assertCountEqual(['being deleted', 'moved'], results)
        self.assertIn(
            'its task is deleting, and it is still on host1: wait until it '
            'is deleted.',
            self.said,
        )
        self.assertNotIn('2 of 2 moves', self.said)
        # An hour later it is stuck, and what is said deletes it: while
        # nova-compute is up, nova-api ignores another request.
        with fixtures.MonkeyPatch('nova_ext_sched.osc.moves_words.LONG', -1):
            self.apply(plan, status=3)
        self.assertIn(
            f'openstack server delete {self.running["id"]}; if', self.said
        )
        self.reset_state(self.running, 'error')
        self._delete_server(self.running)
        self.assertCountEqual(['gone', 'already there'], self.apply(plan))

    def test_one_that_is_deleted_softly(self):
        plan = self.drain()
        self.flags(reclaim_instance_interval=10**6)
        self.api.delete_server(self.running['id'])
        self._wait_for_server_parameter(
            self.running, {'status': 'SOFT_DELETED'}
        )
        results = self.apply(plan, '--keep-going', status=3)
        self.assertCountEqual(['being deleted', 'moved'], results)
        self.assertIn('it is soft-deleted and stays on host1', self.said)
        # One that the plan does not know is found, too.
        plan['moves'] = []
        self.assertEqual(['not in the plan'], self.apply(plan, status=3))


class RefusedTest(ApplyTestCase):
    """nova finds no host; what is wrong is named, or passes."""

    def test_the_destination_was_disabled_since(self):
        plan = self.drain()
        self.set_service('host2', status='disabled', disabled_reason='disks')
        second = plan['moves'][1]
        second |= {'to': 'host3', 'expected': 'host3', 'needs': []}
        results = self.apply(plan, '--keep-going', status=1)
        self.assertEqual(['failed', 'moved'], results)
        self.assertIn('No valid host was found', self.said)
        self.assertIn(': host2 is disabled (disks). Fix what', self.said)
        self.assertLess(1, len(self.migrations()))
        is_cold = second['method'] == 'cold'
        self.undo(second['server'], 'SHUTOFF' if is_cold else 'ACTIVE')

    def undo(self, server, status):
        """Type the commands that the report has for it."""
        [said] = re.findall(r'move back 1 server, .*?: (.*?)\.$', self.said)
        for command in said.split(', then '):
            words = shlex.split(command)[1:]
            self.assertEqual(0, self.openstack.run_apart(*words)[0])
            self._wait_for_server_parameter(
                {'id': server},
                {
                    'OS-EXT-SRV-ATTR:host': 'host1',
                    'OS-EXT-STS:task_state': None,
                },
            )
        self._wait_for_server_parameter({'id': server}, {'status': status})

    def test_what_apply_cannot_read(self):
        plan = self.drain()
        self.isolate('closed', ['host2', 'host3'], 'CUSTOM_CLOSED')
        self.assertEqual(['failed', 'not tried'], self.apply(plan, status=1))
        self.assertIn(
            'to see why: nova-ext-sched explain --server '
            f'{plan["moves"][0]["server"]} --operation',
            self.said,
        )

    def test_placement_is_away_meanwhile(self):
        """nova-scheduler finds no host then; a minute later it does."""
        plan, report = self.drain(), client.SchedulerReportClient
        ask, looks = report.get_allocation_candidates, []

        def answer(*args):
            looks.append(1)
            return (None, None, None) if len(looks) < 3 else ask(*args)

        with (
            fixtures.MockPatchObject(
                report, 'get_allocation_candidates', answer
            ),
            mock.patch.object(
                moves_cloud.Cloud,
                'find_silent',
                side_effect=[['placement'], []],
            ),
        ):
            self.assertEqual(['moved'] * 2, self.apply(plan))
        self.assertLess(2, len(looks))
