# SPDX-License-Identifier: Apache-2.0

"""Plans of drain, maintain and survive on hosts with libvirt and QEMU."""

from openstack import exceptions

from tests.cloud import environments
from tests.hypervisor import base
from tests.hypervisor import libvirt_hosts


class FailingTestCase(base.HypervisorTestCase):
    """Live migrations that libvirt does not end."""

    #: Whether nova leaves the server in ERROR then: from nova 32 on.
    breaks = int(environments.RELEASE) > 31

    def test_libvirt_refuses_a_move(self):
        server = self.boot('compute1')
        counted = self.count(server)
        move = self.plan_move(server, 'drain compute1')
        self.on('compute1', 'touch', '/run/not-shared')
        self.addCleanup(self.on, 'compute1', 'rm', '-f', '/run/not-shared')
        status, said = self.carry_out()
        self.check_failed(server, status, said, counted)
        self.assertIn('Fix that, then run the command again', said)
        # Run again without what was said, it says so again, and does nothing.
        if self.breaks:
            status, said = self.carry_out()
            self.check_failed(server, status, said, counted)
        self.on('compute1', 'rm', '/run/not-shared')
        self.end(server, said, move, counted)

    def test_abort(self):
        server = self.boot('compute1')
        counted = self.count(server)
        move = self.plan_move(server, 'drain compute1')
        # It takes a minute.
        self.set_speed('compute1', server, 1)
        with self.carrying_out() as done:
            self.cloud.processes.wait(
                lambda: self.abort(server), 'a running migration'
            )
        status, said = done
        self.check_failed(server, status, said, counted)
        self.set_speed('compute1', server, 1000)
        self.end(server, said, move, counted)

    def abort(self, server):
        """Abort the migration of a server; return whether it ran."""
        for one in self.migrations(server):
            if one['status'] == 'running' and one['memory_remaining_bytes']:
                answer = self.world.admin.compute.delete(
                    f'/servers/{server}/migrations/{one["id"]}'
                )
                return answer.status_code == 202
        return False

    def check_failed(self, server, status, said, counted):
        """Check what is said of a server on its old host, whose guest runs."""
        self.assertEqual(1, status, said)
        self.assertIn('is on compute1', said)
        self.assertNotIn('--not-to', said)
        found = self.world.show(server)
        self.assertEqual('ERROR' if self.breaks else 'ACTIVE', found.status)
        self.check_goes_on(server, 'compute1', counted)
        self.assertEqual(
            [server] if self.breaks else [], [*{*base.SET.findall(said)}], said
        )
        if self.breaks:
            self.assertIn('in ERROR, power state Running', said)
            self.assertIn('nova does not say why', said)
            self.assertIn('nova-compute log of compute1', said)

    def end(self, server, said, move, counted):
        """Do what was said; the guest moves, without a new start."""
        self.obey(said)
        self.must_carry_out()
        self.check_goes_on(server, move['expected'], counted)
        self.assertEqual('ACTIVE', self.world.show(server).status)


