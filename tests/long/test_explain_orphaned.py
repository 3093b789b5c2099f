# SPDX-License-Identifier: Apache-2.0

"""Full hosts, and allocations that no server and no migration has."""

import contextlib
import datetime
import io

import fixtures
from nova import context as nova_context
from nova import exception as nova_exception
from nova.cmd import manage

from nova_ext_sched.cmd import capacity
from tests import samples
from tests.functional import base
from tests.functional import explain
from tests.functional import sharing
from tests.long import pages

CLIENT = 'nova.scheduler.client.report.SchedulerReportClient'
MANAGER = 'nova.compute.manager.ComputeManager'
DRIVER = 'nova.virt.fake.FakeDriver'
#: What fills a host.
FULL = {'MEMORY_MB': 7000}


class UnheldTestCase(base.CloudTestCase):
    """Each server fills a host."""

    weights = {'host1': 50, 'host2': 40, 'host3': 30, 'host4': 20, 'host5': 10}

    def setUp(self):
        super().setUp()
        self.big = self.flavor(name='big', memory_mb=7000, disk=1)

    def settle(self):
        """Let what has ended count as ended long ago."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.decision.stray.CLEARING',
                datetime.timedelta(),
            )
        )

    def explain(self):
        return explain.read('--flavor', 'big').document

    def found(self):
        """Return whether a host is freed, and consumers, by host."""
        found = self.explain()['unheld']
        return found and {
            one['host']: (one['freed'], one['consumers'])
            for one in found['hosts']
        }


class SharedTestCase(sharing.StorageMixin, UnheldTestCase):
    """Hosts that share a disk of 65 GB."""

    weights = {'host1': 50, 'host2': 40, 'host3': 30}

    def setUp(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        super().setUp()

    def ask(self, **flavor):
        return explain.read('--flavor', self.flavor(**flavor))

    def test_what_hosts_share(self):
        self.share(65, 'host1', 'host2')
        self.boot(flavor=self.flavor(vcpu=10), az='nova:host1')
        answer = self.ask(vcpu=2, disk=10)
        self.assertEqual(['host2'], answer.order)
        self.assertIn('1 is full (VCPU)', answer.sentence)
        self.assertIn('1 has no DISK_GB', answer.sentence)
        self.assertIn('3 are too small (VCPU)', self.ask(vcpu=11).sentence)
        # All that there is: it is in no summary of placement's.
        for amount in (60, 5):
            consumer = self.allocate('storage', {'DISK_GB': amount})
        answer = self.ask(vcpu=2, disk=5)
        self.assertEqual([], answer.order)
        self.assertIn(
            '1 is full (DISK_GB), 1 is full (DISK_GB, VCPU), 1 has no DISK',
            answer.sentence,
        )
        self.assertIn(
            {'cause': 'DISK_GB', 'hosts': 1},
            answer.document['answer']['freed'],
        )
        for host in answer.document['unheld']['hosts']:
            self.assertIn(consumer, host['consumers'])
            self.assertEqual(host['host'] == 'host2', host['freed'])
        self.placement.delete(f'/allocations/{consumer}')
        self.assertEqual(['host2'], self.ask(vcpu=2, disk=5).order)


class HeldTestCase(UnheldTestCase):
    def test_what_somebody_holds(self):
        self.flags(reclaim_instance_interval=3600)
        self.settle()
        server = self.boot(flavor=self.big)
        self._migrate_server(server)
        deleted = self.boot(flavor=self.big)
        self.api.delete_server(deleted['id'])
        self._wait_for_state_change(deleted, 'SOFT_DELETED')
        with fixtures.MonkeyPatch(
            'nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances',
            lambda *_, **__: None,
        ):
            built = self.post()
        self.allocate('host4', FULL, built['id'])
        consumer = self.allocate('host5', FULL, consumer_type='CONTAINER')
        self.assertEqual(0, self.explain()['answer']['left'])
        self.assertIsNone(self.found())
        self.placement.delete(f'/allocations/{consumer}')
        self.allocate('host5', FULL, consumer)
        self.assertEqual({'host5': (True, [consumer])}, self.found())
        with base.table_away(self.cell_engine(), 'migrations'):
            self.assertIsNone(self.found())


class FreedTestCase(UnheldTestCase):
    def refuse(self, *_, **__):
        raise nova_exception.MigrationError(reason='test')

    def migrate(self, server):
        self.act(server, 'migrate', 'ERROR')
        return self.get_migration_uuid_for_instance(server['id'])

    def nova_manage(self, commands, method, **kwargs):
        with contextlib.redirect_stdout(io.StringIO()):
            getattr(commands(), method)(**kwargs)

    def test_a_server_whose_record_is_gone(self):
        """Placement failed its deletion; then its row was purged."""
        server = self.boot(flavor=self.big)
        with fixtures.MonkeyPatch(
            f'{CLIENT}.delete_allocation_for_instance', lambda *_, **__: None
        ):
            self._delete_server(server)
        self.assertIsNone(self.found())
        self.nova_manage(manage.DbCommands, 'archive_deleted_rows', purge=True)
        # nova-compute leaves it.
        self.computes['host1'].manager.update_available_resource(
            nova_context.get_admin_context()
        )
        self.assertEqual({'host1': (True, [server['id']])}, self.found())
        sentence = (
            '1 of 1 full host holds leaked allocations, of no server or '
            'migration: host1. Full only because of them: 1 (host1). '
            '"nova-manage '
            'placement audit --delete --resource_provider" with the UUID of a '
            'host deletes them there, as long as no server moves; '
            '"heal_allocations" then restores what servers lack.'
        )
        self.assertIn(
            sentence, ' '.join(explain.run('--flavor', 'big').out.split())
        )
        out, _, status = explain.call(capacity.Capacity, 'capacity')
        self.assertIn(sentence, ' '.join(out.split()))
        self.nova_manage(
            manage.PlacementCommands,
            'audit',
            delete=True,
            provider_uuid=self._get_provider_uuid_by_host('host1'),
        )
        self.assertIsNone(self.found())
        self.assertEqual('host1', self.explain()['answer']['best'])
        self.a_failed_migration()
        self.a_failed_migration_that_stands_for_its_server()

    def a_failed_migration(self):
        """The server is on the destination; the source was not cleared."""
        server = self.boot(flavor=self.big)
        with (
            fixtures.MonkeyPatch(f'{DRIVER}.finish_migration', self.refuse),
            fixtures.MonkeyPatch(
                f'{CLIENT}.delete_allocation_for_instance',
                lambda *_, **__: None,
            ),
        ):
            migration = self.migrate(server)
        self.assertEqual('host2', self.host_of(server))
        self.assertIsNone(self.found())
        self.settle()
        self.left = {'host1': (True, [migration])}
        self.assertEqual(self.left, self.found())

    def a_failed_migration_that_stands_for_its_server(self):
        """To delete it would let the scheduler fill the host twice."""
        server = self.boot(flavor=self.big)
        with (
            fixtures.MonkeyPatch(
                f'{DRIVER}.migrate_disk_and_power_off', self.refuse
            ),
            fixtures.MonkeyPatch(
                f'{MANAGER}._revert_allocation', lambda *_: True
            ),
        ):
            self.migrate(server)
        self.assertEqual('host3', self.host_of(server))
        self.assertEqual(self.left, self.found())


class PageTestCase(pages.PagesMixin, UnheldTestCase):
    @samples.compares('cli/explain/unheld.txt')
    def test_what_does_not_free_a_host(self):
        """A server fills it, and what nobody holds is little."""
        self.boot_each_on('host1', 'host3', 'host4', 'host5', flavor=self.big)
        consumer = self.allocate('host2', FULL)
        small = self.flavor(name='small', memory_mb=512, disk=1)
        server = self.boot(flavor=small, az='nova:host1')
        with fixtures.MonkeyPatch(
            f'{CLIENT}.delete_allocation_for_instance', lambda *_, **__: None
        ):
            self._delete_server(server)
        self.settle()
        self.assertEqual(
            {'host1': (False, [server['id']]), 'host2': (True, [consumer])},
            self.found(),
        )
        self.show(
            'cli/explain/unheld.txt', 'nova-ext-sched explain --flavor big'
        )
