# SPDX-License-Identifier: Apache-2.0

"""What a drain says of groups, states, and cells that are down."""

import contextlib
import datetime
import json
import time
from unittest import mock

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client

from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.decision import stray
from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import shared_answers
from nova_ext_sched.dryrun.plan import stuck
from tests.functional import base
from tests.functional import explain
from tests.functional import test_drain


class PlanTestCase(test_drain.DrainTestCase):
    def test_what_a_group_loses(self):
        hints = self.group(limit=2)
        self.boot_each_on(*self.weights, hints=hints)
        plan = self.drain('host1')
        self.assertEqual(['host2'], [one['to'] for one in plan['moves']])
        [group] = plan['groups']
        self.assertEqual(
            ('group', 2, 3),
            (group['name'], group['hosts'], group['hosts_before']),
        )
        # The rule of another is just met everywhere.
        hints = self.group(limit=1)
        self.boot_each_on(*self.weights, hints=hints)
        plan = self.drain('host1')
        self.assertSentence(
            '0 of 1 server can be moved; 1 cannot: anti-affinity.', plan
        )
        self.assertEqual([], plan['groups'])
        # That hosts to be empty are disabled is the cause of nothing.
        self.disable_others('host3')
        plan = self.drain('host1', 'host2')
        self.assertSentence(
            '1 of 4 servers can be moved; 3 cannot: anti-affinity.', plan
        )

    def test_what_a_group_loses_beside_a_resize(self):
        """A server that waits for its confirmation counts on two hosts."""
        hints = self.group(limit=2)
        self.boot_each_on('host1', 'host2', hints=hints)
        resized = self.boot(host='host1')
        self.act(
            resized, 'resize', 'VERIFY_RESIZE', flavorRef=self.flavor(vcpu=2)
        )
        plan = self.drain('host1')
        self.assertEqual(['host2'], [one['to'] for one in plan['moves']])
        self.assertEqual(
            [('group', 1, 2)],
            [
                (group['name'], group['hosts'], group['hosts_before'])
                for group in plan['groups']
            ],
        )

    def test_nova_api_is_asked_of_one_of_those_that_are_alike(self):
        flavor = self.flavor(vcpu=1)
        alike = [self.boot(flavor=flavor, host='host1') for _ in range(3)]
        stopped = self.boot_stopped(flavor=flavor, host='host1')
        failed = self.boot(flavor=flavor, host='host1')
        self.reset_state(failed, 'error')
        with mock.patch.object(
            movable, '_find_method', wraps=movable._find_method
        ) as asked:
            plan = self.drain('host1')
        about = [call.args[1].uuid for call in asked.call_args_list]
        self.assertEqual(3, len(about))
        self.assertEqual(1, len({one['id'] for one in alike} & {*about}))
        self.assertLess({stopped['id'], failed['id']}, {*about})
        kinds = {one['server']: one['method'] for one in plan['moves']}
        self.assertEqual(
            {**{one['id']: 'live' for one in alike}, stopped['id']: 'cold'},
            kinds,
        )

    def test_which_hosts(self):
        self.aggregate('row', ['host2'], failure_domain='a')
        self.aggregate('racks', ['host3'], failure_domain='b, c')
        for host in self.weights:
            self.boot(host=host)
        for argv, expected in (
            (('host1',), ['host1']),
            (('--aggregate', 'row'), ['host2']),
            (('--domain', 'b'), ['host3']),
            (('host1', '--aggregate', 'row'), ['host1', 'host2']),
        ):
            plan = self.plan(*argv, by=drain.Drain)
            self.assertEqual(
                expected, sorted(one['host'] for one in plan['moves'])
            )
            self.assertEqual(
                [], [one for one in plan['moves'] if one['to'] in expected]
            )
        for argv in (
            ('host9',),
            ('--domain', 'z'),
            ('--aggregate', 'away'),
            ('-c', 'Room'),
        ):
            _, err, status = explain.call(drain.Drain, 'drain', *argv)
            self.assertEqual(2, status, err)
        self.a_host_without_a_compute_node()

    def a_host_without_a_compute_node(self):
        """nova moves none of its servers."""
        self.execute(
            "UPDATE compute_nodes SET deleted = id WHERE host = 'host3'"
        )
        for argv in (('host3',), ('--aggregate', 'racks')):
            plan = self.plan(*argv, by=drain.Drain)
            self.assertIn(
                'The host will not be empty.', plan['answer']['sentence']
            )
            [stuck] = plan['without_place']
            self.assertEqual(
                (
                    'nova cannot move it: nova has no compute node of host3',
                    'state',
                    'start nova-compute there, or evacuate the server',
                ),
                tuple(map(stuck.get, ('reason', 'cause', 'would_help'))),
            )
        for action in (
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
            {'migrate': None},
        ):
            with contextlib.suppress(client.OpenStackApiException):
                self.admin_api.post_server_action(stuck['server'], action)
            self._wait_for_migration_status({'id': stuck['server']}, ['error'])
            self.wait_until_idle({'id': stuck['server']})
            self.assertEqual('host3', self.host_of({'id': stuck['server']}))

    def test_hosts_and_servers_in_states(self):
        plan = self.drain('host1')
        self.assertEqual(
            'No server has to move. The host will be empty. '
            'host1 is still enabled and can get new servers.',
            plan['answer']['sentence'],
        )
        self.disable_others('host2', 'host3')
        self.boot(host='host2')
        plan = self.drain('host2')
        self.assertNotIn('host1', [one['to'] for one in plan['moves']])
        again = self.plan('host1', by=drain.Drain)
        self.assertNotIn('not disabled', again['answer']['sentence'])
        self.disable_others(*self.weights)
        # One that was deleted softly is on its host until it is gone.
        self.flags(reclaim_instance_interval=3600)
        server = self.boot(host='host1')
        self.api.api_delete(f'/servers/{server["id"]}')
        self._wait_for_state_change(server, 'SOFT_DELETED')
        built = self.boot(host='host1')
        self.write_server(built, vm_state='building')
        plan = self.drain('host1')
        self.assertEqual(
            {
                server['id']: 'restore it, or delete it for good (openstack '
                'server delete --force)',
                built['id']: 'wait until it is built, or delete it',
            },
            {
                one['server']: one['would_help']
                for one in plan['without_place']
            },
        )

        self.a_cell_that_is_down()

    def a_cell_that_is_down(self):
        """Of what nobody could read it is not said that it is empty."""
        self.boot_each_on('host2')
        not_known = 'What runs on host1 is not known.'
        none = 'None of the servers that could be judged has to move.'
        for table, by, argv, said in (
            ('compute_nodes', drain.Drain, ['host1'], f'{none} {not_known}'),
            (
                'compute_nodes',
                survive.Survive,
                [],
                'No host holds a server, of those read.',
            ),
            (
                'compute_nodes',
                maintain.Maintain,
                [],
                'There is no host to empty, of those read.',
            ),
            # A database that answers at first.
            ('migrations', drain.Drain, ['host1'], f'{none} {not_known}'),
            (
                'migrations',
                survive.Survive,
                [],
                '1 of 1 host can fail, one at a time, of those read.',
            ),
            (
                'migrations',
                maintain.Maintain,
                [],
                f'There is no host to empty, of those read. What runs on '
                f'{", ".join(self.weights)} is not known.',
            ),
            (
                'instance_extra',
                drain.Drain,
                ['host2'],
                '0 of 1 server can be moved; 1 cannot: fault. The host will '
                'not be empty.',
            ),
            (
                'instance_extra',
                maintain.Maintain,
                [],
                f'There is no host to empty, of those read. What runs on '
                f'{", ".join(self.weights)} is not known.',
            ),
            ('instance_extra', mend.Mend, [], none),
        ):
            with self.subTest(table=table, by=by.__name__):
                with base.table_away(self.cell_engine(), table):
                    text, _, status = explain.call(by, 'plan', *argv)
                self.assertEqual(1, status)
                self.assertEqual(said, ' '.join(text.split())[: len(said)])
                self.assertIn('cell1', text)


