# SPDX-License-Identifier: Apache-2.0

"""Hosts with NUMA cells and PCI devices, with nova's libvirt driver.

The libvirt below it is nova's fake of it; cells and devices are accounted by
nova's own code, in the scheduler as in nova-compute.
"""

import json

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base as libvirt_base

from tests.functional import base
from tests.functional import capacity
from tests.functional import plans
from tests.functional import test_survive

DEVICE = {
    'vendor_id': fakelibvirt.PCI_VEND_ID,
    'product_id': fakelibvirt.PCI_PROD_ID,
}
PINNED = {'hw:cpu_policy': 'dedicated'}


class DevicesBase(
    test_survive.EvacuationMixin,
    plans.MovesMixin,
    capacity.TruthMixin,
    base.PluginMixin,
    libvirt_base.ServersTestBase,
):
    """Two hosts of two NUMA cells; each cell has three cores of two threads.

    Each host has three PCI devices, all in its second cell.
    """

    ADMIN_API = True
    microversion = 'latest'
    ADDITIONAL_FILTERS = ('NUMATopologyFilter', 'PciPassthroughFilter')
    host_filters = ADDITIONAL_FILTERS
    in_placement = False
    hosts = ('host1', 'host2')
    #: [compute] cpu_dedicated_set
    dedicated = None
    #: Those of each cell; None for small ones alone.
    mempages = None

    def setUp(self):
        self.flags(
            device_spec=[json.dumps(DEVICE)],
            alias=[json.dumps({**DEVICE, 'name': 'nic'})],
            report_in_placement=self.in_placement,
            group='pci',
        )
        self.flags(
            pci_in_placement=self.in_placement, group='filter_scheduler'
        )
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.flags(cpu_dedicated_set=self.dedicated, group='compute')
        super().setUp()
        self.admin_api = self.api
        self.useFixture(nova_fixtures.AllServicesCurrent())
        self.useFixture(
            fixtures.MockPatch(
                'nova.virt.libvirt.driver.LibvirtDriver'
                '.migrate_disk_and_power_off',
                return_value='{}',
            )
        )
        self.start()

    def start(self):
        """Start the nova-compute of each host."""
        for host in self.hosts:
            self.start_compute(
                hostname=host,
                host_info=fakelibvirt.HostInfo(
                    cpu_nodes=2,
                    cpu_sockets=1,
                    cpu_cores=3,
                    cpu_threads=2,
                    mempages=self.mempages,
                ),
                pci_info=fakelibvirt.HostPCIDevicesInfo(
                    num_pci=3, numa_node=1
                ),
            )

    def _setup_scheduler_service(self):
        # The Plugin has enabled the filters.
        return self.start_service('scheduler')

    def boot(self, flavor, expected_state='ACTIVE', **kwargs):
        return self._create_server(
            flavor_id=flavor,
            networks='none',
            expected_state=expected_state,
            **kwargs,
        )

    def large(self, vcpu, memory_mb=256, **specs):
        return self._create_flavor(
            vcpu=vcpu,
            memory_mb=memory_mb,
            disk=0,
            ephemeral=0,
            extra_spec=specs,
        )
