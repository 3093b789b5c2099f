# SPDX-License-Identifier: Apache-2.0

"""The five promises of clouds whose servers are in states, or under way.

See :mod:`tests.functional.promises`.
"""

import threading
import time

import fixtures
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.virt import fake
from oslo_utils import uuidutils

from tests import releases
from tests.functional import promises

CLIENT = 'nova.scheduler.client.report.SchedulerReportClient'


class StatesRow(promises.CloudRow):
    """Servers in every vm_state, and in task_states."""

    promise_isolation = promises.isolates('host1')
    promise_moves = promises.drains(
        'host1', kinds=('cold', 'live'), stuck=['state'] * 6
    )
    promise_survive = promises.fails('--host', 'host1', stuck=['state'] * 3)
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.flags(reclaim_instance_interval=3600)
        self.flags(shelved_offload_time=-1)
        for action, status in (
            ('pause', 'PAUSED'),
            ('suspend', 'SUSPENDED'),
            ('rescue', 'RESCUE'),
            ('shelve', 'SHELVED'),
            ('os-stop', 'SHUTOFF'),
        ):
            server = self.boot(az='nova:host1')
            self.act(server, action, status)
        failed = self.boot(az='nova:host1')
        self.reset_state(failed, 'error')
        deleted = self.boot(az='nova:host1')
        self.api.delete_server(deleted['id'])
        self._wait_for_state_change(deleted, 'SOFT_DELETED')
        busy = self.boot(az='nova:host1')
        self.boot(az='nova:host1')
        self.write_server(busy, task_state=task_states.REBOOTING)

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(az='nova:host1', flavor=self.flavor(vcpu=4))


class ResizedRow(promises.CloudRow):
    """A resize that is not confirmed."""

    promise_isolation = promises.isolates('host1', 'host3')
    promise_survive = promises.fails('--host', 'host2', stuck=['state'])
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        resized = self.boot(az='nova:host1')
        self.boot_each_on('host1', 'host2')
        self.act(
            resized, 'resize', 'VERIFY_RESIZE', flavorRef=self.flavor(vcpu=8)
        )
        self.assertEqual('host2', self.host_of(resized))

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=6))
        self.assertRefused(az='nova:host2', flavor=self.flavor(vcpu=2))

    def promise_moves(self):
        # Its old flavor holds room there.
        self.assertDrained('host1', stuck=['state'])


class LeftoverRow(promises.CloudRow):
    """What an evacuated server left on a host that is up again."""

    promise_isolation = promises.isolates('host1', 'host2')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        evacuated = self.boot(flavor=self.flavor(vcpu=8), az='nova:host1')
        self.boot(az='nova:host2')
        self.set_service('host1', forced_down=True)
        self.evacuate(evacuated['id'])
        self._wait_for_server_parameter(
            evacuated,
            {'OS-EXT-SRV-ATTR:host': 'host2', 'OS-EXT-STS:task_state': None},
        )
        with fixtures.MonkeyPatch(
            f'{CLIENT}.remove_provider_tree_from_instance_allocation',
            lambda *_, **__: False,
        ):
            self.computes['host1'] = self.restart_compute_service(
                self.computes['host1']
            )
        self.set_service('host1', forced_down=False)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=2))
        self.assertRefused(az='nova:host1', flavor=self.flavor(vcpu=2))


class UnheldRow(promises.CloudRow):
    """Allocations that nobody holds."""

    promise_isolation = promises.isolates('host1', 'host2')
    promise_moves = promises.drains('host2')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=2)

    def build(self):
        for host in ('host1', 'host2', 'host3'):
            self.allocate(host, {'VCPU': 7})
        self.boot_each_on('host2', 'host3')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=4))
        self.assertRefused(az='nova:host1', flavor=self.flavor(vcpu=4))


