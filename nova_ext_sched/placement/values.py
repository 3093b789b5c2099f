# SPDX-License-Identifier: Apache-2.0

"""What placement answers, as values.

Each class reads its JSON form in ``from_json``, which raises KeyError,
TypeError, ValueError or AttributeError where the form is another.
"""

from collections.abc import Mapping
import dataclasses
import typing

Json = Mapping[str, typing.Any]


@dataclasses.dataclass(frozen=True)
class ResourceProvider:
    """A resource provider, such as a compute node.

    :ivar generation: grows with each change; names the state that was read
    :ivar parent_uuid: None for a root
    :ivar root_uuid: its own UUID for a root; None before microversion 1.14,
        which does not tell
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str | None

    @classmethod
    def from_json(cls, json: Json) -> 'ResourceProvider':
        """Read one of ``resource_providers``."""
        return cls(
            uuid=json['uuid'],
            name=json['name'],
            generation=int(json['generation']),
            parent_uuid=json.get('parent_provider_uuid'),
            root_uuid=json.get('root_provider_uuid'),
        )


@dataclasses.dataclass(frozen=True)
class ProviderTraits:
    """The traits of a provider at one generation."""

    traits: frozenset[str]
    generation: int

    @classmethod
    def from_json(cls, json: Json) -> 'ProviderTraits':
        """Read ``/resource_providers/<uuid>/traits``."""
        return cls(
            traits=frozenset(json['traits']),
            generation=int(json['resource_provider_generation']),
        )


@dataclasses.dataclass(frozen=True)
class ProviderAggregates:
    """The UUIDs of the aggregates of a provider at one generation."""

    aggregates: frozenset[str]
    generation: int

    @classmethod
    def from_json(cls, json: Json) -> 'ProviderAggregates':
        """Read ``/resource_providers/<uuid>/aggregates``."""
        return cls(
            aggregates=frozenset(json['aggregates']),
            generation=int(json['resource_provider_generation']),
        )


@dataclasses.dataclass(frozen=True)
class Inventory:
    """How much of a resource class a provider has, in the class's unit."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self) -> int:
        """How much can be allocated in all, used or not."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    @classmethod
    def from_json(cls, json: Json) -> 'Inventory':
        """Read one of ``inventories``."""
        return cls(
            total=int(json['total']),
            reserved=int(json['reserved']),
            min_unit=int(json['min_unit']),
            max_unit=int(json['max_unit']),
            step_size=int(json['step_size']),
            allocation_ratio=float(json['allocation_ratio']),
        )


@dataclasses.dataclass(frozen=True)
class ProviderInventories:
    """The inventories of a provider by resource class, at one generation."""

    inventories: Mapping[str, Inventory]
    generation: int

    @classmethod
    def from_json(cls, json: Json) -> 'ProviderInventories':
        """Read ``/resource_providers/<uuid>/inventories``."""
        return cls(
            inventories={
                name: Inventory.from_json(inventory)
                for name, inventory in json['inventories'].items()
            },
            generation=int(json['resource_provider_generation']),
        )


@dataclasses.dataclass(frozen=True)
class ProviderUsages:
    """What is allocated of a provider by resource class, at one generation."""

    usages: Mapping[str, int]
    generation: int

    @classmethod
    def from_json(cls, json: Json) -> 'ProviderUsages':
        """Read ``/resource_providers/<uuid>/usages``."""
        return cls(
            usages={name: int(used) for name, used in json['usages'].items()},
            generation=int(json['resource_provider_generation']),
        )


@dataclasses.dataclass(frozen=True)
class ResourceSummary:
    """How much of a resource class can be allocated, and how much is."""

    capacity: int
    used: int


@dataclasses.dataclass(frozen=True)
class ProviderSummary:
    """A provider in an answer of allocation candidates.

    :ivar resources: by class; before microversion 1.27 the requested alone
    :ivar traits: None before microversion 1.17, which does not tell
    :ivar root_uuid: None before microversion 1.29
    """

    resources: Mapping[str, ResourceSummary]
    traits: frozenset[str] | None
    parent_uuid: str | None
    root_uuid: str | None

    @classmethod
    def from_json(cls, json: Json) -> 'ProviderSummary':
        """Read one of ``provider_summaries``."""
        traits = json.get('traits')
        return cls(
            resources={
                name: ResourceSummary(
                    int(amount['capacity']), int(amount['used'])
                )
                for name, amount in json['resources'].items()
            },
            traits=None if traits is None else frozenset(traits),
            parent_uuid=json.get('parent_provider_uuid'),
            root_uuid=json.get('root_provider_uuid'),
        )


@dataclasses.dataclass(frozen=True)
class AllocationRequest:
    """One way to satisfy a request.

    :ivar allocations: amounts by provider and resource class
    :ivar mappings: the providers of each group by its suffix; None before
        microversion 1.34
    """

    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, tuple[str, ...]] | None

    @classmethod
    def from_json(cls, json: Json) -> 'AllocationRequest':
        """Read one of ``allocation_requests``."""
        mappings = json.get('mappings')
        return cls(
            allocations={
                uuid: dict(allocation['resources'])
                for uuid, allocation in json['allocations'].items()
            },
            mappings=None
            if mappings is None
            else {suffix: tuple(uuids) for suffix, uuids in mappings.items()},
        )


@dataclasses.dataclass(frozen=True)
class AllocationCandidates:
    """The ways to satisfy a request, and the providers in them.

    ``summaries`` has every provider of each tree that has a candidate; from
    microversion 1.29 on also those that take no part.
    """

    requests: tuple[AllocationRequest, ...]
    summaries: Mapping[str, ProviderSummary]

    def providers(self) -> set[str]:
        """Return the UUIDs of the providers that would be allocated from."""
        return {
            uuid for request in self.requests for uuid in request.allocations
        }

    @classmethod
    def from_json(cls, json: Json) -> 'AllocationCandidates':
        """Read ``/allocation_candidates``."""
        return cls(
            requests=tuple(
                AllocationRequest.from_json(request)
                for request in json['allocation_requests']
            ),
            summaries={
                uuid: ProviderSummary.from_json(summary)
                for uuid, summary in json['provider_summaries'].items()
            },
        )