class MovesTestCase(base.HypervisorTestCase):
    """Moves that hypervisors make."""

    def test_power_off(self):
        """A host loses its power; its servers are evacuated; it comes back."""
        names = {self.boot('compute2') for _ in range(2)}
        self.cloud.nova.power_off('compute2')
        self.addCleanup(self.power_on, 'compute2')
        [failure] = self.plan('survive --host compute2')['failures']
        moves = failure['moves']
        self.assertEqual(names, {one['server'] for one in moves})
        status, said = self.carry_out()
        self.assertEqual(1, status, said)
        self.assertIn('nova-compute of compute2 is not forced down', said)
        self.world.set_service('compute2', forced_down=True)
        self.must_carry_out()
        for move in moves:
            server, host = move['server'], move['expected']
            self.assertEqual(host, self.world.show(server).compute_host)
            self.assertIn(server, self.guests(host))
            self.assertLess(0, self.count(server))
        self.power_on('compute2')
        self.assertEqual(set(), self.guests('compute2', '--all'))
        # It takes servers again.
        for host in {move['expected'] for move in moves}:
            counted = {one: self.count(one) for one in self.guests(host)}
            back = self.plan(f'drain {host} --not-to compute3')['moves']
            self.must_carry_out()
            for move in back:
                server = move['server']
                self.check_goes_on(server, move['expected'], counted[server])

    def power_on(self, host):
        """Switch a host on, unless it is; wait until nova knows."""
        start = self.cloud.processes.start_again
        start(f'host-{host}')
        start(f'nova-compute-{host}')
        # nova refuses until nova-compute has ended the guests that have left.
        self.cloud.processes.wait(lambda: self.lift(host), host)
        services = self.world.admin.compute.services
        self.cloud.processes.wait(
            lambda: [*services(host=host)][0].state == 'up', host
        )

    def lift(self, host):
        """Lift the forced state of a host; return whether nova lets it."""
        try:
            self.world.set_service(host, forced_down=False)
        except exceptions.BadRequestException:
            return False
        return True

    def test_pinned_there_and_back(self):
        """Two guests that are pinned to the one processor for that."""
        server = self.boot('compute1', 'pinned')
        counted = self.count(server)
        host = 'compute1'
        for _ in range(2):
            move = self.plan_move(server, f'drain {host} --not-to compute3')
            self.must_carry_out('--disable')
            self.check_goes_on(server, move['expected'], counted)
            pinned = self.on(
                move['expected'], 'virsh', '-q', 'vcpupin', server
            )
            self.assertEqual(['0', '1'], pinned.split())
            self.must_carry_out('--enable')
            counted, host = self.count(server), move['expected']
        self.assertEqual('compute1', host)

    def test_a_guest_is_killed_after_the_plan(self):
        """It counts as stopped, and moves cold, as it is."""
        server = self.boot('compute1')
        move = self.plan_move(server, 'drain compute1')
        self.assertEqual('live', move['method'])
        self.on('compute1', 'pkill', '-KILL', '-f', f'uuid {server}')
        show = self.world.show
        self.cloud.processes.wait(
            lambda: show(server).status == 'SHUTOFF', server
        )
        said = self.must_carry_out()
        self.assertIn('it is stopped now', said)
        found = show(server)
        self.assertEqual(
            ('SHUTOFF', move['expected']), (found.status, found.compute_host)
        )
        self.world.act(server, {'os-start': None})
        self.world.wait(server, lambda found: found.status == 'ACTIVE')
        self.check_goes_on(server, move['expected'], 0)

    def test_paused(self):
        """It moves once, and stays paused; it goes on when it is resumed."""
        server = self.boot('compute1')
        self.world.act(server, {'pause': None})
        self.world.wait(server, lambda found: found.status == 'PAUSED')
        counted = self.count(server)
        plan = self.plan('drain compute1')
        (move,) = plan['moves']
        self.must_carry_out()
        host = move['expected']
        self.assertEqual('PAUSED', self.world.show(server).status)
        self.assertIn(server, self.guests(host, '--state-paused'))
        self.assertEqual(counted, self.count(server))
        self.world.act(server, {'unpause': None})
        self.world.wait(server, lambda found: found.status == 'ACTIVE')
        self.check_goes_on(server, host, counted)

    def test_block_migration(self):
        """A guest leaves the host that has disks of its own, disk and all."""
        host = libvirt_hosts.OWN_DISKS
        self.world.enable(self.hosts)
        server = self.boot(host)
        counted = self.count(server)
        disks = self.cloud.nova.disks
        self.assertFalse((disks / server).exists())
        move = self.plan_move(server, f'drain {host}')
        self.must_carry_out()
        self.check_goes_on(server, move['expected'], counted)
        self.assertTrue((disks / server / 'disk').exists())
