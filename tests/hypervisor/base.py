# SPDX-License-Identifier: Apache-2.0

"""What tests of plans on real hypervisors have in common."""

import concurrent.futures
import contextlib
import json
import re
import time

from tests.cloud import base
from tests.cloud import processes
from tests.cloud import world
from tests.hypervisor import libvirt_hosts

SET = re.compile(r'openstack server set --state active ([0-9a-f-]{36})')
PLAN = 'plan.json'
PINNED = {'hw:cpu_policy': 'dedicated'}
#: An address of the guest (guest.s), as QEMU's monitor prints what is there.
COUNTER = 'xp /1wd 0x600'


class HypervisorTestCase(base.CloudTestCase):
    """Runs on hosts that share their disks; leaves them without guests."""

    form = libvirt_hosts.FORM

    @classmethod
    def standing(cls):
        libvirt_hosts.check_machine()
        return super().standing()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cloud = cls.standing()
        cloud.nova.wait_for_schedulers()
        cls.world = world.World(cloud, closed=False)
        admin = cls.world.admin
        cls.addClassCleanup(world.remove_everything, admin)
        image = cloud.nova.folder / 'guest.img'
        admin.create_image(
            'guest',
            filename=str(image),
            disk_format='raw',
            container_format='bare',
            visibility='public',
            wait=True,
        )
        for name, ram, specs in (
            ('tiny', 64, {}),
            ('pinned', 64, PINNED),
        ):
            cls.world.create_flavor(name, ram, specs)
        cls.world.create_network()
        world.wake_neutron(admin)

    def setUp(self):
        super().setUp()
        self.hosts = self.cloud.nova.hosts
        self.on = self.cloud.nova.on
        self.addCleanup(world.delete_servers, self.world.admin)
        self.enable_all()

    def enable_all(self):
        """Let all hosts but the one with its own disks take servers."""
        self.world.enable({*self.hosts} - {libvirt_hosts.OWN_DISKS})

    # Guests.

    def boot(self, host, flavor='tiny'):
        """Create a server without a port on a host; return its UUID."""
        (server,) = self.world.boot(
            flavor, 'guest', 'admin', host=host, networks='none'
        )
        self.assertEqual(
            ('ACTIVE', host),
            (server.status, server.compute_host),
            server.fault,
        )
        # Until its memory is full.
        self.cloud.processes.wait(lambda: self.count(server.id), server.id)
        return server.id

    def guests(self, host, *options):
        """Return the UUIDs of the guests that QEMU has on a host.

        :param options: of virsh list, which choose states
        """
        found = self.on(host, 'virsh', '-q', 'list', '--uuid', *options)
        return {*found.split()}

    def count(self, server, host=None):
        """Return what a guest has counted since it was started.

        :param host: where it is, if nova's answer is not wanted
        """
        host = host or self.world.show(server).compute_host
        asked = ('qemu-monitor-command', server, '--hmp', COUNTER)
        return int(self.on(host, 'virsh', '-q', *asked).split()[-1])

    def check_goes_on(self, server, host, counted):
        """Check that a guest has come to a host without a new start."""
        for one in self.hosts:
            self.assertEqual(one == host, server in self.guests(one), one)
        now = self.count(server, host)
        self.assertLess(counted, now)
        time.sleep(0.5)
        self.assertLess(now, self.count(server, host))

    def set_speed(self, host, server, speed):
        """Limit what a migration copies, in MiB a second."""
        self.on(host, 'virsh', '-q', 'migrate-setspeed', server, speed)

    # Plans.

    def plan(self, command, status=0):
        """Make a plan as the pages type it; return it."""
        (self.cloud.folder / PLAN).unlink(missing_ok=True)
        self.cloud.execute(
            f'nova-ext-sched {command} '
            f'--config-file {self.cloud.nova.scheduler_conf} --output {PLAN}',
            user='admin',
            status=status,
        )
        return json.loads((self.cloud.folder / PLAN).read_text())

    def plan_move(self, server, command):
        """Make a plan that moves one server; return the move."""
        (move,) = self.plan(command)['moves']
        self.assertEqual(server, move['server'])
        return move

    def carry_out(self, options=''):
        """Carry the plan out; return its exit status and what it said."""
        done = self.cloud.execute(
            f'openstack move plan apply {PLAN} --yes {options} 2>&1',
            user='admin',
            status=None,
        )
        self.assertNotIn('Traceback', done.stdout)
        return done.returncode, ' '.join(done.stdout.split())

    def must_carry_out(self, options=''):
        """Carry the plan out to its end; return what was said."""
        status, said = self.carry_out(options)
        self.assertEqual(0, status, said)
        return said

    @contextlib.contextmanager
    def carrying_out(self):
        """Carry the plan out meanwhile.

        :yields: a list; it ends with the exit status and what was said
        """
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = []
            running = pool.submit(self.carry_out)
            yield done
            done += running.result(processes.WAIT_SECONDS)

    def obey(self, said):
        """Set the state of servers, as was said; return which."""
        servers = SET.findall(said)
        for server in servers:
            # Newer clients ask first, as a terminal is supposed to be there.
            self.world.act(server, {'os-resetState': {'state': 'active'}})
        return servers

    def migrations(self, server):
        """Return the migrations under way of a server."""
        answer = self.world.admin.compute.get(f'/servers/{server}/migrations')
        return answer.json()['migrations']
