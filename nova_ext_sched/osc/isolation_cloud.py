# SPDX-License-Identifier: Apache-2.0

"""Reads isolation from nova and placement, in few requests.

Placement lists all providers in one request, but not their traits or
aggregates. It answers which providers have a trait or are in an aggregate, so
the number of requests grows with the number of traits and aggregates, not of
providers.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import dataclasses
import functools
import typing

from nova_ext_sched import grouping
from nova_ext_sched import objects
from nova_ext_sched import placement
from nova_ext_sched.policy import isolation

# The trait of a provider that shares its inventory in its aggregates.
_SHARES = 'MISC_SHARES_VIA_AGGREGATE'

#: The most requests that are under way together.
WORKERS = 4

# The first that shows the UUIDs of aggregates and compute nodes. From 2.88 on
# nova asks each compute service for its uptime when it lists hypervisors.
_MICROVERSION = '2.53'

_LONGEST_TRAIT = 255


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """An aggregate of nova's.

    :ivar id: nova's number
    :ivar hosts: names of compute services
    """

    id: int
    uuid: str
    name: str
    hosts: list[str]
    metadata: Mapping[str, str]

    @functools.cached_property
    def traits(self) -> list[str]:
        """The traits that the aggregate requires, in order."""
        items = [isolation.read_item(*pair) for pair in self.metadata.items()]
        return sorted({one.trait for one in items if one.trait is not None})

    @property
    def has_trait_keys(self) -> bool:
        """Whether the aggregate is isolated, or was meant to be."""
        return any(
            isolation.read_item(*pair) != isolation.NOTHING
            for pair in self.metadata.items()
        )


@dataclasses.dataclass(frozen=True, order=True)
class Node:
    """A compute node whose resource provider placement has.

    An ironic host has several; others have one.

    :ivar host: name of its compute service
    :ivar name: hypervisor host name, which is the provider's name
    :ivar uuid: of the compute node, which is the provider's UUID
    :ivar traits: the provider's traits that faults and plans depend on
    :ivar aggregates: UUIDs of the provider's aggregates that faults and plans
        depend on
    :ivar elsewhere: by trait, the names of other providers with it that the
        host's servers can use, in the same tree or shared
    """

    host: str
    name: str
    uuid: str
    traits: frozenset[str] = dataclasses.field(compare=False)
    aggregates: frozenset[str] = dataclasses.field(compare=False)
    elsewhere: Mapping[str, list[str]] = dataclasses.field(
        default_factory=dict, compare=False
    )

    def offers(self, trait: str) -> bool:
        """Return whether some request that requires a trait finds the node."""
        return trait in self.traits or trait in self.elsewhere


class Place(typing.NamedTuple):
    """Providers with a trait that the hosts' own providers lack.

    A request that requires the trait finds the hosts only if it uses such a
    provider, for example a device or shared storage.
    """

    trait: str
    providers: list[str]
    hosts: list[str]


@dataclasses.dataclass(frozen=True)
class Cloud:
    """Aggregates, nodes and traits of isolation, in nova and placement.

    :ivar aggregates: every aggregate of nova's
    :ivar nodes: every compute node that nova lists and placement has
    :ivar traits: every trait that placement knows
    """

    aggregates: Sequence[Aggregate]
    nodes: Sequence[Node]
    traits: frozenset[str]

    @functools.cached_property
    def nodes_by_host(self) -> Mapping[str, list[Node]]:
        """The nodes of each host."""
        return grouping.by_key((node.host, node) for node in self.nodes)

    @functools.cached_property
    def isolated_by_host(self) -> Mapping[str, list[Aggregate]]:
        """The isolated aggregates of each host that is in one."""
        return grouping.by_key(
            (host, agg)
            for agg in self.aggregates
            if agg.traits
            for host in agg.hosts
        )

    def get_required_traits(self, host: str) -> set[str]:
        """Return the traits that a host's isolated aggregates require."""
        return get_traits(self.isolated_by_host.get(host, ()))

    @functools.cached_property
    def leftovers(self) -> Mapping[Node, set[str]]:
        """The recorded traits that no aggregate of a node's host requires."""
        return {
            node: traits
            for node in self.nodes
            if (
                traits := isolation.get_recorded(node.traits).difference(
                    self.get_required_traits(node.host)
                )
            )
        }

    def list_nodes(self, aggregate: Aggregate) -> list[Node]:
        """Return the nodes of an aggregate's hosts."""
        return [
            node
            for host in aggregate.hosts
            for node in self.nodes_by_host.get(host, ())
        ]

    def find_elsewhere(self, aggregate: Aggregate) -> Iterable[Place]:
        """Yield the traits that hosts of an aggregate have elsewhere."""
        nodes = self.list_nodes(aggregate)
        for trait in aggregate.traits:
            lacking = [
                node
                for node in nodes
                if trait not in node.traits and trait in node.elsewhere
            ]
            if lacking:
                names = {name for n in lacking for name in n.elsewhere[trait]}
                yield Place(trait, sorted(names), self.name_hosts(lacking))

    def name_hosts(self, nodes: Iterable[Node]) -> list[str]:
        """Return nodes' hosts, with the node's name if its host has more."""
        return sorted(
            node.host
            if len(self.nodes_by_host[node.host]) == 1
            else f'{node.host} ({node.name})'
            for node in nodes
        )


