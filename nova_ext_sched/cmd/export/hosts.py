# SPDX-License-Identifier: Apache-2.0

"""The hosts: what placement and nova's records have of them."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova import objects
from nova import servicegroup
import nova.conf

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.export import parts
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import compute_node

CONF = nova.conf.CONF

Document = dict[str, typing.Any]

# The fields of an inventory, with what a scenario need not say.
_LIMITS = {
    'total': None,
    'reserved': 0,
    'allocation_ratio': None,
    'min_unit': 1,
    'max_unit': None,
    'step_size': 1,
}
# Fields of a record that do not follow from an inventory.
_OTHERS = ('hypervisor_type', 'hypervisor_version')


def read(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    missing: unsaid.Unsaid,
    standing: Mapping[str, Collection[Mapping[str, int]]],
    advance: Callable[[], None],
) -> list[Document]:
    """Return the hosts, in the order that nova has them.

    :param missing: gets what a scenario cannot say of them
    :param standing: what each server uses that the document has itself,
        by host
    :param advance: called after each host
    """
    providers = {
        one['uuid']: one for one in _get(scheduler, '/resource_providers')
    }
    answers = scheduler.ask_cells(_select)
    found: dict[str, Document] = {}
    for uuid, cell in scheduler.cells.items():
        services, nodes = answers.get(uuid, ((), ()))
        states = {
            one.host: 'disabled' if cell.disabled else _state(one)
            for one in services
        }
        for node in nodes:
            if node.host in found or node.host not in states:
                missing.add('compute node', 'beside another one of its host')
            elif node.uuid not in providers:
                missing.add('host', 'without a resource provider')
            else:
                using = standing.get(node.host, ())
                state = states[node.host]
                found[node.host] = _describe(
                    scheduler, missing, node, state, using
                )
                advance()
    for provider in providers.values():
        if provider['parent_provider_uuid']:
            missing.add('nested resource provider')
        elif provider['uuid'] not in scheduler.hosts:
            missing.add('resource provider', 'of no compute node')
    return [*found.values()]


def _describe(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    missing: unsaid.Unsaid,
    node: typing.Any,
    state: str,
    using: Collection[Mapping[str, int]],
) -> Document:
    for what, there in (
        ('with NUMA cells', node.numa_topology),
        ('with PCI devices', node.pci_device_pools),
        ('with metrics', (node.metrics or '[]') != '[]'),
    ):
        missing.add('host', what, bool(there))
    url = f'/resource_providers/{node.uuid}'
    inventories = {
        name: {
            key: one[key]
            for key, default in _LIMITS.items()
            if one[key] != default
        }
        for name, one in sorted(_get(scheduler, f'{url}/inventories').items())
    }
    used = dict(sorted(_get(scheduler, f'{url}/usages').items()))
    record = _record(node)
    for amounts in using:
        _take(record, used, amounts)
    derived = compute_node.derive(inventories, used)
    return parts.filled(
        {
            'name': node.host,
            'inventories': inventories,
            'used': parts.filled(used),
            'traits': sorted(_get(scheduler, f'{url}/traits')),
            'state': state,
            'compute_node': {
                name: value
                for name, value in record.items()
                if derived.get(name) != value
            },
        }
    )


def _get(
    scheduler: nova_scheduler.ReadOnlyHostManager, path: str
) -> typing.Any:
    """Return the part of placement that a path names last."""
    client = scheduler.placement
    answer = client.get(path, version='1.36')
    if answer.status_code != 200:
        raise nova_scheduler.PlacementFailed(query=path, cause=client.refusal)
    return answer.json()[path.rpartition('/')[2]]


def _select(context: typing.Any) -> tuple[typing.Any, typing.Any]:
    return (
        objects.ServiceList.get_by_binary(
            context, 'nova-compute', include_disabled=True
        ),
        objects.ComputeNodeList.get_all(context),
    )


def _state(service: typing.Any) -> str:
    """Return what keeps a host from new servers.

    ========  ====  ========
    disabled  up    state
    ========  ====  ========
    yes       any   disabled
    no        no    down
    no        yes   (empty)
    ========  ====  ========
    """
    if service.disabled:
        return 'disabled'
    return '' if servicegroup.API().service_is_up(service) else 'down'


def _record(node: typing.Any) -> Document:
    """Return the fields of a compute node that nova-scheduler reads."""
    stats = node.stats or {}
    return {
        name: int(stats.get(name, 0))
        if name in compute_node.STATS
        else getattr(node, name)
        for name in (*compute_node.derive({}, {}), *_OTHERS)
    } | {
        'supported_instances': [
            spec.to_list() for spec in node.supported_hv_specs
        ]
    }


def _take(
    record: Document, used: dict[str, int], amounts: Mapping[str, int]
) -> None:
    """Take what a server uses, which the simulator adds again."""
    for name, amount in amounts.items():
        used[name] = max(0, used.get(name, 0) - amount)
    for field, change in compute_node.change(amounts).items():
        if record[field] is not None:
            record[field] -= change
    record['num_instances'] -= 1
