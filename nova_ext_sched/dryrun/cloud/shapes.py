# SPDX-License-Identifier: Apache-2.0

"""Compares hosts: which one, empty, takes all that another can ever hold.

======================================  =====================================
a host                                  the one that replaces it has
======================================  =====================================
its cell, its aggregates (but for       the same
marks and failure domains), hypervisor
and shared providers, its custom
traits, the cut of its NUMA cells
traits of its hardware and hypervisor   each of them
inventories of its own provider, NUMA   at least as much, for one server as
cells, devices, nested providers        for all
======================================  =====================================

Of servers that fit on one host an equal host may not take each in another
order: pinned CPUs are cut anew. The plan names such kinds
(:mod:`..plan.hold`).
"""

import collections
from collections.abc import Mapping
from collections.abc import Set
import functools
import typing

from nova import servicegroup
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
import os_traits
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot

CONF = nova.conf.CONF

_CUSTOM = 'CUSTOM_'

#: What must be the same, in the order in which it is told.
SAME = (
    ('cell', 'its cell'),
    ('aggregates', 'its aggregates'),
    ('hypervisor', 'its hypervisor'),
    ('shared', 'the resources that it shares with others'),
    ('custom', 'its traits'),
    ('numa', 'NUMA cells cut like its own'),
)


class Shape(typing.NamedTuple):
    """The limits of an empty host for servers.

    :ivar same: by :data:`SAME`, what another must have, too
    :ivar traits: what another must have at least
    :ivar amounts: what another must have as much of, by name
    """

    same: tuple[typing.Hashable, ...]
    traits: frozenset[str]
    amounts: Mapping[typing.Hashable, float]

    def find_lacking(self, other: 'Shape') -> list[str]:
        """Name what another host lacks to replace this one, in words."""
        lacking = [
            f'not {words}'
            for (_, words), mine, found in zip(
                SAME, self.same, other.same, strict=True
            )
            if mine != found
        ]
        lacking += sorted(
            f'no {trait}' for trait in self.traits - other.traits
        )
        short = {
            _name(key)
            for key, amount in self.amounts.items()
            if other.amounts.get(key, 0) < amount
        }
        return lacking + [f'less {name}' for name in sorted(short)]


class Shapes:
    """The shapes of a cloud's hosts, each read once.

    Of a host with several compute nodes, as that of ironic, there is none:
    nova evacuates no server of it to another.

    :param cloud: it is read as it is; what servers hold counts in nothing
    """

    def __init__(self, cloud: snapshot.Snapshot) -> None:
        self._cloud = cloud
        self._kept: dict[str, Shape] = {}
        self.names = [
            host
            for host in sorted(
                {node.host for node in cloud.nodes.values()},
                key=messages.in_order,
            )
            if len(cloud.nodes_of(host)) == 1
            and cloud.nodes_of(host)[0] in cloud.states
        ]

    @functools.cached_property
    def open(self) -> Set[str]:
        """The names of hosts that are enabled, up and mapped."""
        is_up = servicegroup.API().service_is_up
        states = self._cloud.get_host_states_by_uuids(
            process.context(), None, None
        )
        return {
            one.host
            for one in states
            if not one.service.get('disabled') and is_up(one.service)
        } - self._cloud.unmapped

    @functools.cached_property
    def _devices(self) -> dict[str, collections.Counter[typing.Hashable]]:
        """The devices of each compute node by kind, used ones too."""
        devices: dict[str, collections.Counter[typing.Hashable]] = {}
        for rows in self._cloud.ask_cells(_select_devices).values():
            for node, *kind in rows:
                counted = devices.setdefault(node, collections.Counter())
                counted['device', *kind] += 1
        return devices

    def get(self, host: str) -> Shape:
        """Return the shape of a host.

        :param host: one of the names
        :raises .placement.PlacementFailed: placement does not answer
        """
        if host not in self._kept:
            self._kept[host] = self._make(host)
        return self._kept[host]

    def _make(self, host: str) -> Shape:
        [node] = self._cloud.nodes_of(host)
        state, providers = self._cloud.states[node], self._cloud.providers
        amounts: dict[typing.Hashable, float] = {}
        amounts.update(self._devices.get(node, {}))
        amounts |= _read_amounts(providers.get_stored(node))
        traits = providers.get_traits(node) - {
            os_traits.COMPUTE_STATUS_DISABLED
        }
        for nested in providers.trees[node] - {node}:
            # Another has one like it, or more of them.
            key = (
                'nested',
                tuple(sorted(providers.get_traits(nested))),
                frozenset(_read_amounts(providers.get_stored(nested)).items()),
            )
            amounts[key] = amounts.get(key, 0) + 1
        cut, room = _read_numa(state.numa_topology)
        custom = frozenset(one for one in traits if one.startswith(_CUSTOM))
        shared = frozenset(
            uuid for uuid, roots in providers.served.items() if node in roots
        )
        return Shape(
            (
                state.cell_uuid,
                _read_aggregates(state.aggregates),
                (
                    state.hypervisor_type,
                    state.hypervisor_version,
                    repr(state.supported_instances),
                ),
                shared,
                custom,
                cut,
            ),
            frozenset(traits - custom),
            amounts | room,
        )


