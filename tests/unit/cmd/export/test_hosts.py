# SPDX-License-Identifier: Apache-2.0

"""What records and providers become; tests/functional reads real ones."""

import types
from unittest import mock

import ddt
from nova import objects
import testtools

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.export import hosts
from nova_ext_sched.cmd.export import unsaid

objects.register_all()

INVENTORY = {
    'total': 8,
    'reserved': 0,
    'allocation_ratio': 2.0,
    'min_unit': 1,
    'max_unit': 8,
    'step_size': 1,
}
#: What the record of such a provider without servers has.
RECORD = {
    'vcpus': 8,
    'vcpus_used': 0,
    'memory_mb': 0,
    'memory_mb_used': 0,
    'free_ram_mb': 0,
    'local_gb': 0,
    'local_gb_used': 0,
    'free_disk_gb': 0,
    'disk_available_least': None,
    'cpu_allocation_ratio': 2.0,
    'ram_allocation_ratio': 1.0,
    'disk_allocation_ratio': 1.0,
    'hypervisor_type': 'QEMU',
    'hypervisor_version': 8,
    'supported_hv_specs': [],
    'numa_topology': None,
    'pci_device_pools': None,
    'metrics': '[]',
    'stats': None,
}
#: What is always said of one.
SAID = {
    'hypervisor_type': 'QEMU',
    'hypervisor_version': 8,
    'supported_instances': [],
}


class Placement:
    """Answers as placement does, for providers that are all alike."""

    refusal = '400 no'

    def __init__(self, providers, **parts):
        self._answers = {'resource_providers': providers, **parts}

    def get(self, path, version):
        name = path.rpartition('/')[2]
        answer = self._answers[name]
        return types.SimpleNamespace(
            status_code=400 if answer is None else 200,
            json=lambda: {name: answer},
        )


def node(host='a', uuid='u1', **fields):
    return objects.ComputeNode(host=host, uuid=uuid, **{**RECORD, **fields})


def provider(uuid='u1', parent=None):
    return {'uuid': uuid, 'parent_provider_uuid': parent}


