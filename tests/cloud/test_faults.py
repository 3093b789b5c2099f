# SPDX-License-Identifier: Apache-2.0

"""Faults of the services around nova-scheduler, one after the other.

In each one members go on creating plain servers. Some cannot be created: that
is nova's to say. None may land on a licensed host; and when the fault is
over, servers land again, without a restart of nova-scheduler.
"""

import contextlib
import time

import ddt

from tests.cloud import nova
from tests.cloud import world

#: Seconds that a fault lasts.
LASTS = 20


@ddt.ddt
class FaultsTestCase(world.WorldTestCase):
    def setUp(self):
        super().setUp()
        self.allowed = self.world.allowed('plain', 'linux')

    @ddt.data('keystone', 'placement', 'mariadb', 'rabbitmq')
    def test_service(self, name):
        """A service is away for a while."""
        self.survive(getattr(self.cloud, name).away)

    def survive(self, fault):
        """Create servers while a fault lasts, and after it."""
        with self.world.stream(told=world.TOLD), fault():
            time.sleep(LASTS)
        self.judge()
        self.works_again()

    # Members.

    def judge(self):
        """Check where the servers of a fault stand; remove them."""
        for server in self.world.settled():
            host = server.hypervisor_hostname
            if host is not None:
                self.assertIn(host, self.allowed, server.id)
        world.delete_servers(self.world.admin)

    def works_again(self):
        """Wait until a member's server becomes ACTIVE."""
        deadline = time.monotonic() + 180
        while True:
            said = None
            try:
                (server,) = self.world.boot('plain', 'linux')
                host, said = server.hypervisor_hostname, server.fault
                status = server.status
                self.world.delete(server.id)
                if status == 'ACTIVE':
                    self.assertIn(host, self.allowed)
                    return
            except world.TOLD as exc:
                said = exc
            if time.monotonic() > deadline:
                self.fail(f'no server for three minutes: {said}')

    # Faults.

    @ddt.data('nova_api', 'nova_cell2')
    def test_database(self, name):
        """A database is away, of nova's or of a cell."""
        self.survive(lambda: self.cloud.mariadb.cut(name))

    def test_tokens(self):
        """All tokens end at once, as they do when they expire."""

        @contextlib.contextmanager
        def fault():
            self.cloud.keystone.forget_tokens()
            yield

        self.survive(fault)

    def test_one_scheduler_killed(self):
        deployed = self.cloud.nova

        @contextlib.contextmanager
        def fault():
            deployed.kill_scheduler('scheduler1')
            yield
            deployed.run_scheduler('scheduler1')

        self.survive(fault)

    def test_schedulers_frozen(self):
        @contextlib.contextmanager
        def fault():
            with contextlib.ExitStack() as stack:
                for process in self.cloud.nova.scheduler_processes:
                    stack.enter_context(self.cloud.processes.frozen(process))
                yield

        self.survive(fault)

    def test_full_disk_under_the_log(self):
        """Every line of the schedulers' logs fails with ENOSPC."""
        deployed = self.cloud.nova
        self.addCleanup(deployed.wait_for_schedulers)
        self.addCleanup(deployed.start_schedulers, nova.EVERYTHING)
        deployed.start_schedulers(
            nova.EVERYTHING, {'DEFAULT': {'log_file': '/dev/full'}}
        )
        # Servers land before the disk has room again.
        self.works_again()
        self.survive(contextlib.nullcontext)

    def test_neutron_slow(self):
        """Neutron answers after seconds."""

        def slow(stop):
            while not stop.is_set():
                with self.cloud.processes.frozen(self.cloud.neutron.process):
                    stop.wait(4)
                stop.wait(0.5)

        self.survive(lambda: world.beside(slow))

    # Faults of one operation.

    def test_glance_away_on_a_rebuild(self):
        """Nothing can be said of the new image: the server stays as it is."""
        (server,) = self.world.boot('plain', 'windows-image')
        image = server.image.id
        with self.cloud.glance.away():
            answer = self.world.act(
                server.id,
                {'rebuild': {'imageRef': self.world.image('linux')}},
                'member',
            )
            self.assertGreaterEqual(answer.status_code, 400, answer.text)
            after = self.world.wait(server.id)
        self.assertEqual(
            ('ACTIVE', image, server.hypervisor_hostname),
            (after.status, after.image.id, after.hypervisor_hostname),
        )
        self.world.delete(server.id)

    def test_cinder_away_on_a_rebuild(self):
        """A server with a volume: the volume's image cannot be read."""
        (server,) = self.world.boot(
            'plain',
            None,
            **self.world.volume('windows-image'),
        )
        self.assertEqual('ACTIVE', server.status, server.fault)
        with self.cloud.cinder.away():
            self.world.act(
                server.id,
                {'rebuild': {'imageRef': self.world.image('linux')}},
                'member',
                '2.93',
            )
            after = self.world.wait(server.id)
        self.assertEqual(server.hypervisor_hostname, after.hypervisor_hostname)
        self.world.delete(server.id)

    def test_commands_with_a_cell_down(self):
        """explain and audit say what they cannot read; they do not guess."""
        command = self.cloud.nova.command
        with self.cloud.mariadb.cut('nova_cell2'):
            for arguments in (('audit',), ('explain', '--flavor', 'plain')):
                done = command(*arguments, user='admin', status=None)
                self.assertNotIn('Traceback', done.stdout + done.stderr)
                self.assertIn('cell2', done.stdout + done.stderr, arguments)
