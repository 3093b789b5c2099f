# SPDX-License-Identifier: Apache-2.0

"""``move plan apply`` that is killed, and what others do beside it."""

import json
import re
import time
from unittest import mock

import ddt
import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from oslo_db import exception as db_exc
import oslo_messaging

from nova_ext_sched.cmd import drain
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc import moves_seen
from tests.functional import openstackclient
from tests.functional import test_osc_moves
from tests.functional import test_survive

SCHEDULER = 'nova.scheduler.client.report.SchedulerReportClient'
COMPUTE, NEUTRON = 'nova.compute.rpcapi.ComputeAPI', 'nova.network.neutron.API'
NO_CONNECTION = keystone_exceptions.ConnectFailure('no connection')


class Killed(BaseException):
    """Stands for SIGKILL."""


@ddt.ddt
class KilledTest(test_osc_moves.ApplyTestCase):
    @ddt.data(
        ('begin', True),
        ('begin', False),
        ('confirm', True),
        ('confirm', False),
        ('holds', True),
        ('read_server', True),
        ('read_migrations', False),
    )
    @ddt.unpack
    def test_it_goes_on(self, name, before):
        """Killed before or after each request, it moves nothing twice."""
        plan, step = self.drain(), getattr(moves_cloud.Cloud, name)
        calls, kill_at = [], [1]

        def make(*args):
            calls.append(args)
            if before and len(calls) == kill_at[0]:
                raise Killed
            answer = step(*args)
            if len(calls) == kill_at[0]:
                raise Killed
            return answer

        killed = 0
        with fixtures.MockPatchObject(moves_cloud.Cloud, name, make):
            while True:
                calls.clear()
                try:
                    self.apply(plan)
                except Killed:
                    killed += 1
                    kill_at[0] += 1
                else:
                    break
        self.assertLess(0, killed)
        self.assertMoved(plan)

    def test_ctrl_c(self):
        plan = self.drain()
        # Of nobody else.
        clock = mock.Mock(wraps=time)
        clock.sleep.side_effect = KeyboardInterrupt
        with fixtures.MockPatchObject(moves_run, 'time', clock):
            self.apply(plan, status=130)
        self.assertIn('Interrupted. 0 of 2 moves are done; nova', self.said)
        self.assertEqual(['moved', 'moved'], self.apply(plan))


class OthersTest(test_osc_moves.ApplyTestCase):
    """What nova refuses, and what others do meanwhile."""

    def setUp(self):
        super().setUp()
        self.made = self.drain()
        # In their order.
        self.first, self.second = (one['server'] for one in self.made['moves'])

    def test_nova_refuses_a_move(self):
        plan = self.made
        self.isolate('closed', ['host2', 'host3'], 'CUSTOM_CLOSED')
        for _ in range(2):
            self.assertEqual(
                ['failed', 'not tried'], self.apply(plan, status=1)
            )
            name = self.made['moves'][0]['name']
            self.assertIn(f'Move 1 ({name}): ', self.said)
            self.assertIn('No valid host was found', self.said)
        self.set_metadata('closed', {'trait:CUSTOM_CLOSED': None})
        self.assertEqual(['moved', 'moved'], self.apply(plan))
        self.assertEqual('host2', self.host_of({'id': self.first}))

    def test_servers_that_others_delete_and_boot(self):
        self._delete_server({'id': self.first})
        self.boot(host='host2')
        new = self.boot(host='host1')
        self.assertEqual(
            ['gone', 'moved', 'not in the plan'],
            self.apply(self.made, status=3),
        )
        for server in ({'id': self.second}, new):
            self._delete_server(server)
        self.assertEqual(['gone', 'gone'], self.apply(self.made))

    def test_a_resize_of_others_is_not_confirmed(self):
        flavor = self.flavor(vcpu=2)
        self.act({'id': self.first}, 'resize', flavorRef=flavor)
        server = {'id': self.first}
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.assertEqual(
            ['failed', 'not tried'], self.apply(self.made, status=1)
        )
        self.assertIn(f'resize confirm {self.first}, or revert', self.said)
        self.act({'id': self.first}, 'revertResize')
        self._wait_for_state_change(server, 'ACTIVE')
        self.assertEqual(['moved', 'moved'], self.apply(self.made))

    def test_a_migration_of_others_is_not_confirmed(self):
        """Of the same kind, between the same hosts."""
        [move] = [one for one in self.made['moves'] if one['method'] == 'cold']
        plan = {**self.made, 'moves': [move], 'to_be_empty': []}
        server = self.stopped['id']
        self.act({'id': server}, 'migrate', host=move['to'])
        self._wait_for_state_change(self.stopped, 'VERIFY_RESIZE')
        late = {**plan, 'time': '2100-01-01T00:00:00Z'}
        with fixtures.MonkeyPatch(
            'keystoneauth1.noauth.NoAuth.get_user_id', lambda *_: 'another'
        ):
            self.assertEqual(['failed'], self.apply(plan, status=1))
        self.assertEqual(['failed'], self.apply(late, status=1))
        self.assertIn('openstack server resize confirm', self.said)
        self.assertEqual(
            'VERIFY_RESIZE', self.admin_api.get_server(server)['status']
        )
        # One that this user began after the plan is what a run left.
        self.assertEqual(
            ['under way'], self.apply(plan, '--dry-run', status=3)
        )
        self.assertEqual(['moved'], self.apply(plan))
        self.assertEqual([('migration', 'confirmed')], self.migrations())

    def test_two_at_once(self):
        """They are of one stage: each begins before the other has ended."""
        self.assertEqual([1, 1], [one['batch'] for one in self.made['moves']])
        began, begin = [], moves_cloud.Cloud.begin
        ended, holds = [], moves_cloud.Cloud.holds
        with (
            fixtures.MockPatchObject(
                moves_cloud.Cloud,
                'begin',
                lambda cloud, move: began.append(1) or begin(cloud, move),
            ),
            fixtures.MockPatchObject(
                moves_cloud.Cloud,
                'holds',
                lambda *args: ended.append(len(began)) or holds(*args),
            ),
        ):
            self.assertEqual(
                ['moved', 'moved'], self.apply(self.made, '--at-once', '2')
            )
        self.assertEqual(2, ended[0])
        self.assertMoved(self.made)

    def test_where_nova_chooses(self):
        """A move after it takes for granted where a server goes."""
        plan = json.loads(json.dumps(self.made))
        for move in plan['moves']:
            move.update(to=None, expected='host3')
        plan['moves'][1]['needs'] = [1]
        self.assertEqual(['failed', 'not tried'], self.apply(plan, status=1))
        self.assertIn('it is on host2, not on host3. ', self.said)
        self.assertIn('then make a new plan: nova-ext-sched', self.said)
        self.assertEqual(
            {'live-migration': 'completed', 'migration': 'confirmed'}[
                self.migrations()[0][0]
            ],
            self.migrations()[0][1],
        )
        plan.update(moves=plan['moves'][1:], to_be_empty=[])
        plan['moves'][0]['needs'] = []
        self.assertEqual(['elsewhere'], self.apply(plan))