class LostTestCase(test_drain.DrainTestCase):
    weights = {'host1': 200, 'host2': 100}

    def test_a_live_migration_that_nova_lost(self):
        """The server itself fills the host to which it was to go."""
        server = self.boot(az='nova:host1', flavor=self.flavor(vcpu=6))
        with mock.patch(
            'nova.compute.rpcapi.ComputeAPI.live_migration'
        ) as cast:
            self.act(
                server, 'os-migrateLive', host='host2', block_migration='auto'
            )
            while not cast.called:
                time.sleep(0.1)
        self.reset_state(server, 'active')
        [stuck] = self.plan('host1', by=drain.Drain)['without_place']
        self.assertEqual('VCPU', stuck['cause'])
        self.assertIn('It holds room on host2 itself', stuck['reason'])
        clearing = datetime.timedelta(seconds=-1)
        with fixtures.MonkeyPatch(f'{stray.__name__}.CLEARING', clearing):
            [stuck] = self.plan('host1', by=drain.Drain)['without_place']
        self.assertIn('allocation delete', stuck['would_help'])


class DeletedTestCase(test_drain.DrainTestCase):
    """Servers that are deleted while the plan is made."""

    def setUp(self):
        super().setUp()
        network = nova_fixtures.NeutronFixture.network_1['id']
        self.networks = [{'uuid': network}]

    def test_at_any_moment(self):
        staying = self.boot(az='nova:host1')
        for target, name, state in (
            (explain_server.Server, '__init__', 'active'),
            (movable, '_find_method', 'active'),
            # PortNotFound, of nova's remote_managed_ports_filter.
            (shared_answers.SharedAnswers, 'find', 'active'),
            (stuck.StuckExplainer, '_explain', 'error'),
            (ending, 'settle', 'active'),
        ):
            server = self.boot(az='nova:host1', networks=self.networks)
            self.reset_state(server, state)
            with self.deleting(server, target, name):
                plan = self.plan('host1', by=drain.Drain)
            self.assertDeleted([server], plan)
            self.assertEqual(
                [staying['id']], [one['server'] for one in plan['moves']]
            )
            self.assertIn(
                'The host will be empty.', plan['answer']['sentence']
            )
        self.is_being_deleted()
        self.held_for_a_resize()
        self.is_not_deleted()

    def is_being_deleted(self):
        """Its port is gone before its task is, and its row is the last."""
        server, plan = self.plan_while_deleting('_complete_deletion')
        self.assertDeleted([server], plan)
        # Until its guest is gone it has its host.
        server, plan = self.plan_while_deleting('_cleanup_volumes')
        [held] = plan['without_place']
        self.assertEqual(
            (server['id'], 'it is being deleted', 'state'),
            (held['server'], held['reason'], held['cause']),
        )
        self.assertEqual('wait until it is deleted', held['would_help'])
        self.assertIn(
            'The host will not be empty.', plan['answer']['sentence']
        )
        self.is_never_deleted()

    def plan_while_deleting(self, step):
        """Return a server, and a plan made at a step of its deletion."""
        server = self.boot(az='nova:host1', networks=self.networks)
        return server, self.while_deleting(
            server, step, lambda: self.plan('host1', by=drain.Drain)
        )

    def is_never_deleted(self):
        """What is named after an hour deletes it."""
        server = self.boot(az='nova:host1', networks=self.networks)
        with mock.patch('nova.compute.rpcapi.ComputeAPI.terminate_instance'):
            self.api.delete_server(server['id'])
        with fixtures.MonkeyPatch(f'{gone.__name__}.LONG', -1):
            [held] = self.plan('host1', by=drain.Drain)['without_place']
        self.assertIn('has not ended for an hour', held['reason'])
        self.assertIn('openstack server set --state error', held['would_help'])
        self.reset_state(server, 'error')
        self._delete_server(server)
        self.assertEqual(
            [], self.plan('host1', by=drain.Drain)['without_place']
        )

    def held_for_a_resize(self):
        server = self.boot(az='nova:host2')
        self.disable_others('host3')
        self.act(
            server, 'resize', 'VERIFY_RESIZE', flavorRef=self.flavor(vcpu=2)
        )
        self.disable_others(*self.weights)
        with self.deleting(server, planner, 'plan'):
            plan = self.plan('host2', by=drain.Drain)
        self.assertDeleted([server], plan)

    def is_not_deleted(self):
        """What is amiss with it is a fault, or a state."""
        server = self.boot(az='nova:host2', networks=self.networks)
        [port] = self.neutron.list_ports(
            is_admin=True, device_id=server['id']
        )['ports']
        self.neutron.delete_port(port['id'])
        text, _, status = explain.ask(drain.Drain, 'drain', 'host2')
        plan = json.loads(text)
        [stuck] = plan['without_place']
        self.assertEqual((1, 'fault'), (status, stuck['cause']))
        self.assertIn('PortNotFound', stuck['reason'])
        self.assertEqual([], plan['deleted_meanwhile'])
        self.flags(reclaim_instance_interval=3600)
        self.api.delete_server(server['id'])
        self._wait_for_state_change(server, 'SOFT_DELETED')
        [stuck] = self.plan('host2', by=drain.Drain)['without_place']
        self.assertIn('restore it', stuck['would_help'])


class RefusedRebuildTestCase(test_drain.DrainTestCase):
    """nova leaves the refused image in the request: it decides nothing."""

    weights = {f'host{n}': 700 - n for n in range(1, 6)}

    def test_servers_that_run_other_images_than_their_requests_have(self):
        self.turn_on()
        self.isolate('windows', ['host2', 'host4'], 'CUSTOM_WINDOWS')
        plain = self.image()
        licensed = self.image(props={'trait:CUSTOM_WINDOWS': 'required'})
        first, between, last = (
            self.boot(image=image, host=host)
            for image, host in (
                (plain, 'host1'),
                (licensed, 'host2'),
                (plain, 'host3'),
            )
        )
        for one in (first, last):
            self.rebuild_server(one, licensed, 'ERROR')
            self.rebuild_server(one, plain)
        # By their requests they are alike, and each is asked about first.
        plan = self.drain('host1', 'host2', 'host3')
        self.assertEqual(
            {
                (first['id'], 'host1', 'host5'),
                (between['id'], 'host2', 'host4'),
                (last['id'], 'host3', 'host5'),
            },
            {*self.moves(plan)},
        )
