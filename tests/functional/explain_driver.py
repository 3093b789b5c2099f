# SPDX-License-Identifier: Apache-2.0

"""A fake compute driver with NUMA cells, PCI devices and a nested provider."""

import json

from nova import objects
from nova.virt import fake


class Driver(fake.MediumFakeDriverWithNestedCustomResources):
    """What a host has depends on the number that its name ends with.

    Odd hosts have two NUMA cells; hosts from 3 on have PCI devices; every
    second of those with cells reports PCPU too.
    """

    capabilities = dict(
        fake.FakeDriver.capabilities, supports_migrate_to_same_host=False
    )

    def _number(self, nodename):
        return int(nodename[-1])

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        number = self._number(nodename)
        if number % 2:
            found['numa_topology'] = objects.NUMATopology(
                cells=[self._cell(cell) for cell in (0, 1)]
            )._to_json()
        if number >= 3:
            found['pci_passthrough_devices'] = json.dumps(
                [self._device(slot) for slot in (1, 2)]
            )
        return found

    def _cell(self, number):
        cpus = set(range(number * 5, number * 5 + 5))
        return objects.NUMACell(
            id=number,
            cpuset=cpus,
            pcpuset=cpus,
            memory=4096,
            cpu_usage=0,
            memory_usage=0,
            pinned_cpus=set(),
            siblings=[{cpu} for cpu in cpus],
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=4, total=4096 * 256, used=0, reserved=0
                )
            ],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False
            ),
            socket=number,
        )

    def _device(self, slot):
        return {
            'address': f'0000:0{slot}:00.0',
            'product_id': '1533',
            'vendor_id': '8086',
            'status': 'available',
            'dev_type': 'type-PCI',
            'parent_addr': None,
            'numa_node': 0,
            'label': 'label',
            'dev_id': f'pci_0000_0{slot}_00_0',
        }

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        if self._number(nodename) == 1:
            inventory = provider_tree.data(nodename).inventory
            provider_tree.update_inventory(
                nodename,
                {**inventory, 'PCPU': {**inventory['VCPU'], 'total': 6}},
            )


def name_devices(test):
    """Let flavors ask for the devices by the alias ``nic``.

    :param test: before its ``setUp``
    """
    test.flags(
        device_spec=[json.dumps({'vendor_id': '8086'})],
        alias=[
            json.dumps(
                {
                    'vendor_id': '8086',
                    'product_id': '1533',
                    'device_type': 'type-PCI',
                    'name': 'nic',
                }
            )
        ],
        group='pci',
    )
