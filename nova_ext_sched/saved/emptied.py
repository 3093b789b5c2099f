# SPDX-License-Identifier: Apache-2.0

"""Compute nodes as they are stored, without what servers have of them."""

from collections.abc import Collection
from collections.abc import Mapping
import json
import typing

from nova import objects

_Row = dict[str, typing.Any]


def rename(text: str | None, uuids: Mapping[str, str]) -> str | None:
    """Return JSON in which providers have other UUIDs."""
    for old, new in uuids.items():
        text = text and text.replace(old, new)
    return text


def empty(node: _Row) -> _Row:
    """Return a compute node on which no server is."""
    return node | {
        'vcpus_used': 0,
        'memory_mb_used': 0,
        'local_gb_used': 0,
        'free_ram_mb': node['memory_mb'],
        'free_disk_gb': node['local_gb'],
        'disk_available_least': node['local_gb'],
        'running_vms': 0,
        'current_workload': 0,
        'stats': '{}',
        'numa_topology': _empty_topology(node['numa_topology']),
    }


def _empty_topology(text: str | None) -> str | None:
    """Return a nova NUMATopology as it is stored, of which nothing is used."""
    if not text:
        return text
    topology = json.loads(text)
    for cell in topology['nova_object.data']['cells']:
        data = cell['nova_object.data']
        data.update(cpu_usage=0, memory_usage=0, pinned_cpus=[])
        for pages in data.get('mempages') or ():
            pages['nova_object.data']['used'] = 0
    return json.dumps(topology)


def return_devices(text: str | None, taken: Collection[_Row]) -> str | None:
    """Return nova's PciDevicePools, as they are stored, with more devices.

    nova drops a pool of which none is left: its tags are not known.

    :param taken: rows of the devices
    """
    if not text or not taken:
        return text
    pools = objects.PciDevicePoolList.obj_from_primitive(json.loads(text))
    for device in taken:
        pool = next(
            (one for one in pools if is_of(device, one)),
            None,
        )
        if pool is None:
            pool = objects.PciDevicePool(
                vendor_id=device['vendor_id'],
                product_id=device['product_id'],
                numa_node=device['numa_node'],
                tags={'dev_type': device['dev_type']},
                count=0,
            )
            pools.objects.append(pool)
        pool.count += 1
    return json.dumps(pools.obj_to_primitive())


def is_of(device: _Row, pool: typing.Any) -> bool:
    """Return whether a device may be of a nova PciDevicePool."""
    provider = pool.tags.get('rp_uuid')
    info = json.loads(device['extra_info'] or '{}')
    return all(
        device[key] == getattr(pool, key)
        for key in ('vendor_id', 'product_id', 'numa_node')
    ) and (provider is None or provider == info.get('rp_uuid'))
