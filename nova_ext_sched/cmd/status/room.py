# SPDX-License-Identifier: Apache-2.0

"""Finds hosts whose room in placement differs from nova's record.

``RelativeRoomWeigher`` goes by the record of nova-compute. An allocation ratio
or a reserved amount that somebody set in placement alone is not there.
"""

from collections.abc import Iterator
import typing

from nova import context as nova_context
from nova import objects

from nova_ext_sched import fields
from nova_ext_sched import messages

# By resource class: the record's columns for the total and the use; its
# allocation ratio.
_RECORDED = {
    'VCPU': ('vcpus', 'vcpus_used', 'cpu_allocation_ratio'),
    'MEMORY_MB': ('memory_mb', 'memory_mb_used', 'ram_allocation_ratio'),
    'DISK_GB': ('local_gb', 'local_gb_used', 'disk_allocation_ratio'),
}

_HAVE = 'has', 'have'


def find(ctxt: typing.Any, adapter: typing.Any) -> Iterator[str]:
    """Yield the hosts with other room in placement than nova records.

    What is used bounds what nova-compute may have reserved.

    :param adapter: of keystoneauth, for placement with a microversion
    :raises keystoneauth1.exceptions.ClientException: placement refuses, or
        does not answer
    """
    nodes: dict[str, typing.Any] = {}
    for nodes_of_cell in nova_context.scatter_gather_skip_cell0(
        ctxt, objects.ComputeNodeList.get_all
    ).values():
        if nova_context.is_cell_failure_sentinel(nodes_of_cell):
            yield 'A cell did not answer; its hosts are not checked'
        else:
            nodes |= {one.uuid: one for one in nodes_of_cell}
    for name, recorded in _RECORDED.items():
        summaries = adapter.get(
            f'/allocation_candidates?resources={name}:1', raise_exc=True
        ).json()['provider_summaries']
        differ = []
        for uuid, node in nodes.items():
            # It may not have reported yet.
            known = total_of, used_of, ratio_of = [
                fields.get_field(node, field) for field in recorded
            ]
            room = summaries.get(uuid, {}).get('resources', {}).get(name)
            if not room or None in known:
                # It is full, or has none.
                continue
            most = total_of * ratio_of
            least = max(0, total_of - used_of) * ratio_of
            # Placement counts whole ones.
            if not int(least) <= room['capacity'] <= most + 1:
                differ.append((node.host, most, room['capacity']))
        if differ:
            host, most, capacity = min(differ)
            yield (
                f'{messages.part(len(differ), len(nodes), "host", *_HAVE)} '
                f'other room for {name} in placement than nova-compute '
                f'recorded, such as {messages.clean(host)}: {capacity} in '
                f'placement, {most:g} recorded. RelativeRoomWeigher goes by '
                f"the record. Set the ratio in nova-compute's nova.conf"
            )
