# SPDX-License-Identifier: Apache-2.0

"""What nova-scheduler derives from ``hw:`` extra specs and image properties.

Follows nova.scheduler.utils.ResourceRequest and nova.scheduler.request_filter
for a workstation that has no nova:

==================================  =========================================
extra spec (or image property)      what placement is asked for
==================================  =========================================
``hw:cpu_policy=dedicated``         PCPU in place of VCPU, one more with
                                    ``hw:emulator_threads_policy=isolate``
``hw:cpu_thread_policy``            trait HW_CPU_HYPERTHREADING: ``require``
                                    requires it, ``isolate`` forbids it
``os:secure_boot=required``         trait COMPUTE_SECURITY_UEFI_SECURE_BOOT
``hw:maxphysaddr_mode``             trait COMPUTE_ADDRESS_SPACE_PASSTHROUGH
                                    or COMPUTE_ADDRESS_SPACE_EMULATED
``hw:pci_numa_affinity_policy=``    trait COMPUTE_SOCKET_PCI_NUMA_AFFINITY
``socket``
``hw:tpm_version``                  traits of its version and model
image ``hw_firmware_stateless``     trait COMPUTE_SECURITY_STATELESS_FIRMWARE
with ``hw_firmware_type=uefi``
``hw:virtio_packed_ring`` true      trait COMPUTE_NET_VIRTIO_PACKED of the
                                    root provider
==================================  =========================================

An image property is the extra spec's name with ``_`` for the colon; where
both stand the flavor's is taken, because nova-api refuses those that differ.
What nova derives beyond that is reported in ``unknown``, never guessed.
"""

from collections.abc import Mapping
import dataclasses

from oslo_utils import strutils

_VALUE_TRAITS = {
    ('os:secure_boot', 'required'): 'COMPUTE_SECURITY_UEFI_SECURE_BOOT',
    (
        'hw:maxphysaddr_mode',
        'passthrough',
    ): 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH',
    ('hw:maxphysaddr_mode', 'emulate'): 'COMPUTE_ADDRESS_SPACE_EMULATED',
    (
        'hw:pci_numa_affinity_policy',
        'socket',
    ): 'COMPUTE_SOCKET_PCI_NUMA_AFFINITY',
}
_TPM_VERSION_TRAITS = {
    '1.2': 'COMPUTE_SECURITY_TPM_1_2',
    '2.0': 'COMPUTE_SECURITY_TPM_2_0',
}
_TPM_MODEL_TRAITS = {
    'tpm-tis': 'COMPUTE_SECURITY_TPM_TIS',
    'tpm-crb': 'COMPUTE_SECURITY_TPM_CRB',
}
_HYPERTHREADING = 'trait:HW_CPU_HYPERTHREADING'
_THREAD_POLICIES = {'require': 'required', 'isolate': 'forbidden'}

# What takes nova, Neutron or Cyborg to translate, or differs by release.
_UNKNOWN = {
    'accel:device_profile': 'the request groups of its device profile',
    'hw:ephemeral_encryption': 'traits of ephemeral encryption',
    'hw:mem_encryption': 'MEM_ENCRYPTION_CONTEXT and a trait',
    'hw:pmem': 'PMEM namespaces',
    'hw:sound_model': 'COMPUTE_SOUND_MODEL_VIRTIO',
    'hw:tpm_version': 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_* (nova 34)',
    'pci_passthrough:alias': 'PCI devices',
}


@dataclasses.dataclass
class Derived:
    """What is added to the flavor's own extra specs.

    :ivar specs: in the form of extra specs that name resources and traits;
        they replace the flavor's of the same key
    :ivar root_required: traits that the root provider must have
    :ivar sources: by trait, the extra spec or property that it comes from
    :ivar unknown: what nova derives besides, a sentence each
    """

    specs: dict[str, str] = dataclasses.field(default_factory=dict)
    root_required: set[str] = dataclasses.field(default_factory=set)
    sources: dict[str, str] = dataclasses.field(default_factory=dict)
    unknown: list[str] = dataclasses.field(default_factory=list)

    def require(self, trait: str, source: str) -> None:
        """Require a trait of the group without a suffix."""
        self.specs[f'trait:{trait}'] = 'required'
        self.sources[trait] = source


def is_pinned(
    extra_specs: Mapping[str, str], image_properties: Mapping[str, str]
) -> bool:
    """Return whether the CPUs are dedicated ones."""
    return _wanted('hw:cpu_policy', extra_specs, image_properties) == (
        'dedicated'
    )


def derive(
    vcpus: int,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
    pinning: bool = True,
) -> Derived:
    """Return what nova-scheduler adds for a flavor and an image.

    :param vcpus: of the flavor
    :param pinning: whether the CPU policies are translated; nova asks a
        second time without, for compute nodes that do not report PCPU
    """
    derived = Derived()

    def wanted(key: str) -> str | None:
        return _wanted(key, extra_specs, image_properties)

    for (key, value), trait in _VALUE_TRAITS.items():
        if wanted(key) == value:
            derived.require(trait, f'{key}={value}')
    if version := wanted('hw:tpm_version'):
        model = wanted('hw:tpm_model') or 'tpm-tis'
        for name, traits in (
            (version, _TPM_VERSION_TRAITS),
            (model, _TPM_MODEL_TRAITS),
        ):
            if name in traits:
                derived.require(traits[name], f'hw:tpm_version={version}')
    if image_properties.get('hw_firmware_type') == 'uefi' and _is_true(
        image_properties.get('hw_firmware_stateless')
    ):
        derived.require(
            'COMPUTE_SECURITY_STATELESS_FIRMWARE', 'hw_firmware_stateless'
        )
    if _is_true(wanted('hw:virtio_packed_ring')):
        derived.root_required.add('COMPUTE_NET_VIRTIO_PACKED')
        derived.sources['COMPUTE_NET_VIRTIO_PACKED'] = 'hw:virtio_packed_ring'
    if pinning:
        _pin(derived, vcpus, extra_specs, image_properties)
    for key, what in _UNKNOWN.items():
        if wanted(key):
            derived.unknown.append(
                f'what nova derives from {key}={wanted(key)}: {what}'
            )
    return derived


def _pin(
    derived: Derived,
    vcpus: int,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
) -> None:
    policy = _wanted('hw:cpu_policy', extra_specs, image_properties)
    if policy == 'dedicated':
        isolated = extra_specs.get('hw:emulator_threads_policy') == 'isolate'
        derived.specs['resources:PCPU'] = str(vcpus + isolated)
    elif policy == 'mixed':
        derived.unknown.append(
            'what nova derives from hw:cpu_policy=mixed: PCPU in place of '
            'some VCPU'
        )
    threads = _wanted('hw:cpu_thread_policy', extra_specs, image_properties)
    if threads in _THREAD_POLICIES:
        derived.specs[_HYPERTHREADING] = _THREAD_POLICIES[threads]
        derived.sources['HW_CPU_HYPERTHREADING'] = (
            f'hw:cpu_thread_policy={threads}'
        )


def _wanted(
    key: str,
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str],
) -> str | None:
    return extra_specs.get(key) or image_properties.get(
        key.replace(':', '_', 1)
    )


def _is_true(value: str | None) -> bool:
    return value is not None and strutils.bool_from_string(value)
