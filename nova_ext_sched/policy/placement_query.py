# SPDX-License-Identifier: Apache-2.0

"""What nova-scheduler asks placement for a request, in separate demands.

Nova asks one query for everything, and its answer does not tell which part of
it left no host. Here each part is a demand of its own, in the scheduler's
order, and beside them stands the query as a whole. A provider tree that
satisfies the whole query satisfies each demand; where every tree is a single
provider, and no request group has a suffix, the reverse holds as well.

Follows nova.scheduler.utils.ResourceRequest and nova's request filters
(nova.scheduler.request_filter):

================================  ==========================================
request filter                    demand
================================  ==========================================
require_tenant_aggregate          where the option is on and aggregates have
                                  the project: to be in one of them
map_az_to_placement_aggregate     where aggregates have the zone: to be in
                                  one of them
require_image_type_support        where the option is on: trait of the root
compute_status_filter             COMPUTE_STATUS_DISABLED is forbidden
transform_image_metadata          where the option is on: traits of the root
accelerators_filter,              traits of the root
packed_virtqueue_filter
isolate_aggregates (nova's and    to be in no aggregate whose traits the
ours)                             request does not require
reserved_aggregates (ours)        to be in the aggregates that the request
                                  names, and in no others that are reserved
the others                        not known: they take Neutron or nova
================================  ==========================================
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_ext_sched.policy import derived_specs
from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import image_metadata
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import isolation_demands
from nova_ext_sched.policy import placement_demands
from nova_ext_sched.policy import reservation_demands
from nova_ext_sched.policy import scheduling

DISABLED = 'COMPUTE_STATUS_DISABLED'
AZ_KEY = 'availability_zone'
TENANT_KEY = 'filter_tenant_id'

# nova wants to see every host where one of these hints is to be judged.
_UNLIMITED_HINTS = {'group', 'same_host', 'different_host'}

Aggregates = Sequence[explanation.Aggregate]


@dataclasses.dataclass
class Query:
    """What placement is asked.

    :ivar wanted: resources and traits by request group; two where nova asks
        a second time for VCPU in place of PCPU, and a host of either will do
    :ivar root_required: traits of the root provider, with who asks for them
    :ivar root_forbidden: traits that the root must not have, likewise
    :ivar required_aggregates: OR sets of UUIDs
    :ivar forbidden_aggregates: UUIDs
    :ivar demands: the same, one by one
    :ivar unknown: what nova may ask besides, a sentence each
    """

    wanted: list[extra_specs.Wanted]
    root_required: dict[str, str] = dataclasses.field(default_factory=dict)
    root_forbidden: dict[str, str] = dataclasses.field(default_factory=dict)
    required_aggregates: list[list[str]] = dataclasses.field(
        default_factory=list
    )
    forbidden_aggregates: set[str] = dataclasses.field(default_factory=set)
    demands: list[placement_demands.Demand] = dataclasses.field(
        default_factory=list
    )
    unknown: list[str] = dataclasses.field(default_factory=list)

    @property
    def required_traits(self) -> set[str]:
        """What nova's ResourceRequest.all_required_traits says."""
        return self.wanted[0].required_traits()


def plan(
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Aggregates,
    known_traits: Collection[str],
) -> Query:
    """Return what nova-scheduler asks placement for a request.

    :param aggregates: every aggregate of nova
    :param known_traits: the traits that placement knows
    """
    query, sources = _wanted(request, options)
    _traits_of_root(query, request, options, known_traits)
    query.demands += placement_demands.of_groups(query.wanted, sources)
    query.demands += placement_demands.of_root_traits(
        query.root_required, query.root_forbidden
    )
    query.demands += placement_demands.of_host(request)
    _project(query, request, options, aggregates)
    _zone(query, request, options, aggregates)
    _isolate(query, request, options, aggregates, known_traits)
    _reserve(query, request, options, aggregates)
    return query


def is_limited(request: scheduling.Request) -> bool:
    """Return whether placement returns ``max_placement_results`` at most.

    Follows nova.scheduler.utils.resources_from_request_spec. A request that
    names a host asks for its one provider, or without a limit.
    """
    return not (
        request.group
        or _UNLIMITED_HINTS & request.hints.keys()
        or request.host
        or request.node
    )


def _wanted(
    request: scheduling.Request, options: scheduling.Options
) -> tuple[Query, Mapping[str, str]]:
    own = extra_specs.own_resources(
        request.vcpus,
        request.ram_mb,
        request.root_gb,
        request.ephemeral_gb,
        request.swap_mb,
        request.boots_from_volume,
    )
    image = request.image_properties
    pinned = derived_specs.is_pinned(request.extra_specs, image)
    found = []
    for pinning in (True, False):
        derived = derived_specs.derive(
            request.vcpus, request.extra_specs, image, pinning
        )
        specs = {**request.extra_specs, **derived.specs}
        found.append((derived, extra_specs.read(specs, image, own)))
        if not pinned or options.disable_fallback_pcpu_query:
            break
    derived, wanted = found[0]
    query = Query(
        wanted=[wanted for _, wanted in found],
        root_required={
            trait: derived.sources[trait] for trait in derived.root_required
        },
        unknown=[*request.unknown, *derived.unknown, *wanted.unread],
    )
    sources = {
        trait: 'image' for trait in extra_specs.image_traits(image)
    } | derived.sources
    return query, sources