class UnderWayRow(promises.CloudRow):
    """A live migration under way."""

    promise_isolation = promises.isolates('host1', 'host2')
    promise_moves = promises.drains('host1', stuck=['state'])
    promise_survive = promises.fails('--host', 'host3')

    def setUp(self):
        # Others do not wait for it.
        self.flags(max_concurrent_live_migrations=2)
        self.may_end = threading.Event()
        self.slow = set()
        migrate = fake.FakeDriver.live_migration

        def migrate_slowly(driver, context, instance, *args, **kwargs):
            if instance.uuid in self.slow:
                self.may_end.wait(600)
            migrate(driver, context, instance, *args, **kwargs)

        self.patch(fake.FakeDriver, 'live_migration', migrate_slowly)
        super().setUp()

    def build(self):
        # Before nova-compute ends, which waits for it.
        self.addCleanup(self.may_end.set)
        self.moving = self.boot(flavor=self.flavor(vcpu=4), az='nova:host1')
        self.boot_each_on('host1', 'host2', 'host3')
        self.slow.add(self.moving['id'])
        self.live_migrate(self.moving, 'host2')
        self._wait_for_migration_status(self.moving, ['running'])

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=6))
        self.assertRefused(flavor=self.flavor(vcpu=7), az='nova:host2')

    def promise_capacity(self):
        self.assertCounted(flavor=self.flavor(vcpu=4))
        self.may_end.set()
        self._wait_for_migration_status(self.moving, ['completed'])


class FailedMigrationRow(promises.CloudRow):
    """Live migrations that failed, or that conductor lost."""

    promise_isolation = promises.isolates('host1', 'host2')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        failed, lost = (
            self.boot(flavor=self.flavor(vcpu=4), az='nova:host1')
            for _ in range(2)
        )
        self.boot(az='nova:host2')
        with fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.check_can_live_migrate_destination',
            self.refuse,
        ):
            self.live_migrate(failed, 'host2')
            self._wait_for_migration_status(failed, ['error', 'failed'])
        # conductor ends before nova-compute hears of it.
        with fixtures.MonkeyPatch(
            'nova.compute.rpcapi.ComputeAPI.live_migration',
            lambda *_, **__: None,
        ):
            self.live_migrate(lost, 'host2')
            # Where it stays.
            self._wait_for_migration_status(lost, ['accepted'])
            time.sleep(1)
        self.reset_state(lost, 'active')

    def refuse(self, *_, **__):
        raise exception.MigrationPreCheckError(reason='test')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=4))
        self.assertRefused(flavor=self.flavor(vcpu=7), az='nova:host1')


class RebuildRow(promises.CloudRow):
    """A server whose rebuild was refused."""

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}
    promise_isolation = promises.isolates('host1', 'host3')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        self.isolate('windows', ['host1', 'host2'], 'CUSTOM_WINDOWS')
        self.windows = self.image(props={'trait:CUSTOM_WINDOWS': 'required'})
        server = self.boot(image=self.windows)
        self.rebuild_server(server, self.plain_image, 'ERROR')
        self.reset_state(server, 'active')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(image=self.windows)
        self.assertRefused(host='host1')

    def promise_capacity(self):
        self.assertCounted(image=self.windows, flavor=self.flavor(vcpu=4))


class ShareRow(promises.CloudRow):
    """A server with a Manila share."""

    promise_isolation = promises.isolates('host1')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails(
        '--host', 'host2', stuck=['never evacuated']
    )
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host1', 'host2')
        if not releases.KNOWS_SHARES:
            self.skipTest('this release of nova has no shares')
        with_share = self.boot(az='nova:host2')
        self.share(with_share['id'])

    def share(self, server):
        """Let a server have a share, as if Manila had given it."""
        with self.cell() as cctxt:
            objects.ShareMapping(
                cctxt,
                uuid=uuidutils.generate_uuid(),
                instance_uuid=server,
                share_id=uuidutils.generate_uuid(),
                status='inactive',
                tag='share',
                export_location='nfs:/share',
                share_proto='NFS',
            ).create()

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(flavor=self.flavor(vcpu=11))
