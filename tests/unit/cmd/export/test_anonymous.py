# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.cmd.export import anonymous
from nova_ext_sched.cmd.export import unsaid

DOCUMENT = {
    'nova_conf': {
        'nova_ext_sched': {
            'placement_req_required_member_prefix': ['reservation:'],
            'failure_domain_key': 'rack',
            'forbid_by_trait': ['CUSTOM_GOLD_*', 'CUSTOM_ACME'],
        },
        'filter_scheduler': {'isolated_hosts': ['kiev']},
    },
    'projects': ['acme-corp'],
    'hosts': [
        {'name': 'kiev', 'traits': ['CUSTOM_GOLD_1', 'HW_CPU_X86_AVX']},
        {
            'name': 'oslo',
            'inventories': {'VCPU': {}, 'CUSTOM_FPGA': {}},
            'used': {'CUSTOM_FPGA': 1},
        },
    ],
    'aggregates': {
        'gold-hosts': {'hosts': ['kiev'], 'availability_zone': 'north'}
    },
    'flavors': {'m1.gold': {}},
    'images': {},
    'server_groups': {'web': {'project': 'acme-corp', 'uuid': 'u'}},
    'servers': {'one': {'host': 'oslo', 'flavor': 'm1.gold'}},
    'steps': [
        {
            'boot': 'one',
            'flavor': 'm1.gold',
            'availability_zone': 'north:kiev',
            'expect': ['oslo', 'kiev'],
        }
    ],
}


def rename_item(part, item):
    """Return what becomes of ``key=value`` of the only one of a part."""
    items = {
        'aggregates': 'metadata',
        'flavors': 'extra_specs',
        'images': 'properties',
    }[part]
    [name] = DOCUMENT[part] or ['i']
    key, _, value = item.partition('=')
    data = {**DOCUMENT, part: {name: {items: {key: value}}}}
    [found] = anonymous.rename(data, unsaid.Unsaid())[0][part].values()
    [(key, value)] = found[items].items()
    return f'{key}={value}'


@ddt.ddt
class RenameTest(unittest.TestCase):
    def test_names_are_the_same_everywhere(self):
        found, _ = anonymous.rename(DOCUMENT, unsaid.Unsaid())
        self.assertEqual(
            {
                'nova_conf': {
                    'nova_ext_sched': {
                        'placement_req_required_member_prefix': [
                            'reservation:'
                        ],
                        'failure_domain_key': 'rack',
                        'forbid_by_trait': [
                            'CUSTOM_TRAIT_1',
                            'CUSTOM_TRAIT_2',
                        ],
                    },
                    'filter_scheduler': {'isolated_hosts': ['host-1']},
                },
                'projects': ['project-1'],
                'hosts': [
                    {
                        'name': 'host-1',
                        'traits': ['CUSTOM_TRAIT_1', 'HW_CPU_X86_AVX'],
                    },
                    {
                        'name': 'host-2',
                        'inventories': {'VCPU': {}, 'CUSTOM_CLASS_1': {}},
                        'used': {'CUSTOM_CLASS_1': 1},
                    },
                ],
                'aggregates': {
                    'aggregate-1': {
                        'hosts': ['host-1'],
                        'availability_zone': 'zone-1',
                    }
                },
                'flavors': {'flavor-1': {}},
                'images': {},
                'server_groups': {'group-1': {'project': 'project-1'}},
                'servers': {
                    'server-1': {'host': 'host-2', 'flavor': 'flavor-1'}
                },
                'steps': [
                    {
                        'boot': 'server-1',
                        'flavor': 'flavor-1',
                        'availability_zone': 'zone-1:host-1',
                        'expect': ['host-2', 'host-1'],
                    }
                ],
            },
            found,
        )

    def test_default_zone(self):
        """It is a zone, though no aggregate has it."""
        options = {'default_availability_zone': 'kiev-1'}
        data = {
            **DOCUMENT,
            'nova_conf': {'DEFAULT': options},
            'steps': [{'boot': 'one', 'availability_zone': 'kiev-1:kiev'}],
        }
        found, words = anonymous.rename(data, unsaid.Unsaid())
        zone = words['kiev-1']
        self.assertEqual(
            {'DEFAULT': {'default_availability_zone': zone}},
            found['nova_conf'],
        )
        self.assertEqual(
            f'{zone}:host-1', found['steps'][0]['availability_zone']
        )

    def test_an_image_that_is_called_image(self):
        sources = {'nova_ext_sched': {'member_sources': ['flavor', 'image']}}
        data = {
            **DOCUMENT,
            'nova_conf': sources,
            'images': {'image': {}},
            'flavors': {'flavor': {}},
        }
        found, words = anonymous.rename(data, unsaid.Unsaid())
        self.assertEqual(sources, found['nova_conf'])
        self.assertEqual({'image-1': {}}, found['images'])
        self.assertEqual('flavor-1', words['flavor'])

    @ddt.unpack
    @ddt.data(
        ('trait:CUSTOM_GOLD_1=required', 'trait:CUSTOM_TRAIT_1=required'),
        ('reservation:secret=true', 'reservation:reserved-1=true'),
        ('rack=kiev-r1', 'rack=value-1'),
        ('filter_tenant_id=acme-corp,x', 'filter_tenant_id=project-1,value-1'),
        ('filter_tenant_id2=x', 'filter_tenant_id2=value-1'),
        ('acme-corp=blazar:project', 'project-1=value-1'),
        ('storage=<or> 1 <or> nvme', 'key-1=<or> 1 <or> value-1'),
        ('storage=s== nvme', 'key-1=s== value-1'),
        ('storage=<in> nvme kiev', 'key-1=<in> nvme host-1'),
        ('storage=~', 'key-1=~'),
        ('acme:tier=gold', 'scope-1:key-1=value-1'),
        ('force_metadata_check=true', 'force_metadata_check=true'),
        ('instance_type=m1.gold', 'instance_type=flavor-1'),
    )
    def test_metadata(self, item, expected):
        self.assertEqual(expected, rename_item('aggregates', item))

    @ddt.unpack
    @ddt.data(
        ('hw:cpu_policy=dedicated', 'hw:cpu_policy=dedicated'),
        ('resources:CUSTOM_FPGA=1', 'resources:CUSTOM_CLASS_1=1'),
        ('trait1:CUSTOM_X=required', 'trait1:CUSTOM_TRAIT_3=required'),
        (
            'aggregate_instance_extra_specs:storage=nvme',
            'aggregate_instance_extra_specs:key-1=value-1',
        ),
    )
    def test_extra_specs(self, item, expected):
        self.assertEqual(expected, rename_item('flavors', item))

    def test_property_that_nova_knows(self):
        item = 'os_distro=ubuntu'
        self.assertEqual(item, rename_item('images', item))

    def test_hints(self):
        gone = '1d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'
        hints = {
            'same_host': ['one', gone],
            'query': '["=","$host","kiev"]',
            'cidr': '/24',
            'mine': 'secret',
        }
        data = {**DOCUMENT, 'steps': [{'boot': 'one', 'hints': hints}]}
        counts = unsaid.Unsaid()
        [step] = anonymous.rename(data, counts)[0]['steps']
        (known, other) = step['hints'].pop('same_host')
        self.assertEqual('server-1', known)
        self.assertRegex(other, '^[0-9a-f-]{36}$')
        self.assertNotEqual(gone, other)
        self.assertEqual(
            {'query': '["=","$host","host-1"]', 'key-1': 'value-1'},
            step['hints'],
        )
        self.assertIn('1 scheduler hint with an address', [*counts])
