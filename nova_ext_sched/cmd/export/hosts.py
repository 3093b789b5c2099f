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
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import compute_node

CONF = nova.conf.CONF

Document = dict[str, typing.Any]

_LIMITS = (
    'total',
    'reserved',
    'allocation_ratio',
    'min_unit',
    'max_unit',
    'step_size',
)
# What a scenario need not say of an inventory.
_DEFAULTS = {'reserved': 0, 'min_unit': 1, 'step_size': 1}
# Fields of a record that do not follow from an inventory.
_OTHERS = ('hypervisor_type', 'hypervisor_version')


class Hosts:
    """Reads the hosts.

    :param missing: gets what a scenario cannot say of them
    """

    def __init__(
        self,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        missing: unsaid.Unsaid,
    ) -> None:
        self._scheduler = scheduler
        self._unsaid = missing
        # YAML writes what is there once once, and then refers to it.
        self._shared: dict[str, typing.Any] = {}

    def read(
        self,
        standing: Mapping[str, Collection[Mapping[str, int]]],
        advance: Callable[[], None],
    ) -> list[Document]:
        """Return the hosts, in the order that nova has them.

        :param standing: what each server uses that the document has itself,
            by host
        :param advance: called after each host
        """
        cells = self._scheduler.cells
        disabled = {uuid for uuid in cells if cells[uuid].disabled}
        found = []
        providers = self._providers()
        answers = self._scheduler.ask_cells(_select)
        for cell in filter(answers.__contains__, cells):
            services, nodes = answers[cell]
            states = {one.host: _state(one) for one in services}
            seen: set[str] = set()
            for node in nodes:
                if node.host in seen or node.host not in states:
                    self._unsaid.add(
                        'compute node', 'beside another one of its host'
                    )
                    continue
                seen.add(node.host)
                if node.uuid not in providers:
                    self._unsaid.add('host', 'without a resource provider')
                    continue
                state = 'disabled' if cell in disabled else states[node.host]
                using = standing.get(node.host, ())
                found.append(self._describe(node, state, using))
                advance()
        self._count_trees(providers)
        return found

    def _providers(self) -> dict[str, Document]:
        return {
            one['uuid']: one
            for one in self._get('/resource_providers')['resource_providers']
        }

    def _count_trees(self, providers: Mapping[str, Document]) -> None:
        known = self._scheduler.hosts.keys()
        for one in providers.values():
            if one['parent_provider_uuid']:
                self._unsaid.add('nested resource provider')
            elif one['uuid'] not in known:
                self._unsaid.add('resource provider', 'of no compute node')

    def _describe(
        self,
        node: typing.Any,
        state: str,
        using: Collection[Mapping[str, int]],
    ) -> Document:
        url = f'/resource_providers/{node.uuid}'
        inventories = {
            name: {
                key: one[key]
                for key in _LIMITS
                if _DEFAULTS.get(key) != one[key]
            }
            for name, one in sorted(
                self._get(f'{url}/inventories')['inventories'].items()
            )
        }
        used = dict(sorted(self._get(f'{url}/usages')['usages'].items()))
        traits = sorted(self._get(f'{url}/traits')['traits'])
        record = _record(node)
        for amounts in using:
            _take(record, used, amounts)
        derived = compute_node.derive(inventories, used)
        if node.numa_topology:
            self._unsaid.add('host', 'with NUMA cells')
        if node.pci_device_pools:
            self._unsaid.add('host', 'with PCI devices')
        if node.metrics and node.metrics != '[]':
            self._unsaid.add('host', 'with metrics')
        host = {
            'name': node.host,
            'inventories': self._share(inventories),
            'used': {name: number for name, number in used.items() if number},
            'traits': self._share(traits),
            'state': state,
            'compute_node': {
                name: self._share(value)
                for name, value in record.items()
                if derived.get(name) != value
            },
        }
        return {key: value for key, value in host.items() if value}

    def _share(self, value: typing.Any) -> typing.Any:
        return self._shared.setdefault(repr(value), value)

    def _get(self, path: str) -> Document:
        client = self._scheduler.placement
        answer = client.get(path, version='1.36')
        if answer.status_code != 200:
            raise nova_scheduler.PlacementFailed(
                query=path, cause=client.refusal
            )
        return answer.json()


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
        **{
            name: getattr(node, name)
            for name in compute_node.derive({}, {})
            if name in node and name not in compute_node.STATS
        },
        **{name: int(stats.get(name, 0)) for name in compute_node.STATS},
        **{name: getattr(node, name) for name in _OTHERS},
        'supported_instances': [
            spec.to_list() for spec in node.supported_hv_specs
        ],
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
