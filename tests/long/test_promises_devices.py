# SPDX-License-Identifier: Apache-2.0

"""The five promises of clouds with NUMA cells and PCI devices.

nova's libvirt driver runs, on nova's fake of libvirt. See
:mod:`tests.functional.promises`.
"""

import functools

from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from tests.functional import promises
from tests.long import devices

PINNED = devices.PINNED
NIC = {'pci_passthrough:alias': 'nic:1'}
NICS = {'pci_passthrough:alias': 'nic:2'}


class DevicesMixin(promises.Row):
    """Hosts of two NUMA cells; see devices."""

    hosts = ('host1', 'host2', 'host3')
    plain_image = None
    promise_isolation = promises.isolates('host1', 'host3')

    def setUp(self):
        weights = {'host1': 300, 'host2': 200, 'host3': 100}
        self.useFixture(nova_fixtures.HostNameWeigherFixture(weights=weights))
        super().setUp()

    @functools.cached_property
    def plain_flavor(self):
        return self.large(1)

    def boot(self, flavor=None, expected_state='ACTIVE', **server):
        return super().boot(
            flavor or self.plain_flavor, expected_state, **server
        )

    def assertExplained(self, **server):
        """Delete it then: nova's fake of libvirt migrates none that runs."""
        self._delete_server(super().assertExplained(**server))


class CellsRow(DevicesMixin, devices.DevicesBase):
    """NUMA cells, with shared CPUs."""

    promise_survive = promises.fails('--host', 'host3')

    def build(self):
        # Placement has room for five on a host, the cells for four.
        self.one = self.large(1, 3000, **{'hw:numa_nodes': '1'})
        for host in (*['host1'] * 2, *['host3'] * 2):
            self.boot_stopped(flavor=self.one, host=host)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.large(2, **{'hw:numa_nodes': '2'}))
        # More than a cell has, and less than a host.
        self.assertRefused(
            flavor=self.large(1, 9000, **{'hw:numa_nodes': '1'})
        )

    def promise_moves(self):
        self.boot_stopped(flavor=self.one, host='host2')
        self.assertDrained('host2', kinds=('cold',))

    def promise_capacity(self):
        self.assertCounted(flavor=self.one)


class PinnedRow(DevicesMixin, devices.DevicesBase):
    """NUMA cells, with pinned CPUs."""

    dedicated = '0-11'
    room = 'PCPU:1'
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        self.four = self.large(4, **PINNED)
        self.boot_stopped(flavor=self.four, host='host1')

    @functools.cached_property
    def plain_flavor(self):
        return self.large(1, **PINNED)

    def promise_explain(self):
        self.assertExplained(flavor=self.four)
        # A host has so many, a cell has not.
        self.assertRefused(flavor=self.large(7, **PINNED))
        # Every CPU is a dedicated one.
        self.assertRefused(flavor=self.large(1))

    def promise_moves(self):
        self.boot_stopped(flavor=self.large(2, **PINNED), host='host2')
        self.assertDrained('host2', kinds=('cold',))

    def promise_capacity(self):
        # The devices are enough for three, the CPUs of their cell for one.
        self.assertCounted(flavor=self.large(4, **PINNED, **NIC))
        self.assertCounted(flavor=self.four)


class PagesRow(DevicesMixin, devices.DevicesBase):
    """NUMA cells, with huge pages."""

    mempages = (
        fakelibvirt.create_mempages([(4, 1_000_000), (2048, 1000)]),
    ) * 2
    promise_moves = promises.drains('host2', kinds=('cold',))
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        # Two in each cell's pages.
        self.pages = self.large(1, 1000, **{'hw:mem_page_size': 'large'})
        for host in ('host1', 'host2'):
            self.boot_stopped(flavor=self.pages, host=host)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.pages)
        self.assertRefused(
            flavor=self.large(1, 2400, **{'hw:mem_page_size': '2048'})
        )

    def promise_capacity(self):
        self.assertCounted(flavor=self.pages)


class AliasRow(DevicesMixin, devices.DevicesBase):
    """PCI devices by an alias."""

    promise_moves = promises.drains('host2', kinds=('cold',))
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        self.nic = self.large(1, **NIC)
        for host in ('host1', 'host1', 'host2'):
            self.boot_stopped(flavor=self.nic, host=host)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.large(1, **NICS))
        self.assertRefused(
            flavor=self.large(1, **{'pci_passthrough:alias': 'nic:4'})
        )

    def promise_capacity(self):
        self.assertCounted(flavor=self.large(1, **NICS))
        # Those that come in pairs may leave none.
        self.assertCounted(0, flavor=self.nic)


class DevicesInPlacementRow(AliasRow):
    """PCI devices by an alias, in placement."""

    broken = {
        'moves': 'on a cold move nova-compute takes another device than '
        'nova-scheduler took; test_moves_devices makes one move',
        'survive': 'as for moves; one of two like servers went elsewhere',
    }
    in_placement = True