class LostTest(test_osc_moves.ApplyTestCase):
    """nova ceases to work on a migration; what is named lets it go on."""

    def setUp(self):
        super().setUp()
        self.patch(moves_making, 'HELD', 1)
        self.patch(moves_seen, 'STALE', 1)

    def plan_of(self, server):
        plan = self.drain()
        moves = [one for one in plan['moves'] if one['server'] == server['id']]
        return {**plan, 'moves': moves, 'to_be_empty': []}

    def lose(self, plan, server, target, lost):
        """Carry out a move with a fault of nova's, and do what is named."""
        with mock.patch(target, lost):
            for _ in range(2):
                self.assertEqual(['failed'], self.apply(plan, status=1))
                self.assertIn(
                    f'openstack server set --state active {server["id"]}. '
                    'Fix that, then run the command again to continue.',
                    self.said,
                )
        self.reset_state(server, 'active')

    def test_a_confirmation(self):
        """The cell's database was away when nova-compute got it."""
        plan = self.plan_of(self.stopped)
        self.lose(
            plan,
            self.stopped,
            'nova.compute.rpcapi.ComputeAPI.confirm_resize',
            lambda *_, **__: None,
        )
        self.assertEqual([('migration', 'confirming')], self.migrations())
        self.assertEqual(['already there'], self.apply(plan, status=3))
        self.free(plan)

    def test_the_end_of_a_task(self):
        """keystone was away when nova-compute undid the migration."""
        plan = self.plan_of(self.running)
        with mock.patch(
            'nova.compute.rpcapi.ComputeAPI.pre_live_migration',
            side_effect=ValueError('away'),
        ):
            self.lose(
                plan,
                self.running,
                'nova.compute.manager.ComputeManager._rollback_live_migration',
                mock.Mock(side_effect=ValueError('away')),
            )
        self.assertEqual([('live-migration', 'error')], self.migrations())
        # It holds its room yet, though another try has moved the server.
        self.assertEqual(['moved'], self.apply(plan, status=3))
        self.assertIn('live-migration', self.said)
        self.assertIn('(error), still holds its room on host1', self.said)
        self.free(plan)

    def free(self, plan):
        """Delete the allocation that is named; then all is done."""
        [command] = re.findall(
            'openstack resource provider allocation delete ([0-9a-f-]{36})',
            self.said,
        )
        self.placement.delete(f'/allocations/{command}')
        self.assertEqual(['already there'], self.apply(plan))


