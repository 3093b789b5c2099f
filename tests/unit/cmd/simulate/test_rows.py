# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
from nova import objects

from nova_ext_sched.cmd.simulate import rows

objects.register_all()

REPORTED = {'total': 8, 'max_unit': 8, 'reserved': 0, 'allocation_ratio': 4.0}


def make_node(**changes):
    return objects.ComputeNode(
        **{
            'vcpus': 8,
            'vcpus_used': 1,
            'memory_mb': 1024,
            'memory_mb_used': 512,
            'free_ram_mb': 512,
            'local_gb': 100,
            'local_gb_used': 10,
            'free_disk_gb': 90,
            'disk_available_least': None,
            'stats': {},
            **changes,
        }
    )


@ddt.ddt
class InventoryTest(unittest.TestCase):
    @ddt.data(
        (REPORTED, {}, REPORTED),
        # Of a smaller host, nobody may have more than it has.
        (REPORTED, {'total': 2}, {**REPORTED, 'total': 2, 'max_unit': 2}),
        (
            REPORTED,
            {'total': 2, 'max_unit': 1},
            {**REPORTED, 'total': 2, 'max_unit': 1},
        ),
        (REPORTED, {'reserved': 3}, {**REPORTED, 'reserved': 3}),
        # nova-compute does not report it.
        ({}, {}, {'total': 1}),
        ({}, {'step_size': 2}, {'total': 1, 'step_size': 2}),
        ({}, {'total': 5}, {'total': 5, 'max_unit': 5}),
    )
    @ddt.unpack
    def test_inventory(self, reported, given, inventory):
        self.assertEqual(inventory, rows._inventory(reported, given))


@ddt.ddt
class ChangeTest(unittest.TestCase):
    @ddt.data(
        ({}, {'stats': {'num_instances': '1'}}),
        ({'VCPU': 2}, {'vcpus_used': 3}),
        ({'VCPU': 2, 'PCPU': 3}, {'vcpus_used': 6}),
        ({'MEMORY_MB': 600}, {'memory_mb_used': 1112, 'free_ram_mb': -88}),
        ({'DISK_GB': 5}, {'local_gb_used': 15, 'free_disk_gb': 85}),
        # The record has nothing of it.
        ({'CUSTOM_LICENCE': 1}, {}),
    )
    @ddt.unpack
    def test_one_more_and_one_less(self, used, changed):
        before, node = make_node(), make_node()
        rows._change(node, used, 1)
        wanted = make_node(**{'stats': {'num_instances': '1'}, **changed})
        self.assertEqual(wanted.obj_to_primitive(), node.obj_to_primitive())
        rows._change(node, used, -1)
        before.stats = {'num_instances': '0'}
        self.assertEqual(before.obj_to_primitive(), node.obj_to_primitive())

    def test_what_is_known_else(self):
        node = make_node(
            disk_available_least=50,
            stats={'num_instances': '4', 'io_workload': '1'},
        )
        rows._change(node, {'DISK_GB': 60}, 1)
        self.assertEqual(-10, node.disk_available_least)
        self.assertEqual(
            {'num_instances': '5', 'io_workload': '1'}, node.stats
        )
        rows._change(node, {'DISK_GB': 60}, -1)
        self.assertEqual(50, node.disk_available_least)
