# SPDX-License-Identifier: Apache-2.0

"""Full hosts that servers hold which stand elsewhere.

What the text advises is done as it stands there, and frees the host.
"""

import contextlib
import datetime
import io
import re
import threading

import fixtures
from nova.cmd import manage
from nova.db.main import models
from nova.virt import fake
import sqlalchemy as sa

from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain as drain_command
from tests import samples
from tests.functional import base
from tests.functional import explain
from tests.functional import nodes
from tests.long import pages
from tests.long import test_explain_orphaned

CLIENT = test_explain_orphaned.CLIENT
STRAY = 'nova_ext_sched.dryrun.decision.stray'


class StrayTestCase(test_explain_orphaned.UnheldTestCase):
    """Each server fills a host."""

    def elsewhere(self):
        """Return what explain names; capacity and people read the same."""
        found = self.explain()['elsewhere']
        texts = explain.call(capacity.Capacity, 'capacity', '--flavor', 'big')
        texts = texts[0], explain.run('--flavor', 'big').out
        for one in found:
            for text in texts:
                self.assertIn(one['sentence'], ' '.join(text.split()))
        return found

    def assertHeld(self, host, server, stands_on, remedy, why):
        """Check who holds one host; return what ends it."""
        [found] = self.elsewhere()
        self.assertEqual(
            (host, server['id'], stands_on),
            (found['host'], found['server'], found['stands_on']),
        )
        self.assertRegex(found['remedy'], f'^{remedy}$')
        self.assertIn(why, found['sentence'])
        return found['remedy']

    def assertFreed(self, remedy, *servers):
        """Do what was advised; nobody holds what is not there then."""
        for command in filter(None, remedy.split('; ')):
            self.do(command)
        self.assertEqual([], self.elsewhere())
        self.assertIsNone(self.found())
        for server in servers:
            self.assertEqual(
                {self._get_provider_uuid_by_host(self.host_of(server))},
                {*self._get_allocations_by_server_uuid(server['id'])},
            )
        with contextlib.redirect_stdout(io.StringIO()):
            audit = manage.PlacementCommands().audit()
        self.assertEqual(0, audit)

    def do(self, command):
        [*_, uuid] = command.split()
        if 'allocation delete' in command:
            self.placement.delete(f'/allocations/{uuid}')
        elif 'allocation unset' in command:
            # As osc-placement does.
            providers = re.findall(r'--provider (\S+)', command)
            [version] = re.findall(
                r'--os-placement-api-version (\S+)', command
            )
            url = f'/allocations/{uuid}'
            body = self.placement.get(url, version=version).body
            body['allocations'] = {
                provider: {'resources': one['resources']}
                for provider, one in body['allocations'].items()
                if provider not in providers
            }
            answer = self.placement.put(url, body, version=version)
            self.assertEqual(204, answer.status, answer.body)
        elif command.startswith('openstack server set --state active '):
            self.reset_state({'id': uuid}, 'active')
        elif command.startswith('openstack server resize confirm '):
            self.act({'id': uuid}, 'confirmResize', 'ACTIVE')
            self._wait_for_migration_status({'id': uuid}, ['confirmed'])
        elif command.startswith('openstack server shelve --offload '):
            self.act({'id': uuid}, 'shelveOffload', 'SHELVED_OFFLOADED')
        elif command.startswith('openstack server delete --force '):
            self.act({'id': uuid}, 'forceDelete')
            self._wait_until_deleted({'id': uuid})
        else:
            self.assertTrue(
                command.startswith(
                    'nova-manage placement heal_allocations --instance '
                ),
                command,
            )
            with contextlib.redirect_stdout(io.StringIO()):
                healed = manage.PlacementCommands().heal_allocations(
                    instance_uuid=uuid
                )
            self.assertEqual(0, healed)

    def lose(self):
        """Let conductor lose a live migration from host1 to host2."""
        server = self.boot(flavor=self.big, az='nova:host1')
        with fixtures.MonkeyPatch(
            'nova.compute.rpcapi.ComputeAPI.live_migration',
            lambda *_, **__: self.lost.set(),
        ):
            self.lost = threading.Event()
            self.live_migrate(server, 'host2')
            self.assertTrue(self.lost.wait(10))
        return server

    def late(self):
        """Let an hour be over."""
        self.useFixture(
            fixtures.MonkeyPatch(f'{STRAY}._LOST', datetime.timedelta())
        )

    def evacuate(self, server):
        self.set_service('host1', forced_down=True)
        self.act(server, 'evacuate')
        self._wait_for_migration_status(server, ['done'])
        self.wait_until_idle(server)

    def restart(self, host):
        self.computes[host] = self.restart_compute_service(self.computes[host])


