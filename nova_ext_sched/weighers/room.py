# SPDX-License-Identifier: Apache-2.0

"""Reads the amounts that a request takes of a host, as nova's weighers do."""

import typing

from nova_ext_sched import fields


class Asked(typing.NamedTuple):
    """The amounts that a server of the request takes.

    :ivar vcpus: all of them, dedicated ones too
    :ivar memory_mb: MiB
    :ivar disk_mb: MiB of a host's own disk
    """

    vcpus: int
    memory_mb: int
    disk_mb: int


def read_asked(spec_obj: typing.Any) -> Asked:
    """Read the amounts of a RequestSpec's flavor; zero without a flavor."""
    flavor = fields.get_field(spec_obj, 'flavor')
    if not flavor:
        return Asked(0, 0, 0)
    vcpus, memory_mb, root_gb, ephemeral_gb, swap = (
        fields.get_field(flavor, name) or 0
        for name in ('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb', 'swap')
    )
    if fields.get_field(spec_obj, 'is_bfv'):
        root_gb = 0
    return Asked(vcpus, memory_mb, (root_gb + ephemeral_gb) * 1024 + swap)


def count_pinned(spec_obj: typing.Any) -> int:
    """Return how many of a request's CPUs are dedicated."""
    topology = fields.get_field(spec_obj, 'numa_topology')
    return sum(
        len(fields.get_field(cell, 'pcpuset') or ())
        for cell in (topology.cells if topology else ())
    )
