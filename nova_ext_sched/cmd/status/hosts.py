# SPDX-License-Identifier: Apache-2.0

"""Finds hosts that have something else in placement than a policy expects.

============================  ===============================================
:func:`find_leftovers`        a trait of an isolated aggregate that they left:
                              ``openstack aggregate isolation list`` calls it
                              ``leftover-trait``. Whoever may list neither
                              hosts nor providers learns it here
:func:`find_other_room`       other room than nova-compute recorded:
                              ``RelativeRoomWeigher`` goes by the record. An
                              allocation ratio or a reserved amount that
                              somebody set in placement alone is not there
:func:`find_unmarked`         traits or resource classes that few have, and no
                              mark: ``SpecialHostsWeigher`` asks placement
                              nothing, so what nova-compute does not report of
                              a host (vGPUs, accelerators, custom traits) has
                              to be in a mark
============================  ===============================================

Each takes a nova RequestContext and a function that gets the JSON of a URL of
placement, which raises keystoneauth1.exceptions.ClientException where
placement refuses, or does not answer.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import typing

from nova import context as nova_context
from nova import objects

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import special_hosts

Get = Callable[[str], dict[str, typing.Any]]

# By resource class: the record's columns for the total and the use; its
# allocation ratio.
_RECORDED = {
    'VCPU': ('vcpus', 'vcpus_used', 'cpu_allocation_ratio'),
    'MEMORY_MB': ('memory_mb', 'memory_mb_used', 'ram_allocation_ratio'),
    'DISK_GB': ('local_gb', 'local_gb_used', 'disk_allocation_ratio'),
}

_HAVE = 'has', 'have'

#: Hosts are special if at most this share of all has their trait or class.
FEW = 0.1

# Classes that every host may have, and those of PCI devices, which
# nova-compute reports.
_COMMON = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB', 'IPV4_ADDRESS', 'NUMA_')
_OF_PCI = ('PCI_DEVICE', 'SRIOV_NET_VF', 'CUSTOM_PCI_', 'NET_BW_')

# The most traits, and the most resource classes, to ask placement about.
_MOST = 200


def _read_nodes(ctxt: typing.Any) -> tuple[dict[str, typing.Any], int]:
    """Return the compute nodes by UUID, and how many cells did not answer."""
    answers = nova_context.scatter_gather_skip_cell0(
        ctxt, objects.ComputeNodeList.get_all
    ).values()
    answered = [
        nodes
        for nodes in answers
        if not nova_context.is_cell_failure_sentinel(nodes)
    ]
    nodes = {node.uuid: node for nodes in answered for node in nodes}
    return nodes, len(answers) - len(answered)


def find_leftovers(
    ctxt: typing.Any, get: Get, aggregates: Iterable[typing.Any]
) -> Iterator[str]:
    """Yield hosts with a trait of sync's that is not required of them.

    :param aggregates: nova Aggregates
    """
    traits = {*get('/traits')['traits']}
    providers = {
        trait: [
            one['uuid']
            for one in get(
                f'/resource_providers?required={trait},'
                f'{isolation.RECORD}{trait}'
            )['resource_providers']
        ]
        for trait in sorted(isolation.get_recorded(traits) & traits)
    }
    if not any(providers.values()):
        return
    nodes, silent = _read_nodes(ctxt)
    required = {
        (isolation.read_item(*item).trait, host)
        for one in aggregates
        for item in one.metadata.items()
        for host in one.hosts
    }
    for trait, uuids in providers.items():
        leftover = {nodes[uuid].host for uuid in uuids if uuid in nodes}
        if kept := sorted(
            host for host in leftover if (trait, host) not in required
        ):
            yield (
                f'{messages.first_few(kept)} '
                f'{messages.agree(len(kept), *_HAVE)} {trait}, which sync '
                f'gave, and no aggregate there requires it: a server that '
                f'requires it can land there. Run openstack aggregate '
                f'isolation sync --prune'
            )
    if silent:
        yield (
            f'{messages.count("cell", silent)} did not answer, and what hosts '
            f'have there is not known'
        )


def find_other_room(ctxt: typing.Any, get: Get) -> Iterator[str]:
    """Yield the hosts with other room in placement than nova records.

    What is used bounds what nova-compute may have reserved.
    """
    nodes, silent = _read_nodes(ctxt)
    yield from ['A cell did not answer; its hosts are not checked'] * silent
    for name, recorded in _RECORDED.items():
        url = f'/allocation_candidates?resources={name}:1'
        summaries = get(url)['provider_summaries']
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


def find_unmarked(
    ctxt: typing.Any, get: Get, aggregates: Iterable[typing.Any], key: str
) -> Iterator[str]:
    """Yield the special hosts without a mark.

    :param aggregates: nova Aggregates
    :param key: the metadata key of marks
    """
    nodes, _ = _read_nodes(ctxt)
    whole = len({node.host for node in nodes.values()})
    marks: dict[str, set[str]] = {}
    for one in aggregates:
        for host in one.hosts:
            mark = special_hosts.read_mark(one.metadata, key)
            marks.setdefault(host, set()).update(mark)
    for name, providers in _read_providers(get):
        having = {nodes[uuid].host for uuid in providers if uuid in nodes}
        unmarked = sorted(
            host for host in having if name not in marks.get(host, ())
        )
        if unmarked and len(having) <= whole * FEW:
            yield (
                f'{messages.first_few(unmarked)} '
                f'{messages.agree(len(unmarked), *_HAVE)} {name}, '
                f'which few hosts have, and no aggregate says so. To keep '
                f'them for servers that need it, set {key}={name} in an '
                f'aggregate of them'
            )


def _read_providers(get: Get) -> Iterator[tuple[str, set[str]]]:
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
    classes = sorted(
        one['name']
        for one in get('/resource_classes')['resource_classes']
        if not one['name'].startswith(_COMMON + _OF_PCI)
    )
    for name in traits[:_MOST]:
        found = get(f'/resource_providers?required={name}')
        yield name, _find_roots(found['resource_providers'])
    for name in classes[:_MOST]:
        found = get(f'/allocation_candidates?resources={name}:1')
        yield name, _find_roots(found['provider_summaries'].values())


def _find_roots(providers: Iterable[dict[str, typing.Any]]) -> set[str]:
    return {one['root_provider_uuid'] for one in providers}
