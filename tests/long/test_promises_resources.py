# SPDX-License-Identifier: Apache-2.0

"""The five promises of clouds whose resources are not plain.

See :mod:`tests.functional.promises`.
"""

from nova import context
from nova.virt import fake

from nova_ext_sched import plan_format
from tests.functional import capacity_driver
from tests.functional import explain_cloud
from tests.functional import promises
from tests.functional import sharing

GPU = {'resources:VGPU': '1'}
OLD = {**GPU, 'trait:CUSTOM_NVIDIA_11': 'required'}


class OvercommitRow(promises.CloudRow):
    """Overcommit and what is reserved, changed while servers run."""

    promise_isolation = promises.isolates('host1', 'host3')
    promise_capacity = promises.counts(vcpu=1)

    def build(self):
        four = self.flavor(vcpu=4)
        self.boot_each_on('host1', 'host2', 'host3', flavor=four)
        self.flags(reserved_host_cpus=1, reserved_host_memory_mb=1024)
        # host4 is not asked yet, as after a restart of the other three.
        for host in ('host1', 'host2', 'host3'):
            manager = self.computes[host].manager
            manager.update_available_resource(context.get_admin_context())
        self.limit('host1', 'VCPU', allocation_ratio=2.0)
        # Less than is used, and than a server holds.
        self.limit('host2', 'VCPU', allocation_ratio=0.3)
        self.limit('host3', 'VCPU', max_unit=3)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=2))
        # More than is left where it is reserved.
        self.assertExplained(flavor=self.flavor(vcpu=2, memory_mb=7300))
        self.assertRefused(flavor=self.flavor(vcpu=11))

    def promise_moves(self):
        for boot in (self.boot, self.boot_stopped):
            boot(az='nova:host3')
        self.assertDrained('host3', kinds=('cold', 'live'), stuck=['VCPU'])

    def promise_survive(self):
        self.assertFails('--host', 'host2')
        self.boot(az='nova:host3')
        self.assertFails('--host', 'host3', stuck=['VCPU'])


class StorageRow(sharing.StorageMixin, promises.CloudRow):
    """Disks on a provider that hosts share."""

    def build(self):
        self.share(65, 'host1', 'host2', 'host3')
        self.disk = self.flavor(disk=10)
        self.boot(az='nova:host1')

    def promise_explain(self):
        self.assertExplained()
        self.running = self.assertExplained(flavor=self.disk)
        self.assertRefused(flavor=self.disk, az='nova:host1')
        self.assertRefused(flavor=self.flavor(disk=60))

    def promise_isolation(self):
        self.assertIsolates('host1', 'host4')
        # sync left the aggregate of the storage as it was.
        self.assertExplained(flavor=self.disk)

    def promise_moves(self):
        stopped = self.boot_stopped(flavor=self.disk)
        plan = self.assertDrained('host1', kinds=('cold', 'live'))
        # One that is forced to a host would get no disk there: nova chooses.
        to = {one['server']: one['to'] for one in plan['moves']}
        for one in (self.running, stopped):
            self.assertIsNone(to.pop(one['id']))
        self.assertIn('host2', to.values())
        # It moves only what can be told its host.
        plan, made = self.assertRoom(4, flavor=self.flavor(vcpu=9))
        moved = {one['server'] for one in plan['moves']}
        self.assertEqual(set(), moved & {self.running['id'], stopped['id']})
        self.assertEqual([*filter(None, plan['room_on'])], plan['room_on'])
        for server in made:
            self._delete_server(server)
        self.assertMaintained('host1', 'host2', 'host3')

    def promise_survive(self):
        self.assertFails('--host', self.host_of(self.running))

    def promise_capacity(self):
        self.assertCounted(flavor=self.disk)


class VolumesRow(promises.CloudRow):
    """Servers on volumes take no disk of a host."""

    promise_isolation = promises.isolates('host1')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        self.large = self.flavor(vcpu=4, disk=2000)
        self.boot(flavor=self.large)

    def boot(self, expected_state='ACTIVE', **server):
        """Boot from a volume that nova creates."""
        built = self._build_server(
            flavor_id=server.pop('flavor', None) or self.plain_flavor,
            image_uuid='',
            networks='none',
            **server,
        )
        built['block_device_mapping_v2'] = [
            {
                'source_type': 'image',
                'destination_type': 'volume',
                'boot_index': 0,
                'uuid': self.plain_image,
                'volume_size': 1,
            }
        ]
        built = self.admin_api.post_server({'server': built})
        return self._wait_for_state_change(built, expected_state)

    def arguments(self, **server):
        return (*super().arguments(**server), '--boot-from-volume')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.large)
        self.assertRefused(flavor=self.flavor(vcpu=11))

    def promise_moves(self):
        self.boot_stopped(az='nova:host1')
        self.assertDrained('host1', kinds=('cold', 'live'))

    def promise_capacity(self):
        self.assertCounted(flavor=self.large)


class GpuDriver(fake.MediumFakeDriver):
    """Each host has three devices of one type; host2 and host3 of another."""

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        types = ['11', '12'] if nodename in ('host2', 'host3') else ['11']
        for one in types:
            name = f'{nodename}_{one}'
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            three = capacity_driver.inventory(3)
            provider_tree.update_inventory(name, {'VGPU': three})
            provider_tree.update_traits(name, [f'CUSTOM_NVIDIA_{one}'])


