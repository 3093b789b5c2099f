# SPDX-License-Identifier: Apache-2.0

"""What isolating aggregates need in nova and placement, and what is wrong.

An aggregate isolates by :mod:`nova_ext_sched.policy.isolation`. For that to
let the right requests in and keep the others out,

* placement must know each trait that the aggregate requires,
* the resource provider of each of the aggregate's hosts must carry each of
  them (nova documents a shell loop for it), and
* it must be in the placement aggregate of the same UUID (nova does that when
  the host is added; it is missing where placement was down then).

What is wrong is found here for the list command, and what would put it right
is planned in :mod:`nova_ext_sched.policy.isolation_plan`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import typing

from nova_ext_sched import exception
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import syntax

T = typing.TypeVar('T')

_FORCE = force_metadata_check.ForceMetadataCheck()


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
    def concerned(self) -> bool:
        """Whether the aggregate isolates, or was meant to."""
        return any(
            isolation.read_item(key, value) != isolation.NOTHING
            for key, value in self.metadata.items()
        )


@dataclasses.dataclass(frozen=True)
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
    traits: frozenset[str]
    aggregates: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Cloud:
    """What nova and placement say, as far as isolation is concerned.

    :ivar aggregates: every aggregate of nova's
    :ivar nodes: every compute node that nova lists and placement has
    :ivar traits: every trait that placement knows
    """

    aggregates: tuple[Aggregate, ...]
    nodes: tuple[Node, ...]
    traits: frozenset[str]

    @functools.cached_property
    def by_host(self) -> Mapping[str, list[Node]]:
        """The nodes of each host."""
        return _index((node.host, node) for node in self.nodes)

    @functools.cached_property
    def by_aggregate(self) -> Mapping[str, list[Node]]:
        """The nodes whose provider is in a placement aggregate, by UUID."""
        return _index(
            (uuid, node) for node in self.nodes for uuid in node.aggregates
        )

    @functools.cached_property
    def by_trait(self) -> Mapping[str, list[Node]]:
        """The nodes whose provider carries a trait."""
        return _index(
            (trait, node) for node in self.nodes for trait in node.traits
        )

    @functools.cached_property
    def isolating(self) -> Mapping[str, list[Aggregate]]:
        """The isolating aggregates of each host that is in one."""
        return _index(
            (host, aggregate)
            for aggregate in self.aggregates
            if aggregate.traits
            for host in aggregate.hosts
        )

    def required(self, host: str) -> set[str]:
        """Return the traits that a host's isolating aggregates require."""
        return {
            trait
            for aggregate in self.isolating.get(host, ())
            for trait in aggregate.traits
        }


@dataclasses.dataclass(frozen=True, order=True)
class Fault:
    """Something that is wrong with an aggregate.

    :ivar kind: a word for programs that read it; it stays as it is
    :ivar problem: the sentence, without the hosts
    :ivar hosts: the hosts that it is about; empty where it is about all
    """

    kind: str
    problem: str
    hosts: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.hosts:
            return self.problem
        return f'{self.problem}: {", ".join(self.hosts)}'


def find_faults(
    aggregate: Aggregate, cloud: Cloud, declared: isolation.DeclaredTraits
) -> list[Fault]:
    """Return what is wrong with an isolating aggregate.

    :param declared: traits that only hosts of isolating aggregates carry
        (``forbid_by_trait``)
    """
    return [
        *_metadata_faults(aggregate),
        *_trait_faults(aggregate, cloud),
        *_host_faults(aggregate, cloud),
        *_conflicts(aggregate, cloud),
        *_strays(aggregate, cloud, declared),
    ]


def _metadata_faults(aggregate: Aggregate) -> Iterable[Fault]:
    for key, value in sorted(aggregate.metadata.items()):
        trait, fault = isolation.read_item(key, value)
        # _trait_faults tells of a name that placement cannot have.
        if fault and (trait is None or isolation.is_trait_name(trait)):
            yield Fault(
                'unread-value' if trait is None else 'misspelt',
                isolation.item_fault(aggregate.name, key, value),
            )
    for problem in _FORCE.faults(aggregate.name, aggregate.metadata):
        yield Fault('force-metadata-check', problem)


