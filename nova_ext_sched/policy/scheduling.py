# SPDX-License-Identifier: Apache-2.0

"""A request for a server, and the options of the scheduler that answers it.

Both as far as a tool outside of the scheduler can know them.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group as nova-api shows it.

    :ivar members: UUIDs of its servers
    """

    uuid: str
    name: str
    policy: str
    rules: Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    members: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked of the scheduler.

    :ivar flavor: the flavor's name
    :ivar ram_mb: in MiB, as ``swap_mb``; the disks in GiB
    :ivar image_properties: as Glance has them
    :ivar image_is_gone: Glance does not have the image of the server any more
    :ivar disk_format: of the image; None where there is none
    :ivar hints: scheduler hints; a hint given several times has a list
    :ivar host: the host that the request names; None for any
    :ivar node: the hypervisor that the request names
    :ivar forced: an administrator named host or node in the availability
        zone (``nova:host:node``): nova then runs no host filter
    :ivar server: UUID of the server, where there is one
    :ivar unknown: what is not known of the request, a sentence each
    """

    flavor: str
    vcpus: int
    ram_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    image_properties: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    image_is_gone: bool = False
    disk_format: str | None = None
    boots_from_volume: bool = False
    project_id: str | None = None
    availability_zone: str | None = None
    hints: Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    host: str | None = None
    node: str | None = None
    forced: bool = False
    group: ServerGroup | None = None
    server: str | None = None
    unknown: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of nova.conf that decide which hosts a request may use.

    The names are those of the options; ``nova_isolation`` is the one of
    ``[scheduler]`` that has the name of one of ours.
    """

    enabled_filters: Sequence[str] = ()
    request_filters: Sequence[str] = ()
    enable_isolated_aggregate_filtering: bool = False
    nova_isolation: bool = False
    forbid_by_trait: Sequence[str] = ()
    force_metadata_check_ignored_keys: Sequence[str] = ()
    placement_req_required_member_prefix: Sequence[str] = ()
    placement_req_default_forbidden_member_prefix: Sequence[str] = ()
    member_sources: Sequence[str] = ('flavor',)
    member_project_keys: Sequence[str] = ('filter_tenant_id',)
    limit_tenants_to_placement_aggregate: bool = False
    placement_aggregate_required_for_tenants: bool = False
    query_placement_for_image_type_support: bool = False
    image_metadata_prefilter: bool = False
    disable_fallback_pcpu_query: bool = False
    default_availability_zone: str = 'nova'
    default_schedule_zone: str | None = None
    max_placement_results: int = 1000