@ddt.ddt
class AwayTest(test_osc_moves.ApplyTestCase):
    """A service is away in the middle of a move.

    However nova takes that, what is said brings the server to its new host.
    """

    def setUp(self):
        super().setUp()
        self.patch(moves_making, 'HELD', 1)

    # Where nova calls the service, and what is raised there.
    @ddt.data(
        ('live', f'{SCHEDULER}.get_allocation_candidates', NO_CONNECTION),
        ('live', f'{SCHEDULER}.claim_resources', NO_CONNECTION),
        ('live', f'{COMPUTE}.check_can_live_migrate_destination',
         oslo_messaging.MessagingTimeout('RabbitMQ')),
        ('live', f'{NEUTRON}.bind_ports_to_host', NO_CONNECTION),
        ('live', f'{NEUTRON}.setup_networks_on_host', NO_CONNECTION),
        ('live', 'nova.objects.Service.get_by_compute_host',
         db_exc.DBConnectionError()),
        ('cold', f'{SCHEDULER}.claim_resources', NO_CONNECTION),
        ('cold', f'{COMPUTE}.prep_resize',
         oslo_messaging.MessagingTimeout('RabbitMQ')),
        ('cold', f'{NEUTRON}.migrate_instance_start', NO_CONNECTION),
    )  # fmt: skip
    @ddt.unpack
    def test_a_move(self, kind, where, error):
        plan = self.only(kind)
        [move] = plan['moves']
        before = self.admin_api.get_server(move['server'])
        with mock.patch(where, side_effect=error) as away:
            _, [result] = self.run_apply(plan)
        self.assertTrue(away.called)
        for _ in range(5):
            if result in ('moved', 'already there'):
                break
            self.assertEqual('failed', result)
            self.assertIn(f'Move 1 ({move["name"]}', self.said)
            found = self.admin_api.get_server(move['server'])
            if found['status'] == 'ERROR':
                self.assertIn(
                    f'it is on {self.host_of(found)} in ERROR', self.said
                )
            # The state is set where that is said, and nowhere else.
            if f'server set --state active {move["server"]}' in self.said:
                self.reset_state(found, 'active')
            self.assertNotIn('--not-to', self.said)
            _, [result] = self.run_apply(plan)
        found = self.admin_api.get_server(move['server'])
        self.assertEqual(move['expected'], self.host_of(found))
        self.assertIn(found['status'], (before['status'], 'ACTIVE'))


class HostsTest(test_osc_moves.ApplyTestCase):
    def services(self):
        return {
            one['host']: (one['status'], one['disabled_reason'])
            for one in self.admin_api.get_services(binary='nova-compute')
        }

    def test_hosts_are_disabled_and_enabled(self):
        """One that somebody else disabled stays so."""
        plan = self.plan('host1', 'host3', by=drain.Drain)
        self.set_service('host3', status='disabled', disabled_reason='mine')
        before = self.services()
        self.apply(plan, '--disable', '--dry-run', status=3)
        self.assertIn('1 host would be disabled: host1.', self.said)
        self.assertEqual(before, self.services())
        self.assertEqual(['moved', 'moved'], self.apply(plan, '--disable'))
        reason = (
            f'nova-ext-sched: being emptied, by the plan of {plan["time"]}'
        )
        self.assertEqual(
            before | {'host1': ('disabled', reason)}, self.services()
        )
        # As of a plan that was made after this one stopped.
        other = {**plan, 'time': '2026-01-01T00:00:00Z'}
        self.apply(other, '--enable', '--dry-run', status=3)
        self.assertIn('1 host would be enabled: host1.', self.said)
        self.apply(other, '--enable', status=3)
        self.assertIn('1 host enabled: host1.', self.said)
        self.assertIn(
            'host3 stays disabled (mine): openstack compute service set '
            '--enable host3 nova-compute.',
            self.said,
        )
        self.assertEqual(before, self.services())

    def test_another_cloud_is_refused(self):
        plan = self.drain()
        other = {**plan, 'services': {'host9': plan['services']['host1']}}
        self.apply(other, status=2)
        self.assertIn('This plan is for another cloud: ', self.said)
        self.openstack.user = openstackclient.READER
        self.apply(plan, status=1)
        self.assertIn('ForbiddenException: 403', self.said)
        self.assertEqual([], self.migrations())


class EvacuateTest(test_survive.EvacuationMixin, test_osc_moves.ApplyTestCase):
    def test_a_host_that_failed(self):
        plan = self.survive('--host', 'host1')
        self.assertEqual(
            ['evacuate'] * 2,
            [one['method'] for one in plan['failures'][0]['moves']],
        )
        self.computes['host1'].stop()
        self.assertEqual(['failed', 'not tried'], self.apply(plan, status=1))
        self.assertIn('nova-compute of host1 is not forced down', self.said)
        self.assertEqual([], self.migrations())
        self.set_service('host1', forced_down=True)
        self.assertEqual(['moved', 'moved'], self.apply(plan, '--disable'))
        self.assertEqual([('evacuation', 'done')] * 2, self.migrations())
        for move in plan['failures'][0]['moves']:
            self.assertEqual(move['to'], self.host_of({'id': move['server']}))
        self.assertEqual(['already there'] * 2, self.apply(plan))

    def test_a_plan_that_is_made_after_it_failed(self):
        self.lose('host1')
        plan = self.survive('--host', 'host1')
        self.assertEqual(
            ['moved', 'moved'], self.apply(plan, '--at-once', '2')
        )
        self.assertEqual([('evacuation', 'done')] * 2, self.migrations())
        # Nothing is left.
        self.assertEqual([], self.apply(self.survive('--host', 'host1')))
