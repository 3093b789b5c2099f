# SPDX-License-Identifier: Apache-2.0

import unittest

from nova import objects

from nova_ext_sched.cmd.export import flavors

objects.register_all()


def flavor(name='small', flavorid='1', **fields):
    return objects.Flavor(
        **{
            'name': name,
            'flavorid': flavorid,
            'vcpus': 1,
            'memory_mb': 512,
            'root_gb': 1,
            'ephemeral_gb': 0,
            'swap': 0,
            'extra_specs': {},
            **fields,
        }
    )


class FlavorsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.flavors = flavors.Flavors()

    def test_what_a_scenario_has_by_default_is_left_out(self):
        self.flavors.name(flavor())
        self.flavors.name(
            flavor(
                'all',
                root_gb=0,
                ephemeral_gb=2,
                swap=3,
                extra_specs={'a': 'b'},
            )
        )
        self.assertEqual(
            {
                'small': {'vcpus': 1, 'memory_mb': 512, 'disk_gb': 1},
                'all': {
                    'vcpus': 1,
                    'memory_mb': 512,
                    'disk_gb': 0,
                    'ephemeral_gb': 2,
                    'swap_mb': 3,
                    'extra_specs': {'a': 'b'},
                },
            },
            self.flavors.documents,
        )

    def test_old_ones_of_a_name(self):
        """Servers keep flavors that have changed; equal ones are one."""
        names = [
            self.flavors.name(flavor(vcpus=vcpus)) for vcpus in (1, 2, 3, 2, 1)
        ]
        self.assertEqual(
            ['small', 'small #2', 'small #3', 'small #2', 'small'], names
        )
        self.assertEqual(
            [1, 2, 3],
            [one['vcpus'] for one in self.flavors.documents.values()],
        )

    def test_name_that_a_scenario_does_not_take(self):
        self.assertEqual('1', self.flavors.name(flavor('a{1..3}')))
        self.assertEqual('1 #2', self.flavors.name(flavor('a{1..3}', vcpus=2)))
