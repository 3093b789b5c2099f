# SPDX-License-Identifier: Apache-2.0

"""Proposes marks for hosts with traits or resource classes that few have.

``SpecialHostsWeigher`` asks placement nothing: what nova-compute does not
report of a host (vGPUs, accelerators, custom traits) has to be in a mark.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import typing

from nova import context as nova_context
from nova import objects

from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import special_hosts

#: Hosts are special if at most this share of all has their trait or class.
FEW = 0.1

# Classes that every host may have, and those of PCI devices, which
# nova-compute reports.
_COMMON = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB', 'IPV4_ADDRESS', 'NUMA_')
_OF_PCI = ('PCI_DEVICE', 'SRIOV_NET_VF', 'CUSTOM_PCI_', 'NET_BW_')

# The most traits, and the most resource classes, to ask placement about.
_MOST = 200


def find(
    ctxt: typing.Any,
    adapter: typing.Any,
    aggregates: Iterable[typing.Any],
    key: str,
) -> Iterator[str]:
    """Yield the special hosts without a mark.

    :param adapter: of keystoneauth, for placement with a microversion
    :param aggregates: nova Aggregates
    :param key: the metadata key of marks
    :raises keystoneauth1.exceptions.ClientException: placement refuses, or
        does not answer
    """

    def get(url: str) -> dict[str, typing.Any]:
        found: dict[str, typing.Any] = adapter.get(url, raise_exc=True).json()
        return found

    hosts: dict[str, str] = {}
    for nodes in nova_context.scatter_gather_skip_cell0(
        ctxt, objects.ComputeNodeList.get_all
    ).values():
        if not nova_context.is_cell_failure_sentinel(nodes):
            hosts |= {one.uuid: one.host for one in nodes}
    marks: dict[str, set[str]] = {}
    for one in aggregates:
        for host in one.hosts:
            mark = special_hosts.read_mark(one.metadata, key)
            marks.setdefault(host, set()).update(mark)
    for name, providers in _read_providers(get):
        mine = {hosts[uuid] for uuid in providers if uuid in hosts}
        unmarked = sorted(
            host for host in mine if name not in marks.get(host, ())
        )
        if unmarked and len(mine) <= len({*hosts.values()}) * FEW:
            yield (
                f'{messages.first_few(unmarked)} '
                f'{messages.agree(len(unmarked), "has", "have")} {name}, '
                f'which few hosts have, and no aggregate says so. To keep '
                f'them for servers that need it, set {key}={name} in an '
                f'aggregate of them'
            )


def _read_providers(
    get: typing.Any,
) -> Iterator[tuple[str, set[str]]]:
    """Yield traits and resource classes, and the hosts that have each.

    :returns: UUIDs of root providers
    """
    traits = sorted(
        name
        for name in get('/traits?associated=true')['traits']
        if name.startswith('CUSTOM_')
        # Of isolation sync's own.
        and not name.startswith(isolation.RECORD)
    )
    for name in traits[:_MOST]:
        found = get(f'/resource_providers?required={name}')
        yield (
            name,
            {one['root_provider_uuid'] for one in found['resource_providers']},
        )
    classes = sorted(
        one['name']
        for one in get('/resource_classes')['resource_classes']
        if not one['name'].startswith(_COMMON + _OF_PCI)
    )
    for name in classes[:_MOST]:
        summaries = get(f'/allocation_candidates?resources={name}:1')[
            'provider_summaries'
        ]
        yield (
            name,
            {one['root_provider_uuid'] for one in summaries.values()},
        )