class LostTestCase(StrayTestCase):
    def drain(self, host):
        return explain.ask(drain_command.Drain, 'drain', host).plan

    def assertHelps(self, host, expected):
        """Check what would help the only server that keeps a host."""
        [stuck] = self.drain(host)['without_place']
        self.assertEqual(expected, stuck['would_help'])

    def test_conductor_lost_a_live_migration(self):
        server = self.lose()
        self.assertEqual([], self.elsewhere())
        self.settle()
        # It may still be under way.
        self.assertEqual([], self.elsewhere())
        self.assertHelps('host2', 'wait until it has ended')
        self.late()
        migration = self.get_migration_uuid_for_instance(server['id'])
        delete = 'openstack resource provider allocation delete'
        remedy = self.assertHeld(
            'host2',
            server,
            'host1',
            f'openstack server set --state active {server["id"]}; '
            f'{delete} {migration}; {delete} {server["id"]}; nova-manage '
            f'placement heal_allocations --instance {server["id"]}',
            'runs on host1; its live-migration is accepted, and nova does '
            'nothing more: openstack',
        )
        with base.table_away(self.cell_engine(), 'migrations'):
            self.assertEqual([], self.elsewhere())
        self.assertHelps('host2', remedy)
        self.restart('host1')
        self.assertEqual(
            remedy.partition('; ')[2], self.elsewhere()[0]['remedy']
        )
        self.assertFreed(remedy, server)
        self.assertEqual([], self.drain('host2')['without_place'])
        self.assertEqual('host2', self.host_of(self.boot(flavor=self.big)))

    def test_a_cold_migration_that_nova_ceased_to_confirm(self):
        """nova-api refuses to confirm it, and to revert it."""
        server = self.boot(flavor=self.big, az='nova:host1')
        self.act(server, 'migrate', 'VERIFY_RESIZE')
        self.update_migration(server, status='confirming')
        self.assertHelps('host1', 'wait until it has ended')
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{STRAY}.CLEARING', datetime.timedelta(seconds=-1)
            )
        )
        self.assertHelps(
            'host1',
            'check in the nova-compute log of host1 whether it goes on, and '
            'if not, set its state (openstack server set --state active; '
            'newer clients ask first unless --auto-approve)',
        )
        self.do(f'openstack server set --state active {server["id"]}')
        migration = self.get_migration_uuid_for_instance(server['id'])
        remedy = f'openstack resource provider allocation delete {migration}'
        self.assertHelps('host1', remedy)
        self.assertFreed(remedy, server)
        self.assertEqual([], self.drain('host1')['without_place'])

    def update_migration(self, server, **values):
        """Let nova's record of a server's migration say something else."""
        engine = self.cell_engine()
        table = models.Migration.__table__
        with engine.begin() as connection:
            connection.execute(
                sa.update(table)
                .where(table.c.instance_uuid == server['id'])
                .values(values)
            )

    def test_what_its_migration_keeps(self):
        """The server went elsewhere since, or was deleted."""
        server = self.lose()
        self.settle()
        self.late()
        self.reset_state(server, 'active')
        first = self.get_migration_uuid_for_instance(server['id'])
        self.placement.delete(f'/allocations/{server["id"]}')
        self.live_migrate(server, 'host3')
        self._wait_for_migration_status(server, ['completed'])
        remedy = self.assertHeld(
            'host1',
            server,
            'host3',
            f'openstack resource provider allocation delete {first}',
            'its live-migration is accepted, and nova does nothing more',
        )
        self.assertFreed(remedy, server)
        deleted = self.lose()
        migration = self.get_migration_uuid_for_instance(deleted['id'])
        self.reset_state(deleted, 'active')
        self._delete_server(deleted)
        # nova has deleted the migration with it.
        self.assertEqual([], self.elsewhere())
        self.assertEqual({'host1': (True, [migration])}, self.found())
        with contextlib.redirect_stdout(io.StringIO()):
            manage.PlacementCommands().audit(delete=True)
        self.assertIsNone(self.found())

    def test_a_live_migration_under_way(self):
        may_end = threading.Event()
        self.addCleanup(may_end.set)
        migrate = fake.FakeDriver.live_migration

        def migrate_slowly(driver, *args, **kwargs):
            may_end.wait(60)
            migrate(driver, *args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.fake.FakeDriver.live_migration', migrate_slowly
            )
        )
        self.settle()
        self.late()
        server = self.boot(flavor=self.big, az='nova:host1')
        self.live_migrate(server, 'host2')
        self._wait_for_migration_status(server, ['running'])
        self.assertEqual([], self.elsewhere())
        abort = 'or abort it (openstack server migration abort)'
        self.assertHelps('host2', f'wait until it has ended, {abort}')
        self.set_service('host1', forced_down=True)
        self.assertHelps(
            'host2',
            'start nova-compute on host1, then wait until it has ended, '
            f'{abort}',
        )


