# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import hypothesis
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.scheduler import utils

from nova_ext_sched.policy import derived_specs
from nova_ext_sched.policy import extra_specs

objects.register_all()

# Values that nova-api accepts in a flavor, and in an image.
FLAVOR = {
    'hw:cpu_policy': ['shared', 'dedicated'],
    'hw:emulator_threads_policy': ['share', 'isolate'],
    'hw:cpu_thread_policy': ['prefer', 'isolate', 'require'],
    'os:secure_boot': ['disabled', 'optional', 'required'],
    'hw:maxphysaddr_mode': ['passthrough', 'emulate'],
    'hw:pci_numa_affinity_policy': ['legacy', 'preferred', 'socket'],
    'hw:tpm_version': ['1.2', '2.0'],
    'trait:HW_CPU_X86_VMX': ['required', 'forbidden'],
    'resources:VCPU': ['0', '3'],
    'resources:MEMORY_MB': ['0', '77'],
    'resources1:VGPU': ['1'],
    'trait1:CUSTOM_GPU': ['required', 'forbidden'],
}
IMAGE = {
    'hw_cpu_policy': ['shared', 'dedicated'],
    'hw_cpu_thread_policy': ['prefer', 'isolate', 'require'],
    'os_secure_boot': ['disabled', 'optional', 'required'],
    'hw_maxphysaddr_mode': ['passthrough', 'emulate'],
    'hw_pci_numa_affinity_policy': ['legacy', 'preferred', 'socket'],
    'hw_tpm_version': ['1.2', '2.0'],
    'hw_tpm_model': ['tpm-tis', 'tpm-crb'],
    'hw_firmware_type': ['bios', 'uefi'],
    'hw_firmware_stateless': ['true', 'false'],
    'trait:CUSTOM_IMAGE': ['required'],
}


def some_of(values):
    return st.fixed_dictionaries(
        {}, optional={k: st.sampled_from(v) for k, v in values.items()}
    )


def of_nova(specs, properties, pinning, is_bfv):
    """What nova asks: by suffix resources, required and forbidden traits."""
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name='f',
            vcpus=4,
            memory_mb=512,
            root_gb=10,
            ephemeral_gb=5,
            swap=1500,
            extra_specs=specs,
        ),
        image=objects.ImageMeta.from_dict(
            {'name': 'i', 'properties': properties}
        ),
        is_bfv=is_bfv,
    )
    found = utils.ResourceRequest.from_request_spec(spec, pinning)
    return {
        suffix or '': (
            group.resources,
            group.required_traits,
            group.forbidden_traits,
        )
        for suffix, group in found._rg_by_id.items()
    }


def of_ours(specs, properties, pinning, is_bfv):
    derived = derived_specs.derive(4, specs, properties, pinning)
    wanted = extra_specs.read(
        {**specs, **derived.specs},
        properties,
        extra_specs.own_resources(4, 512, 10, 5, 1500, is_bfv),
    )
    return {
        suffix: (
            group.resources,
            group.required_traits,
            group.forbidden_traits,
        )
        for suffix, group in wanted.groups.items()
    }


@ddt.ddt
class DeriveTest(unittest.TestCase):
    maxDiff = None

    @settings(max_examples=300, deadline=None)
    @given(some_of(FLAVOR), some_of(IMAGE), st.booleans(), st.booleans())
    def test_is_what_nova_derives(self, specs, image, pinning, is_bfv):
        try:
            nova = of_nova(specs, image, pinning, is_bfv)
        except exception.NovaException:
            # nova-api refuses the combination.
            hypothesis.reject()
        self.assertEqual(nova, of_ours(specs, image, pinning, is_bfv))

    @ddt.data(*[(k, v) for k, values in FLAVOR.items() for v in values])
    @ddt.unpack
    def test_each_extra_spec_alone(self, key, value):
        specs = {key: value}
        self.assertEqual(
            of_nova(specs, {}, True, False), of_ours(specs, {}, True, False)
        )

    def test_dedicated(self):
        derived = derived_specs.derive(
            4, {'hw:cpu_policy': 'dedicated'}, {'hw_cpu_policy': 'dedicated'}
        )
        self.assertEqual({'resources:PCPU': '4'}, derived.specs)

    def test_root_trait(self):
        derived = derived_specs.derive(1, {'hw:virtio_packed_ring': 'yes'}, {})
        self.assertEqual({'COMPUTE_NET_VIRTIO_PACKED'}, derived.root_required)

    def test_source_is_named(self):
        derived = derived_specs.derive(1, {}, {'os_secure_boot': 'required'})
        self.assertEqual(
            {'COMPUTE_SECURITY_UEFI_SECURE_BOOT': 'os:secure_boot=required'},
            derived.sources,
        )

    @ddt.data(
        'accel:device_profile',
        'hw:mem_encryption',
        'hw:pmem',
        'pci_passthrough:alias',
    )
    def test_what_is_not_mirrored_is_said(self, key):
        derived = derived_specs.derive(1, {key: 'x'}, {})
        (sentence,) = derived.unknown
        self.assertIn(f'{key}=x', sentence)
        self.assertEqual({}, derived.specs)

    def test_mixed_is_said(self):
        derived = derived_specs.derive(4, {'hw:cpu_policy': 'mixed'}, {})
        self.assertIn('hw:cpu_policy=mixed', derived.unknown[0])

    def test_pinned(self):
        dedicated = {'hw:cpu_policy': 'dedicated'}
        self.assertTrue(derived_specs.is_pinned(dedicated, {}))
        self.assertTrue(
            derived_specs.is_pinned({}, {'hw_cpu_policy': 'dedicated'})
        )
        self.assertFalse(
            derived_specs.is_pinned({'hw:cpu_policy': 'shared'}, {})
        )
        self.assertFalse(derived_specs.is_pinned({}, {}))
