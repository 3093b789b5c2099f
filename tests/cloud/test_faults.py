# SPDX-License-Identifier: Apache-2.0

"""Faults of the services around nova-scheduler, one after the other.

In each one members go on creating plain servers. Some cannot be created: that
is nova's to say. None may land on a licensed host; and when the fault is
over, servers land again, without a restart of nova-scheduler.
"""

import contextlib
import threading
import time

from keystoneauth1 import exceptions as auth_exceptions
from openstack import exceptions
import requests

from tests.cloud import base
from tests.cloud import nova
from tests.cloud import world

#: Seconds that a fault lasts.
LASTS = 20
#: What a user may be told while a fault lasts.
TOLD = (
    exceptions.SDKException,
    auth_exceptions.ClientException,
    requests.RequestException,
)


class FaultsTestCase(base.CloudTestCase):
    def test_faults(self):
        cloud = self.cloud
        self.world = world.World(cloud)
        cloud.nova.start_schedulers(nova.EVERYTHING)
        cloud.nova.wait_for_schedulers()
        self.world.create()
        self.allowed = self.world.allowed('plain', 'linux')
        for fault in (
            cloud.keystone.away,
            self.tokens_that_are_no_longer_valid,
            cloud.placement.away,
            self.neutron_slow,
            lambda: cloud.mariadb.cut('nova_cell2'),
            lambda: cloud.mariadb.cut('nova_api'),
            cloud.mariadb.away,
            cloud.rabbitmq.away,
            self.one_scheduler_killed,
            self.schedulers_frozen,
            self.full_disk_under_the_log,
        ):
            name = getattr(fault, '__qualname__', str(fault))
            with self.boots() as servers, fault():
                time.sleep(LASTS)
            self.judge(name, servers)
            self.works_again(name)
        self.glance_away_on_a_rebuild()
        self.cinder_away_on_a_rebuild()
        self.commands_with_a_cell_down()

    # Members.

    @contextlib.contextmanager
    def boots(self):
        """Create servers until the block ends; yield the list of them."""
        servers, stop = [], threading.Event()
        # A connection of its own: a member whose token is from before.
        member = self.cloud.connect('member')
        body = {
            'name': 'stream',
            'flavorRef': self.world.flavor('plain'),
            'imageRef': self.world.image('linux'),
            'networks': [{'uuid': self.world.network}],
        }

        def create():
            while not stop.wait(1):
                with contextlib.suppress(*TOLD):
                    answer = member.compute.post(
                        '/servers', json={'server': body}, timeout=15
                    )
                    if answer.ok:
                        servers.append(answer.json()['server']['id'])

        thread = threading.Thread(target=create)
        thread.start()
        try:
            yield servers
        finally:
            stop.set()
            thread.join()

    def judge(self, name, servers):
        """Check where the servers of a fault stand; remove them."""
        for server in self.settled():
            host = server.hypervisor_hostname
            if host is not None:
                self.assertIn(host, self.allowed, (name, server.id))
        world.delete_servers(self.world.admin)

    def settled(self):
        """Return all servers when none is being built any more.

        A server whose message was lost stays in BUILD: it stands nowhere.
        """
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(*TOLD):
                servers = list(
                    self.world.admin.compute.servers(all_projects=True)
                )
                building = [
                    found for found in servers if found.status == 'BUILD'
                ]
                if not building or time.monotonic() > deadline:
                    return servers
            time.sleep(1)

    def works_again(self, name):
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
                    self.assertIn(host, self.allowed, name)
                    return
            except TOLD as exc:
                said = exc
            if time.monotonic() > deadline:
                self.fail(f'{name}: no server for three minutes: {said}')

    # Faults.

    @contextlib.contextmanager
    def tokens_that_are_no_longer_valid(self):
        """All tokens end at once, as they do when they expire."""
        keystone = self.cloud.keystone
        keystone.forget_tokens()
        yield

    @contextlib.contextmanager
    def neutron_slow(self):
        """Neutron answers after seconds."""
        stop = threading.Event()

        def slow():
            while not stop.is_set():
                with self.cloud.processes.frozen(self.cloud.neutron.process):
                    stop.wait(4)
                stop.wait(0.5)

        thread = threading.Thread(target=slow)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    @contextlib.contextmanager
    def one_scheduler_killed(self):
        deployed = self.cloud.nova
        deployed.kill_scheduler('scheduler1')
        try:
            yield
        finally:
            deployed.run_scheduler('scheduler1')

    @contextlib.contextmanager
    def schedulers_frozen(self):
        with contextlib.ExitStack() as stack:
            for process in self.cloud.nova.scheduler_processes:
                stack.enter_context(self.cloud.processes.frozen(process))
            yield

    @contextlib.contextmanager
    def full_disk_under_the_log(self):
        """Every line of the schedulers' logs fails with ENOSPC."""
        self.cloud.nova.start_schedulers(
            nova.EVERYTHING, {'DEFAULT': {'log_file': '/dev/full'}}
        )
        yield
        # And they work: servers land before the disk has room again.
        self.works_again('full disk')
        self.cloud.nova.start_schedulers(nova.EVERYTHING)
        self.cloud.nova.wait_for_schedulers()

    # Faults of one operation.

    def glance_away_on_a_rebuild(self):
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

    def cinder_away_on_a_rebuild(self):
        """A server with a volume: the volume's image cannot be read."""
        (server,) = self.world.boot(
            'plain',
            None,
            block_device_mapping_v2=[
                {
                    'boot_index': 0,
                    'uuid': self.world.image('windows-image'),
                    'source_type': 'image',
                    'destination_type': 'volume',
                    'volume_size': 1,
                    'delete_on_termination': True,
                }
            ],
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

    def commands_with_a_cell_down(self):
        """explain and audit say what they cannot read; they do not guess."""
        command = self.cloud.nova.command
        with self.cloud.mariadb.cut('nova_cell2'):
            for arguments in (('audit',), ('explain', '--flavor', 'plain')):
                done = command(*arguments, user='admin', status=None)
                self.assertNotIn('Traceback', done.stdout + done.stderr)
                self.assertIn('cell2', done.stdout + done.stderr, arguments)
