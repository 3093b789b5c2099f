# SPDX-License-Identifier: Apache-2.0

"""CPU features that nova compares before a live migration.

nova-compute of the destination asks its libvirt whether the host has what the
guest needs, and refuses the migration if it does not ("Unacceptable CPU
info"). A guest with a CPU model of its own is compared by that; any other by
the host that it is on. Only libvirt knows which features a model has: of a
guest's own, the features that it names are compared, and its vendor.
"""

import functools
import json
import typing

import nova.conf
from nova.objects import fields

from nova_ext_sched import messages

CONF = nova.conf.CONF

# nova's name of libvirt's hypervisor, and of guests that use the host's CPU.
_LIBVIRT, _KVM = 'QEMU', 'kvm'
# libvirt lets a guest have these, and go without.
_POLICIES = fields.CPUFeaturePolicy
_NEEDLESS = {_POLICIES.OPTIONAL, _POLICIES.DISABLE, _POLICIES.FORBID}


class Processor(typing.NamedTuple):
    """The compared part of a CPU; empty if it is unknown.

    :ivar features: names as of libvirt (``avx512f``)
    :ivar is_guest: whether it is a guest's own, not a host's
    """

    vendor: str
    features: frozenset[str]
    is_guest: bool = False


def read_guest(instance: typing.Any) -> Processor | None:
    """Read a guest's CPU; None if nova compares its host instead.

    :param instance: the nova Instance
    """
    model = instance.vcpu_model
    if model is None or not model.model:
        return None
    needed = frozenset(
        one.name for one in model.features or () if one.policy not in _NEEDLESS
    )
    return Processor(model.vendor or '', needed, is_guest=True)


def read_host(state: typing.Any) -> Processor | None:
    """Read a host's CPU; None if nova compares nothing there.

    :param state: the nova HostState
    """
    if CONF.libvirt.virt_type != _KVM or state.hypervisor_type != _LIBVIRT:
        return None
    if getattr(CONF.workarounds, 'skip_cpu_compare_on_dest', False):
        return None
    kinds = {kind for _, kind, *_ in state.supported_instances or ()}
    if kinds and _KVM not in kinds:
        return None
    return _parse(state.cpu_info or '')


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Processor | None:
    try:
        parsed = json.loads(text)
        features = frozenset(parsed['features'])
        # nova compares such a host with itself.
        if parsed['arch'] == fields.Architecture.AARCH64 or not features:
            return None
        return Processor(parsed['vendor'] or '', features)
    except (ValueError, LookupError, TypeError):
        return None


def list_lacking(
    needed: Processor | None, offered: Processor | None
) -> list[str]:
    """Return the features of a guest that a host lacks, sorted.

    :param needed: None if nobody knows; like ``offered``
    """
    if needed is None or offered is None or needed == offered:
        return []
    if needed.vendor and offered.vendor and needed.vendor != offered.vendor:
        return [f'the vendor {messages.clean(needed.vendor)}']
    return sorted(map(messages.clean, needed.features - offered.features))