def read(
    compute: typing.Any,
    client: placement.PlacementClient,
    by_name: bool,
) -> Cloud:
    """Read isolation from nova and placement.

    :param compute: the compute proxy of openstacksdk
    :param by_name: see :func:`_list_nodes`
    """
    aggregates = [
        Aggregate(
            id=aggregate.id,
            uuid=aggregate.uuid,
            name=aggregate.name,
            hosts=sorted(aggregate.hosts or ()),
            metadata=aggregate.metadata or {},
        )
        for aggregate in compute.aggregates(microversion=_MICROVERSION)
    ]
    providers = client.resource_providers()
    listed = _list_nodes(compute, providers, by_name)
    known = client.traits()
    wanted = get_traits(aggregates)
    traits = {
        trait
        for trait in client.traits(associated=True)
        if trait in wanted
        or trait == _SHARES
        or trait.startswith(isolation.RECORD)
        or isolation.RECORD + trait in known
    }
    queries = {
        trait: objects.RequestGroup(required_traits={trait})
        for trait in traits
    } | {
        agg.uuid: objects.RequestGroup(required_aggregates=[[agg.uuid]])
        for agg in aggregates
        if agg.has_trait_keys
    }
    # The queried traits, and UUIDs of aggregates, that each provider has.
    has = collections.defaultdict(set)
    with futures.ThreadPoolExecutor(WORKERS) as pool:
        answers = pool.map(client.resource_providers, queries.values())
        for name, answer in zip(queries, answers, strict=True):
            for provider in answer:
                has[provider['uuid']].add(name)
    elsewhere = _find_elsewhere(client, providers, has, wanted & traits)
    nodes = [
        Node(
            host=host,
            name=name,
            uuid=uuid,
            traits=frozenset(has[uuid] & traits),
            aggregates=frozenset(has[uuid] - traits),
            elsewhere=elsewhere[uuid],
        )
        for host, name, uuid in listed
    ]
    return Cloud(aggregates, nodes, known)


def _list_nodes(
    compute: typing.Any,
    providers: Collection[Mapping[str, typing.Any]],
    by_name: bool,
) -> list[tuple[str, str, str]]:
    """Return host, name and UUID of the compute nodes that placement has.

    nova reads two rows of its databases for each hypervisor that it lists,
    which takes 3 ms and more; it lists all compute services in one query. As a
    rule, a compute node, and so its provider, has the name of its host. If
    each host has such a provider, or each provider such a host, hypervisors
    are not listed.

    :param by_name: whether a provider with the name of a host may be taken
        for its compute node's; else nova lists the hypervisors
    """
    if by_name:
        roots = {
            found['name']: found['uuid']
            for found in providers
            if found['uuid'] == found['root_provider_uuid']
        }
        hosts = {
            service.host for service in compute.services(binary='nova-compute')
        }
        if hosts <= roots.keys() or roots.keys() <= hosts:
            return [
                (host, host, roots[host])
                for host in sorted(hosts.intersection(roots))
            ]
    uuids = {found['uuid'] for found in providers}
    return [
        (found.service_details['host'], found.name, found.id)
        for found in compute.hypervisors(
            details=True, microversion=_MICROVERSION
        )
        if found.id in uuids
    ]


def _find_elsewhere(
    client: placement.PlacementClient,
    providers: Iterable[Mapping[str, typing.Any]],
    has: Mapping[str, set[str]],
    traits: set[str],
) -> Mapping[str, Mapping[str, list[str]]]:
    """Return which providers have traits for each root, by the root's UUID.

    This makes two requests for each sharing provider with one of the traits.

    :param has: the traits or aggregates of each provider
    """
    names_by_root: dict[str, dict[str, list[str]]] = collections.defaultdict(
        dict
    )
    for provider in providers:
        uuid, root = provider['uuid'], provider['root_provider_uuid']
        if own_traits := has[uuid] & traits:
            roots = {root}
            if _SHARES in has[uuid] and (shared := client.aggregates(uuid)):
                query = objects.RequestGroup(required_aggregates=[shared])
                roots.update(
                    member['root_provider_uuid']
                    for member in client.resource_providers(query)
                )
            for one in roots - {uuid}:
                for trait in own_traits:
                    names_by_root[one].setdefault(trait, []).append(
                        provider['name']
                    )
    return names_by_root


def get_traits(aggregates: Iterable[Aggregate]) -> set[str]:
    """Return the traits that any of the aggregates requires."""
    return {trait for agg in aggregates for trait in agg.traits}


def get_records(traits: Iterable[str]) -> set[str]:
    """Return the records of traits, of names that are not too long for one."""
    records = {isolation.RECORD + trait for trait in traits}
    return {record for record in records if len(record) <= _LONGEST_TRAIT}