@ddt.ddt
class HostsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.unsaid = unsaid.Unsaid()
        is_up = mock.patch.object(
            hosts.servicegroup.API,
            'service_is_up',
            lambda _, service: service.report_count > 0,
        )
        is_up.start()
        self.addCleanup(is_up.stop)

    def read(
        self,
        *nodes,
        providers=None,
        services=None,
        standing=None,
        disabled=False,
        **parts,
    ):
        if services is None:
            services = [
                objects.Service(host=one.host, disabled=False, report_count=1)
                for one in nodes
            ]
        if providers is None:
            providers = [provider(one.uuid) for one in nodes]
        parts = {
            'inventories': {'VCPU': INVENTORY},
            'usages': {'VCPU': 0},
            'traits': [],
            **parts,
        }
        scheduler = mock.Mock(
            cells={'c': objects.CellMapping(disabled=disabled)},
            hosts={one.uuid: None for one in nodes},
            placement=Placement(providers, **parts),
        )
        scheduler.ask_cells.return_value = {'c': (services, nodes)}
        self.counted = mock.Mock()
        return hosts.read(scheduler, self.unsaid, standing or {}, self.counted)

    def test_what_follows_from_the_provider_is_left_out(self):
        [found] = self.read(node())
        self.assertEqual(
            {
                'name': 'a',
                'inventories': {
                    'VCPU': {
                        'total': 8,
                        'allocation_ratio': 2.0,
                        'max_unit': 8,
                    }
                },
                'compute_node': SAID,
            },
            found,
        )
        self.assertEqual([], [*self.unsaid])
        self.counted.assert_called_once_with()

    @ddt.data(
        ('reserved', 1),
        ('min_unit', 2),
        ('step_size', 2),
        ('max_unit', 1),
        ('total', 9),
    )
    @ddt.unpack
    def test_limit(self, name, value):
        given = {'VCPU': {**INVENTORY, name: value}}
        [found] = self.read(node(), inventories=given)
        self.assertEqual(value, found['inventories']['VCPU'][name])

    @ddt.data(
        ({}, {}),
        # What placement says of others is what nova-compute counts.
        ({'vcpus_used': 3}, {}),
        ({'vcpus_used': 4}, {'vcpus_used': 4}),
        ({'memory_mb': 5}, {'memory_mb': 5}),
        ({'free_ram_mb': -5}, {'free_ram_mb': -5}),
        ({'disk_available_least': 0}, {'disk_available_least': 0}),
        ({'cpu_allocation_ratio': 4.0}, {'cpu_allocation_ratio': 4.0}),
        ({'stats': {'num_instances': '2'}}, {'num_instances': 2}),
        ({'stats': {'io_workload': '1', 'other': 'x'}}, {'io_workload': 1}),
        ({'stats': {'failed_builds': '0'}}, {}),
        ({'stats': None}, {}),
        (
            {'supported_hv_specs': [('x86_64', 'kvm', 'hvm')]},
            {'supported_instances': [['x86_64', 'kvm', 'hvm']]},
        ),
    )
    @ddt.unpack
    def test_record(self, fields, said):
        fields = dict(fields)
        if specs := fields.get('supported_hv_specs'):
            fields['supported_hv_specs'] = [
                objects.HVSpec.from_list(one) for one in specs
            ]
        used = 3 if 'vcpus_used' in fields else 0
        [found] = self.read(node(**fields), usages={'VCPU': used})
        self.assertEqual({**SAID, **said}, found['compute_node'])
        self.assertEqual({'VCPU': 3} if used else None, found.get('used'))

    def test_servers_of_the_document_are_taken_from_what_is_used(self):
        servers = [{'VCPU': 2, 'DISK_GB': 5}, {'VCPU': 1}, {'CUSTOM_X': 9}]
        fields = {
            'vcpus_used': 5,
            'local_gb': 50,
            'local_gb_used': 5,
            'free_disk_gb': 45,
            'disk_available_least': 40,
            'disk_allocation_ratio': 2.0,
            'stats': {'num_instances': '4'},
        }
        inventories = {
            'VCPU': INVENTORY,
            'DISK_GB': {**INVENTORY, 'total': 50},
        }
        [found] = self.read(
            node(**fields),
            standing={'a': servers, 'b': servers},
            inventories=inventories,
            usages={'VCPU': 5, 'DISK_GB': 5, 'CUSTOM_X': 1},
        )
        # More than is used leaves nothing, not less than nothing.
        self.assertEqual({'VCPU': 2}, found['used'])
        self.assertEqual(
            {**SAID, 'disk_available_least': 45, 'num_instances': 1},
            found['compute_node'],
        )

    @ddt.data(
        (True, 1, False, 'disabled'),
        (True, 0, False, 'disabled'),
        (False, 0, False, 'down'),
        (False, 1, False, None),
        (False, 1, True, 'disabled'),
        (False, 0, True, 'disabled'),
    )
    @ddt.unpack
    def test_state(self, disabled, reports, cell, state):
        service = objects.Service(
            host='a', disabled=disabled, report_count=reports
        )
        [found] = self.read(node(), services=[service], disabled=cell)
        self.assertEqual(state, found.get('state'))

    @ddt.data(
        ({'providers': []}, 'host without a resource provider'),
        ({'services': []}, 'compute node beside another one of its host'),
    )
    @ddt.unpack
    def test_host_left_out(self, parts, line):
        self.assertEqual([], self.read(node(), **parts))
        self.assertEqual([f'1 {line}'], [*self.unsaid])

    def test_nodes_of_one_host(self):
        """ironic has many; a host of a scenario is one node."""
        found = self.read(node(), node(uuid='u2'), node('b', 'u3'))
        self.assertEqual(['a', 'b'], [one['name'] for one in found])
        self.assertEqual(
            ['1 compute node beside another one of its host'], [*self.unsaid]
        )

    def test_other_providers(self):
        self.read(
            node(),
            providers=[
                provider(),
                provider('child', 'u1'),
                provider('grandchild', 'child'),
                provider('storage'),
            ],
        )
        self.assertEqual(
            [
                '2 nested resource providers',
                '1 resource provider of no compute node',
            ],
            [*self.unsaid],
        )

    @ddt.data(
        ({'numa_topology': '{}'}, ['1 host with NUMA cells']),
        (
            {
                'pci_device_pools': objects.PciDevicePoolList(
                    objects=[objects.PciDevicePool()]
                )
            },
            ['1 host with PCI devices'],
        ),
        ({'pci_device_pools': objects.PciDevicePoolList(objects=[])}, []),
        ({'metrics': '[{"name": "x"}]'}, ['1 host with metrics']),
        ({'metrics': None}, []),
    )
    @ddt.unpack
    def test_what_a_scenario_cannot_say(self, fields, lines):
        self.read(node(**fields))
        self.assertEqual(lines, [*self.unsaid])

    @ddt.data('resource_providers', 'inventories', 'usages', 'traits')
    def test_placement_refuses(self, part):
        parts = {'providers': None}
        if part != 'resource_providers':
            parts = {part: None}
            self.assertEqual(1, len(self.read(node())))
        scheduler = mock.Mock(
            cells={'c': objects.CellMapping(disabled=False)},
            placement=Placement(
                **{
                    'providers': [provider()],
                    'inventories': {},
                    'usages': {},
                    'traits': [],
                    **parts,
                }
            ),
        )
        services = [objects.Service(host='a', disabled=False, report_count=1)]
        scheduler.ask_cells.return_value = {'c': (services, [node()])}
        exc = self.assertRaises(
            nova_scheduler.PlacementFailed,
            hosts.read,
            scheduler,
            self.unsaid,
            {},
            lambda: None,
        )
        self.assertIn(part, str(exc))
        self.assertIn('got: 400 no', str(exc))