def _trait_faults(aggregate: Aggregate, cloud: Cloud) -> Iterable[Fault]:
    for trait in aggregate.traits:
        if trait in cloud.traits:
            continue
        try:
            syntax.check_custom_trait(trait, 'trait')
        except exception.InvalidValue:
            yield Fault(
                'impossible-trait',
                f'placement does not know {trait}, and it cannot be created: '
                f'the name of a trait is a standard one or {syntax.CUSTOM} '
                f'and A-Z, 0-9 and _ after it',
            )
        else:
            yield Fault('unknown-trait', f'placement does not know {trait}')


def _host_faults(aggregate: Aggregate, cloud: Cloud) -> Iterable[Fault]:
    absent = [host for host in aggregate.hosts if host not in cloud.by_host]
    if absent:
        yield _about(
            'no-provider', 'no compute node with a resource provider', absent
        )
    nodes = [
        node
        for host in aggregate.hosts
        for node in cloud.by_host.get(host, ())
    ]
    for trait in filter(cloud.traits.__contains__, aggregate.traits):
        lacking = [node for node in nodes if trait not in node.traits]
        if lacking:
            yield _about(
                'trait-missing',
                f'the resource provider lacks {trait}',
                _labels(lacking, cloud),
            )
    outside = [node for node in nodes if aggregate.uuid not in node.aggregates]
    if outside:
        yield _about(
            'not-mirrored',
            'the resource provider is not in the placement aggregate',
            _labels(outside, cloud),
        )


def _conflicts(aggregate: Aggregate, cloud: Cloud) -> Iterable[Fault]:
    if aggregate.traits and _FORCE.flag(aggregate.metadata):
        yield Fault(
            'conflict',
            f'{force_metadata_check.FLAG} is on, so that '
            f'AggregateInstanceTypeFilter wants '
            f'{", ".join(aggregate.traits)} in the flavor too: a request '
            f'whose image alone requires it is refused',
        )
    shared: dict[str, list[str]] = {}
    more: dict[str, list[str]] = {}
    for host in aggregate.hosts if aggregate.traits else ():
        for other in cloud.isolating.get(host, ()):
            if lacking := sorted(set(other.traits) - set(aggregate.traits)):
                more[other.name] = lacking
                shared.setdefault(other.name, []).append(host)
    for name, hosts in sorted(shared.items()):
        yield _about(
            'conflict',
            f'hosts of aggregate {name} too, so that they take only requests '
            f'that require {", ".join(more[name])} as well',
            hosts,
        )


def _strays(
    aggregate: Aggregate, cloud: Cloud, declared: isolation.DeclaredTraits
) -> Iterable[Fault]:
    hosts = set(aggregate.hosts)
    members = [
        node
        for node in cloud.by_aggregate.get(aggregate.uuid, ())
        if node.host not in hosts
    ]
    if members:
        yield _about(
            'stray-member',
            'the resource provider is in the placement aggregate, and the '
            "host is not in nova's",
            _labels(members, cloud),
        )
    for trait in aggregate.traits:
        if trait not in declared:
            continue
        carriers = [
            node
            for node in cloud.by_trait.get(trait, ())
            if trait not in cloud.required(node.host)
        ]
        if carriers:
            yield _about(
                'trait-outside',
                f'forbid_by_trait names {trait}, and hosts in no aggregate '
                f'that requires it carry it',
                _labels(carriers, cloud),
            )


def _index(
    pairs: Iterable[tuple[str, T]],
) -> Mapping[str, list[T]]:
    found: dict[str, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _about(kind: str, problem: str, hosts: Iterable[str]) -> Fault:
    return Fault(kind, problem, tuple(sorted(hosts)))


def _labels(nodes: Iterable[Node], cloud: Cloud) -> list[str]:
    return [
        node.host
        if len(cloud.by_host[node.host]) == 1
        else f'{node.host} ({node.name})'
        for node in nodes
    ]
