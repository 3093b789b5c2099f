# SPDX-License-Identifier: Apache-2.0

import itertools
import unittest

import ddt
from nova import objects
import nova.conf
from nova.objects import fields
from nova.objects import image_meta
from nova.scheduler import request_filter
import os_traits

from nova_ext_sched.policy import image_metadata

KNOWN = set(os_traits.get_traits())


def theirs(properties):
    """Return the traits that nova's own request filter requires."""
    spec = objects.RequestSpec(
        image=objects.ImageMeta.from_dict({'properties': properties})
    )
    nova.conf.CONF.set_override(
        'image_metadata_prefilter', True, group='scheduler'
    )
    try:
        request_filter.transform_image_metadata(None, spec)
    finally:
        nova.conf.CONF.clear_override(
            'image_metadata_prefilter', group='scheduler'
        )
    return spec.root_required


def values(name):
    """Yield the values that nova takes for a property, however written."""
    valid = image_meta.ImageMetaProps.fields[name]._type._valid_values
    spellings = {
        'hw_architecture': ('i386', 'i486', 'i586', 'x86_32', 'x86_32p'),
        'hw_vif_model': tuple(fields.VIFModel.LEGACY_VALUES),
    }
    spellings['hw_architecture'] += ('amd64',)
    spellings['hw_emulation_architecture'] = spellings['hw_architecture']
    for value in (*valid, *spellings.get(name, ())):
        yield value
        if name in spellings:
            yield value.upper()


@ddt.ddt
class ImageMetadataTest(unittest.TestCase):
    def assertAsNova(self, properties):
        found, unknown = image_metadata.traits(properties, KNOWN)
        self.assertEqual(theirs(properties), set(found), properties)
        return found, unknown

    @ddt.data(*image_metadata._PREFIXES)
    def test_every_value_of_nova(self, name):
        checked = list(values(name))
        self.assertGreater(len(checked), 2)
        for value in checked:
            found, unknown = self.assertAsNova({name: value})
            self.assertEqual(1, len(found) + len(unknown))

    def test_every_value_under_old_names(self):
        for value in values('hw_architecture'):
            self.assertAsNova({'architecture': value})
        for value in ('ide', *fields.SCSIModel.ALL, 'lsiLogicsas', ''):
            self.assertAsNova({'vmware_adaptertype': value})

    def test_every_old_name(self):
        self.assertEqual(
            {
                old: new
                for old, new in (
                    image_meta.ImageMetaProps._legacy_property_map.items()
                )
                if new in image_metadata._PREFIXES
            },
            image_metadata._OLD_NAMES,
        )

    def test_names_of_today_come_first(self):
        for properties in (
            {'architecture': 'i386', 'hw_architecture': 'amd64'},
            {'vmware_adaptertype': 'ide', 'hw_disk_bus': 'virtio'},
        ):
            for order in itertools.permutations(properties.items()):
                found, _ = self.assertAsNova(dict(order))
                self.assertEqual(1, len(found))

    def test_properties_together(self):
        found, unknown = self.assertAsNova(
            {
                'hw_disk_bus': 'scsi',
                'hw_cdrom_bus': 'scsi',
                'hw_vif_model': 'VirtualE1000',
                'architecture': 'amd64',
                'trait:CUSTOM_X': 'required',
                'hw_cpu_policy': 'dedicated',
            }
        )
        self.assertEqual(
            {
                'COMPUTE_STORAGE_BUS_SCSI',
                'COMPUTE_NET_VIF_MODEL_E1000',
                'HW_ARCH_X86_64',
            },
            set(found),
        )
        self.assertEqual([], unknown)

    def test_unknown_trait(self):
        """nova requires none of the others either."""
        properties = {'hw_disk_bus': 'virtio', 'hw_viommu_model': 'intel'}
        found, (unknown,) = self.assertAsNova(properties)
        self.assertEqual({}, found)
        self.assertIn('image hw_viommu_model=intel', unknown)
        self.assertIn('no trait COMPUTE_VIOMMU_INTEL', unknown)

    @ddt.data(*image_meta.ImageMetaProps.fields)
    def test_properties_that_nova_keeps_with_the_server(self, name):
        self.assertIs(
            name != 'traits_required', image_metadata.is_of_nova(name)
        )

    def test_properties_that_are_read_from_glance(self):
        for name in ('trait:CUSTOM_X', 'reservation:1', 'name'):
            self.assertFalse(image_metadata.is_of_nova(name))