class GpuRow(promises.CloudRow):
    """A child provider with a trait (vGPU)."""

    driver = GpuDriver
    weights = {'host1': 400, 'host4': 300, 'host5': 200}
    promise_isolation = promises.isolates('host1', 'host4')

    def build(self):
        self.old = self.flavor(specs=OLD)
        self.boot_each_on('host1', 'host1', 'host4', flavor=self.old)

    def promise_explain(self):
        self.running = self.assertExplained(flavor=self.old)
        self.assertExplained(flavor=self.flavor(specs=GPU))
        self.assertRefused(flavor=self.flavor(specs={'resources:VGPU': '4'}))

    def promise_moves(self):
        self.assertDrained('host4')
        # Those that left a host give their devices back: it takes others.
        self.assertMaintained(*self.weights)

    def promise_survive(self):
        self.assertFails('--host', self.host_of(self.running))

    def promise_capacity(self):
        self.assertCounted(flavor=self.old)


class SevDriver(fake.MediumFakeDriver):
    """Each host encrypts the memory of two guests, as nova has it since 32."""

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        name = f'{nodename}_amd_sev'
        if not provider_tree.exists(name):
            provider_tree.new_child(name, nodename)
        two = capacity_driver.inventory(2, max_unit=1)
        provider_tree.update_inventory(name, {'MEM_ENCRYPTION_CONTEXT': two})
        provider_tree.update_traits(name, ['HW_CPU_X86_AMD_SEV'])


class SevRow(promises.CloudRow):
    """Guests with encrypted memory, which nova does not migrate live."""

    driver = SevDriver
    promise_isolation = promises.isolates('host1', 'host4')

    def build(self):
        self.server = {
            'flavor': self.flavor(specs={'hw:mem_encryption': 'true'}),
            'image': self.image(
                hw_firmware_type='uefi', hw_machine_type='q35'
            ),
        }
        for host in ('host1', 'host1', 'host2', 'host3'):
            self.boot_stopped(**self.server, az=f'nova:{host}')

    def promise_explain(self):
        self.running = self.assertExplained(**self.server)
        self.assertRefused(**self.server, az='nova:host1')

    def promise_moves(self):
        self.assertDrained('host1', kinds=('cold',))
        self.assertMaintained(*self.weights)
        plan = self.assertDrained(self.host_of(self.running), kinds=('cold',))
        [move] = [
            one for one in plan['moves'] if one['server'] == self.running['id']
        ]
        self.assertEqual(plan_format.REFUSED, move['why_cold'])

    def promise_survive(self):
        self.assertFails('--host', self.host_of(self.running))

    def promise_capacity(self):
        self.assertCounted(**self.server)


class BoundedRow(promises.CloudRow):
    """Placement bounds how many candidates it answers with."""

    driver = GpuDriver
    promise_isolation = promises.isolates('host2')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host4')

    def bound(self, number):
        self.placement.fixture.conf_fixture.config(
            max_allocation_candidates=number, group='placement'
        )

    def build(self):
        self.bound(2)
        self.whole = self.flavor(specs={'resources:VGPU': '3'})
        self.boot(az='nova:host1')
        # What it holds stays when host4 fails: placement would name that one.
        self.boot(flavor=self.whole, az='nova:host4')

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(flavor=self.flavor(specs={'resources:VGPU': '4'}))

    def promise_capacity(self):
        # Of both devices of host2 and of host3 it names one.
        self.bound(1)
        self.assertCounted(least=4, flavor=self.whole)


class TwoTypesRow(promises.CloudRow):
    """Two device types on one host, told apart by a trait."""

    driver = GpuDriver
    weights = {'host1': 400, 'host2': 300, 'host3': 200}
    promise_isolation = promises.isolates('host1', 'host2')
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        self.old = self.flavor(specs=OLD)
        self.new = self.flavor(
            specs={**GPU, 'trait:CUSTOM_NVIDIA_12': 'required'}
        )
        for flavor, host in (
            (self.old, 'host1'),
            (self.old, 'host2'),
            (self.new, 'host2'),
        ):
            self.boot(flavor=flavor, az=f'nova:{host}')

    def promise_explain(self):
        self.assertExplained(flavor=self.old)
        self.assertExplained(flavor=self.new)
        self.assertRefused(
            flavor=self.flavor(specs={**OLD, 'resources:VGPU': '4'})
        )
        self.assertRefused(flavor=self.new, az='nova:host1')

    def promise_moves(self):
        self.boot_stopped(flavor=self.new, az='nova:host2')
        self.assertDrained('host2', kinds=('cold', 'live'))

    def promise_capacity(self):
        self.assertCounted(flavor=self.old)


class BandwidthRow(promises.CloudRow):
    """Ports with a resource request."""

    meaningless = {
        'capacity': 'no flavor asks for a port; nova knows ports when it boots'
    }
    weights = {'host1': 400, 'host2': 300, 'host3': 200}
    network_providers = explain_cloud.RandomCloudTestCase.network_providers
    port = explain_cloud.RandomCloudTestCase.port
    promise_isolation = promises.isolates('host1', 'host3')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        for host in ('host1', 'host2'):
            self.network_providers(host)
        self.with_port = self.boot_with_port()
        self.boot(az='nova:host1')

    def boot_with_port(self):
        return self.boot(networks=[{'port': self.port()}])

    def promise_explain(self):
        self.assertExplained()
        self.assertMoveExplained(self.with_port)
        self.assertRefused(flavor=self.flavor(vcpu=11))
