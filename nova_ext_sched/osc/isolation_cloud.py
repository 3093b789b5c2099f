# SPDX-License-Identifier: Apache-2.0

"""What nova and placement know about isolation, read in few requests.

Placement lists all providers in one request, but not their traits or
aggregates. It answers which providers have a trait or are in an aggregate, so
the number of requests grows with the number of traits and aggregates, not of
providers. If that would be more requests, each provider is asked instead.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from concurrent import futures
import dataclasses
import functools
import typing

from nova_ext_sched import objects
from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from nova_ext_sched.policy import isolation

T = typing.TypeVar('T')

#: Prefix of the trait that records that sync gave another trait.
RECORD = 'CUSTOM_NOVA_EXT_SCHED_SYNCED_'

#: How many requests are under way at once.
WORKERS = 4

# The least that gives aggregates and compute nodes their UUIDs. From 2.88 on
# the list of hypervisors asks each compute service for its uptime.
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
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]

    @functools.cached_property
    def traits(self) -> tuple[str, ...]:
        """The traits that the aggregate requires, in order."""
        items = (
            (self.uuid, self.name, key, value)
            for key, value in self.metadata.items()
        )
        required = isolation.missing_traits(items, ())
        return tuple(sorted(required.get(self.uuid, ())))

    @property
    def has_trait_keys(self) -> bool:
        """Whether the aggregate is isolated, or was meant to be."""
        return any(
            isolation.read_item(key, value) != isolation.NOTHING
            for key, value in self.metadata.items()
        )


@dataclasses.dataclass(frozen=True, order=True)
class Node:
    """A compute node whose resource provider placement has.

    An ironic host has several; others have one.

    :ivar host: name of its compute service
    :ivar name: hypervisor host name, which is the provider's name
    :ivar uuid: of the compute node, which is the provider's UUID
    :ivar traits: those of the provider that matter
    :ivar aggregates: UUIDs of those of the provider that matter
    """

    host: str
    name: str
    uuid: str
    traits: frozenset[str] = dataclasses.field(compare=False)
    aggregates: frozenset[str] = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Cloud:
    """What nova and placement know about isolation.

    :ivar aggregates: every aggregate of nova's
    :ivar nodes: every compute node that nova lists and placement has
    :ivar traits: every trait that placement knows
    """

    aggregates: tuple[Aggregate, ...]
    nodes: tuple[Node, ...]
    traits: frozenset[str]

    @functools.cached_property
    def nodes_by_host(self) -> Mapping[str, list[Node]]:
        """The nodes of each host."""
        return index((node.host, node) for node in self.nodes)

    @functools.cached_property
    def isolated_by_host(self) -> Mapping[str, list[Aggregate]]:
        """The isolated aggregates of each host that is in one."""
        return index(
            (host, aggregate)
            for aggregate in self.aggregates
            if aggregate.traits
            for host in aggregate.hosts
        )

    def get_required_traits(self, host: str) -> set[str]:
        """Return the traits that a host's isolated aggregates require."""
        return get_traits(self.isolated_by_host.get(host, ()))


def read(
    compute: typing.Any,
    client: placement.PlacementClient,
    operator_traits: Collection[str] = (),
    advance: Callable[[], None] = lambda: None,
) -> Cloud:
    """Return what nova and placement say about isolation.

    :param compute: the compute proxy of openstacksdk
    :param operator_traits: traits that matter beside those of the aggregates
    :param advance: called after each of the three parts
    """
    aggregates = tuple(
        Aggregate(
            id=found.id,
            uuid=found.uuid,
            name=found.name,
            hosts=tuple(sorted(found.hosts or ())),
            metadata=dict(found.metadata or {}),
        )
        for found in compute.aggregates(microversion=_MICROVERSION)
    )
    advance()
    hypervisors = list(
        compute.hypervisors(details=True, microversion=_MICROVERSION)
    )
    advance()
    known = client.traits()
    relevant = find_relevant_traits(known, aggregates, operator_traits)
    mirrored = {agg.uuid for agg in aggregates if agg.has_trait_keys}
    providers = {found['uuid'] for found in client.resource_providers()}
    with futures.ThreadPoolExecutor(WORKERS) as pool:
        traits = _read_names(
            pool,
            providers,
            relevant & client.traits(associated=True),
            lambda trait: client.resource_providers(
                objects.RequestGroup(required_traits={trait})
            ),
            client.provider_traits,
        )
        memberships = _read_names(
            pool,
            providers,
            mirrored,
            lambda uuid: client.resource_providers(
                objects.RequestGroup(required_aggregates=[[uuid]])
            ),
            client.provider_aggregates,
        )
    nodes = tuple(
        Node(
            host=found.service_details['host'],
            name=found.name,
            uuid=found.id,
            traits=frozenset(traits.get(found.id, ())),
            aggregates=frozenset(memberships.get(found.id, ())),
        )
        for found in hypervisors
        if found.id in providers
    )
    advance()
    return Cloud(aggregates, nodes, known)


def _read_names(
    pool: futures.Executor,
    providers: Collection[str],
    names: Collection[str],
    find_providers: Callable[[str], Iterable[Mapping[str, str]]],
    get_names: Callable[[str], frozenset[str]],
) -> Mapping[str, Collection[str]]:
    """Return by provider which of the names it has."""
    if len(names) <= len(providers):
        answers = pool.map(find_providers, names)
        found: dict[str, set[str]] = {}
        for name, having in zip(names, answers, strict=True):
            for provider in having:
                found.setdefault(provider['uuid'], set()).add(name)
        return found

    def ask(uuid: str) -> Collection[str]:
        try:
            return get_names(uuid).intersection(names)
        except errors.Refused as exc:
            # It was deleted since it was listed: nothing is it any more.
            if exc.status != 404:
                raise
            return set()

    return dict(zip(providers, pool.map(ask, providers), strict=True))


def find_relevant_traits(
    known: Iterable[str],
    aggregates: Iterable[Aggregate],
    operator_traits: Iterable[str] = (),
) -> set[str]:
    """Return the traits of providers that faults and plans depend on.

    :param known: the traits that placement knows
    """
    known = set(known)
    records = {trait for trait in known if trait.startswith(RECORD)}
    wanted = {trait.removeprefix(RECORD) for trait in records}
    wanted |= {*get_traits(aggregates), *operator_traits}
    return known & (wanted | records | get_records(wanted))


def get_traits(aggregates: Iterable[Aggregate]) -> set[str]:
    """Return the traits that any of the aggregates requires."""
    return {trait for agg in aggregates for trait in agg.traits}


def get_records(traits: Iterable[str]) -> set[str]:
    """Return the records of those traits whose name leaves room for one."""
    records = {RECORD + trait for trait in traits}
    return {record for record in records if len(record) <= _LONGEST_TRAIT}


def index(pairs: Iterable[tuple[str, T]]) -> Mapping[str, list[T]]:
    """Return the values of each key."""
    found: dict[str, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