def _traits_of_root(
    query: Query,
    request: scheduling.Request,
    options: scheduling.Options,
    known_traits: Collection[str],
) -> None:
    query.root_forbidden[DISABLED] = 'nova, for disabled nova-compute'
    if (
        options.query_placement_for_image_type_support
        and not request.boots_from_volume
    ):
        if request.disk_format:
            trait = f'COMPUTE_IMAGE_TYPE_{request.disk_format.upper()}'
            if trait in known_traits:
                query.root_required[trait] = 'query_placement_for_image_type'
        elif request.image_is_gone:
            query.unknown.append(
                'the disk format of the image, whose trait '
                'query_placement_for_image_type_support requires'
            )
    if options.image_metadata_prefilter:
        traits, unknown = image_metadata.traits(
            request.image_properties, known_traits
        )
        query.root_required |= {
            trait: f'image {name}' for trait, name in traits.items()
        }
        query.unknown += unknown


def _project(
    query: Query,
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Aggregates,
) -> None:
    if not options.limit_tenants_to_placement_aggregate:
        return
    found = [
        aggregate
        for aggregate in aggregates
        if any(
            key.startswith(TENANT_KEY) and value == request.project_id
            for key, value in aggregate.metadata.items()
        )
    ]
    name = f'{TENANT_KEY}={request.project_id}'
    if found:
        query.required_aggregates.append([a.uuid for a in found])
        query.demands.append(placement_demands.of_member(name, found))
    elif options.placement_aggregate_required_for_tenants:
        query.demands.append(
            placement_demands.never(
                'aggregates',
                f'aggregates with {name}: none',
                "are refused, because no aggregate is the project's",
                f'no aggregate has {name} and '
                'placement_aggregate_required_for_tenants is True',
            )
        )


def _zone(
    query: Query,
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Aggregates,
) -> None:
    zone = request.availability_zone or options.default_schedule_zone
    found = [a for a in aggregates if a.metadata.get(AZ_KEY) == zone]
    # nova asks for nothing where no aggregate has the zone: it is then the
    # zone of hosts without one.
    if zone and found:
        query.required_aggregates.append([a.uuid for a in found])
        query.demands.append(
            placement_demands.of_member(f'availability zone {zone}', found)
        )


def _isolate(
    query: Query,
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Aggregates,
    known_traits: Collection[str],
) -> None:
    ours = (
        options.enable_isolated_aggregate_filtering
        and 'isolate_aggregates' in options.request_filters
    )
    if not (ours or options.nova_isolation):
        return
    missing = isolation_demands.missing_traits(
        aggregates, query.required_traits
    )
    if not missing:
        return
    traits: set[str] = set()
    uuids = set(missing)
    # nova runs no host filter on forced hosts, so that nothing would judge
    # what the traits leave.
    if (
        ours
        and 'IsolatedAggregatesFilter' in options.enabled_filters
        and not request.forced
    ):
        declared = isolation.DeclaredTraits(options.forbid_by_trait)
        usable = {
            trait
            for lacking in missing.values()
            for trait in lacking
            if trait in declared
            and trait in known_traits
            and trait not in query.root_required
        }
        traits, uuids = isolation.split_by_trait(missing, usable, len(usable))
        if options.nova_isolation:
            uuids = set(missing)
    query.forbidden_aggregates |= uuids
    query.root_forbidden |= dict.fromkeys(sorted(traits), 'forbid_by_trait')
    query.demands.append(
        isolation_demands.of_isolation(aggregates, missing, uuids, traits)
    )


def _reserve(
    query: Query,
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Aggregates,
) -> None:
    compiled = reservation_demands.compile_request(request, options)
    if (
        compiled is None
        or 'reserved_aggregates' not in options.request_filters
    ):
        return
    if request.image_is_gone and 'image' in options.member_sources:
        query.demands.append(reservation_demands.of_image_that_is_gone())
        return
    if (
        'image' in options.member_sources
        and request.server
        and request.boots_from_volume
    ):
        query.unknown.append(
            'whether the server was created from an image or from a volume; '
            'nova reads the keys of reservations of the former alone, and '
            'those that the volume has are counted here'
        )
    resolution = reservation_demands.resolve(compiled, aggregates)
    query.required_aggregates += [
        sorted(uuids) for uuids in resolution.required.values()
    ]
    query.forbidden_aggregates |= set(resolution.forbidden)
    query.demands += reservation_demands.of_reservation(
        compiled, resolution, aggregates
    )
