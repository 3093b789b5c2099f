# SPDX-License-Identifier: Apache-2.0

"""A compute node's record, as it follows from what its provider has.

nova-compute writes both of the same numbers, so that a scenario states them
once. Where a record says otherwise, the scenario has the difference.
"""

from collections.abc import Mapping
import typing

#: Total, used and free of a resource class, in the record.
FIELDS = {
    'VCPU': ('vcpus', 'vcpus_used', None),
    'PCPU': ('vcpus', 'vcpus_used', None),
    'MEMORY_MB': ('memory_mb', 'memory_mb_used', 'free_ram_mb'),
    'DISK_GB': ('local_gb', 'local_gb_used', 'free_disk_gb'),
}
#: Numbers of the record's ``stats``.
STATS = ('num_instances', 'io_workload', 'failed_builds')

_RATIOS = {'cpu': 'VCPU', 'ram': 'MEMORY_MB', 'disk': 'DISK_GB'}

Record = dict[str, typing.Any]


def change(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return by how much a server on the host changes a record's fields.

    :param amounts: what the server uses, by resource class
    """
    found = {'disk_available_least': -amounts.get('DISK_GB', 0)}
    for name, (_, in_use, free) in FIELDS.items():
        amount = amounts.get(name, 0)
        found[in_use] = found.get(in_use, 0) + amount
        if free:
            found[free] = -amount
    return found


def derive(
    inventories: Mapping[str, Record], used: Mapping[str, int]
) -> Record:
    """Return the amounts and ratios of a record.

    What is reserved counts as used, as nova-compute counts it.

    :param inventories: by resource class, as placement has them
    :param used: amounts by resource class
    """
    found: Record = dict.fromkeys(
        (name for names in FIELDS.values() for name in names if name), 0
    )
    for name, (total, in_use, _) in FIELDS.items():
        inventory = inventories.get(name, {})
        found[total] += inventory.get('total', 0)
        found[in_use] += inventory.get('reserved', 0) + used.get(name, 0)
    for total, in_use, free in FIELDS.values():
        if free:
            found[free] = found[total] - found[in_use]
    for kind, name in _RATIOS.items():
        ratio = inventories.get(name, {}).get('allocation_ratio', 1.0)
        found[f'{kind}_allocation_ratio'] = ratio
    return {**found, 'disk_available_least': None, **dict.fromkeys(STATS, 0)}