class EvacuatedTestCase(nodes.NodesMixin, StrayTestCase):
    def test_what_nova_compute_did_not_clear(self):
        server = self.boot(flavor=self.big, az='nova:host1')
        self.evacuate(server)
        self.assertEqual([], self.elsewhere())
        self.settle()
        host1, host2 = map(self._get_provider_uuid_by_host, ('host1', 'host2'))
        unset = (
            f'openstack --os-placement-api-version 1.28 resource provider '
            f'allocation unset --provider {host1} {server["id"]}'
        )
        self.assertHeld(
            'host1',
            server,
            'host2',
            f'restart nova-compute there, which clears it; or {unset}',
            'runs on host2; its evacuation is done: restart',
        )
        with fixtures.MonkeyPatch(
            f'{CLIENT}.remove_provider_tree_from_instance_allocation',
            lambda *_, **__: False,
        ):
            self.restart('host1')
        self.set_service('host1', forced_down=False)
        # nova-compute does not try again.
        self.restart('host1')
        remedy = self.assertHeld(
            'host1', server, 'host2', unset, 'its evacuation is completed'
        )
        self.assertFreed(remedy, server)

    def test_what_it_clears(self):
        server = self.boot(flavor=self.big, az='nova:host1')
        self.evacuate(server)
        self.settle()
        [found] = self.elsewhere()
        self.assertIn('restart nova-compute there', found['remedy'])
        self.restart('host1')
        self.assertFreed('', server)


class OthersTestCase(StrayTestCase):
    def setUp(self):
        super().setUp()
        self.settle()

    def test_a_resize_that_is_not_confirmed(self):
        server = self.boot(flavor=self.big, az='nova:host1')
        self._migrate_server(server)
        self.assertEqual('host2', self.host_of(server))
        remedy = self.assertHeld(
            'host1',
            server,
            'host2',
            rf'confirm it \(openstack server resize confirm {server["id"]}\)',
            'its migration is finished',
        )
        [command] = re.findall(r'\((.*)\)', remedy)
        self.assertFreed(command, server)

    def test_servers_that_do_not_run(self):
        """nova keeps their place, until a periodic task takes it."""
        self.flags(shelved_offload_time=-1, reclaim_instance_interval=3600)
        for state, remedy, begin in (
            (
                'shelved',
                'openstack server shelve --offload',
                lambda one: self.act(one, 'shelve'),
            ),
            (
                'soft-delete',
                'openstack server delete --force',
                lambda one: self.api.delete_server(one['id']),
            ),
        ):
            server = self.boot(flavor=self.big, az='nova:host1')
            self.assertEqual([], self.elsewhere())
            begin(server)
            self._wait_for_server_parameter(
                server,
                {
                    'OS-EXT-STS:vm_state': state,
                    'OS-EXT-STS:task_state': None,
                },
            )
            remedy = self.assertHeld(
                'host1',
                server,
                'host1',
                f'{remedy} {server["id"]}',
                f'is kept there and does not run ({state})',
            )
            self.assertFreed(remedy)
            self.assertEqual(
                {}, self._get_allocations_by_server_uuid(server['id'])
            )

    def test_a_server_that_stands_nowhere(self):
        self.flags(shelved_offload_time=0)
        server = self.boot(flavor=self.big, az='nova:host1')
        with fixtures.MonkeyPatch(
            f'{CLIENT}.delete_allocation_for_instance', lambda *_, **__: None
        ):
            self.act(server, 'shelve', 'SHELVED_OFFLOADED')
        remedy = self.assertHeld(
            'host1',
            server,
            None,
            f'openstack resource provider allocation delete {server["id"]}',
            'runs on no host:',
        )
        self.assertFreed(remedy)


class PageTestCase(pages.PagesMixin, StrayTestCase):
    @samples.compares('cli/explain/stray.txt')
    def test_an_evacuated_server(self):
        self.settle()
        server = self.boot(flavor=self.big, az='nova:host1')
        self.evacuate(server)
        self.boot_each_on('host3', 'host4', 'host5', flavor=self.big)
        self.show(
            'cli/explain/stray.txt', 'nova-ext-sched explain --flavor big'
        )
