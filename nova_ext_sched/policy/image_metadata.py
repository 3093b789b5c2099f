# SPDX-License-Identifier: Apache-2.0

"""Traits that nova derives from the properties of an image.

Follows nova's request filter transform_image_metadata, and
nova.objects.ImageMetaProps for the properties that it sees: names of old
releases are read as those of today, which come before them, and some values
have several spellings.
"""

from collections.abc import Collection
from collections.abc import Mapping

_PREFIXES = {
    'hw_cdrom_bus': 'COMPUTE_STORAGE_BUS',
    'hw_disk_bus': 'COMPUTE_STORAGE_BUS',
    'hw_video_model': 'COMPUTE_GRAPHICS_MODEL',
    'hw_vif_model': 'COMPUTE_NET_VIF_MODEL',
    'hw_architecture': 'HW_ARCH',
    'hw_emulation_architecture': 'COMPUTE_ARCH',
    'hw_viommu_model': 'COMPUTE_VIOMMU',
}

_OLD_NAMES = {'architecture': 'hw_architecture'}

_ARCHITECTURES = {
    'i386': 'i686',
    'i486': 'i686',
    'i586': 'i686',
    'x86_32': 'i686',
    'x86_32p': 'i686',
    'amd64': 'x86_64',
}
_SPELLINGS = {
    'hw_architecture': _ARCHITECTURES,
    'hw_emulation_architecture': _ARCHITECTURES,
    'hw_vif_model': {
        'virtuale1000': 'e1000',
        'virtuale1000e': 'e1000e',
        'virtualpcnet32': 'pcnet',
        'virtualsriovethernetcard': 'sriov',
        'virtualvmxnet': 'vmxnet',
        'virtualvmxnet3': 'vmxnet3',
    },
}


def is_of_nova(name: str) -> bool:
    """Return whether nova keeps a property of an image with the server.

    And shows it there; traits it keeps and does not show.
    """
    return name.startswith(('hw_', 'img_', 'os_')) or name in _OLD_NAMES


def traits(
    properties: Mapping[str, str], known: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the traits that ``image_metadata_prefilter`` requires.

    :param properties: of the image
    :param known: the traits that placement knows
    :returns: by trait, the property that it comes from; and what is not
        known, a sentence each
    """
    found = {
        f'{_PREFIXES[name]}_{value.replace("-", "_").upper()}': (name, value)
        for name, value in _normal(properties).items()
    }
    unknown = [
        f'what nova derives from image {name}={value}: placement knows no '
        f'trait {trait}; where nova knows none either, '
        'image_metadata_prefilter requires no trait at all'
        for trait, (name, value) in found.items()
        if trait not in known
    ]
    if unknown:
        return {}, unknown
    return {trait: name for trait, (name, _) in found.items()}, []


def _normal(properties: Mapping[str, str]) -> dict[str, str]:
    wanted = {
        new: properties[old]
        for old, new in _OLD_NAMES.items()
        if old in properties
    }
    if adapter := properties.get('vmware_adaptertype'):
        wanted['hw_disk_bus'] = 'ide' if adapter == 'ide' else 'scsi'
    wanted |= {
        name: properties[name] for name in _PREFIXES if name in properties
    }
    return {
        name: _SPELLINGS.get(name, {}).get(value.lower(), value)
        for name, value in wanted.items()
        if value
    }
