# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of special hosts: last, for requests that need nothing special."""

from collections.abc import Sequence
import itertools
import re
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched.policy import special_hosts
from nova_ext_sched.queries import isolation
from nova_ext_sched.weighers import base

CONF = nova.conf.CONF

# An extra spec of a flavor: resources:VGPU, resources1:VGPU.
_RESOURCES = re.compile(r'resources[a-zA-Z0-9_-]{0,64}:(.+)')


class SpecialHostsWeigher(base.PolicyWeigher):
    """Put special hosts last for requests that do not need them.

    :mod:`nova_ext_sched.policy.special_hosts` makes the decision.
    """

    policies = (special_hosts.DECLARATION,)
    minval, maxval = 0.0, 1.0

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        key = CONF.nova_ext_sched.special_hosts_key
        marks = base.by_metadata(
            states,
            lambda found: frozenset().union(*found),
            lambda metadata: special_hosts.read_mark(metadata, key),
            lambda metadata: special_hosts.find_faults(metadata, key),
        )
        devices = [
            bool(state.pci_stats and state.pci_stats.pools) for state in states
        ]
        if not any(devices) and not any(marks):
            return None
        asks_devices = _asks_devices(spec_obj)
        asked = _read_asked(spec_obj) if any(marks) else set()
        return [
            -float(special_hosts.is_last(has, mark, asks_devices, asked))
            for has, mark in zip(devices, marks, strict=True)
        ]


def _asks_devices(spec_obj: typing.Any) -> bool:
    requests = fields.get_field(spec_obj, 'pci_requests')
    return bool(requests and fields.get_field(requests, 'requests'))


def _read_asked(spec_obj: typing.Any) -> set[str]:
    """Return the traits and resource classes that a request asks for."""
    classes = {
        match[1]
        for key in fields.flavor_extra_specs(spec_obj)
        if (match := _RESOURCES.fullmatch(key))
    }
    # Of ports and device profiles.
    groups = fields.get_field(spec_obj, 'requested_resources') or ()
    classes.update(
        itertools.chain.from_iterable(
            fields.get_field(group, 'resources') or () for group in groups
        )
    )
    try:
        return classes | isolation.read_requested(spec_obj)
    except Exception:
        # Traits that nova cannot read, it cannot ask for.
        return classes