def _read_aggregates(aggregates: typing.Any) -> typing.Hashable:
    """Return the metadata of aggregates that policies and filters read."""
    ignored = {
        CONF.nova_ext_sched.failover_key,
        CONF.nova_ext_sched.failure_domain_key,
    }
    kept = (
        frozenset(
            item for item in one.metadata.items() if item[0] not in ignored
        )
        for one in aggregates
    )
    return frozenset(filter(None, kept))


def _read_amounts(
    inventories: Mapping[str, Mapping[str, float]],
) -> dict[typing.Hashable, float]:
    """Return the amounts that a provider gives of each resource class."""
    amounts: dict[typing.Hashable, float] = {}
    for name, inventory in inventories.items():
        amounts['class', name, 'all'] = ledger.count_capacity(inventory)
        # A multiple of the steps of both is a multiple of the same.
        amounts['class', name, 'step', inventory['step_size']] = 1
        amounts['class', name, 'most'] = min(
            inventory['max_unit'], inventory['total']
        )
        amounts['class', name, 'least'] = 1 / max(inventory['min_unit'], 1)
    return amounts


def _read_numa(
    topology: typing.Any,
) -> tuple[typing.Hashable, dict[typing.Hashable, float]]:
    """Return the cut of a nova NUMATopology, and the amounts of its cells."""
    if topology is None:
        return None, {}
    cut: list[typing.Hashable] = []
    amounts: dict[typing.Hashable, float] = {}
    for number, cell in enumerate(topology.cells):
        network = cell.network_metadata if 'network_metadata' in cell else None
        cut.append(
            (
                tuple(sorted(map(len, cell.siblings))),
                frozenset(network.physnets) if network else None,
                bool(network and network.tunneled),
                tuple(sorted(page.size_kb for page in cell.mempages)),
            )
        )
        own = {
            'CPUs of a NUMA cell': len(cell.cpuset),
            'dedicated CPUs of a NUMA cell': len(cell.pcpuset),
            'memory of a NUMA cell': cell.memory,
        }
        for page in cell.mempages:
            own[f'pages of {page.size_kb} KiB'] = page.total - (
                page.reserved if 'reserved' in page else 0
            )
        amounts |= {('numa', name, number): own[name] for name in own}
    return tuple(cut), amounts


def _name(key: typing.Any) -> str:
    """Return the resource of an amount, in words."""
    kind, name, *_ = key
    return {
        'device': 'devices',
        'nested': 'resources of its nested providers',
    }.get(kind, name)


@main_db.pick_context_manager_reader
def _select_devices(
    context: typing.Any,
) -> list[tuple[str, str, str, str, int | None]]:
    """Return the compute node and the kind of each device of a cell."""
    device, node = models.PciDevice, models.ComputeNode
    query = (
        sa.select(
            node.uuid,
            device.vendor_id,
            device.product_id,
            device.dev_type,
            device.numa_node,
        )
        .join(node, node.id == device.compute_node_id)
        .where(device.deleted == 0, node.deleted == 0)
    )
    return [tuple(row) for row in context.session.execute(query)]
