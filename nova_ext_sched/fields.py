# SPDX-License-Identifier: Apache-2.0

"""Fields of nova's objects, read without raising and without a query.

A field of a nova object that is not set raises when it is read, or is read
from the database. What operators and users wrote must do neither here.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import typing

from nova_ext_sched.policy import anti_affinity

#: The hint by which nova-api tells nova-scheduler that a request is a rebuild.
CHECK_TYPE = '_nova_check_type'


def get_field(obj: typing.Any, field: str) -> typing.Any:
    """Return a field of a nova object.

    :param obj: None where there is no object
    :returns: None where there is no object, or the field is not set
    """
    return getattr(obj, field) if obj is not None and field in obj else None


def get_fields(obj: typing.Any, *names: str) -> dict[str, typing.Any]:
    """Return fields of a nova object by name, as :func:`get_field` does."""
    return {name: get_field(obj, name) for name in names}


def group_policy(group: typing.Any) -> str | None:
    """Return the policy of an InstanceGroup; anti-affinity if it is not set.

    Older requests carry groups without it. This is the strictest reading.
    """
    return group.policy if 'policy' in group else anti_affinity.POLICY


def names_and_metadata(
    aggregates: Iterable[typing.Any],
) -> list[tuple[str, Mapping[str, str]]]:
    """Return the names and metadata of nova Aggregate objects."""
    return [
        (aggregate_name(agg), aggregate_metadata(agg)) for agg in aggregates
    ]


def aggregate_name(aggregate: typing.Any) -> str:
    """Return an aggregate's name for messages."""
    # nova's filters read no names, so an object may have none.
    try:
        return aggregate.name or 'without a name'
    except NotImplementedError:
        return 'without a name'


def aggregate_metadata(aggregate: typing.Any) -> Mapping[str, str]:
    """Return an aggregate's metadata; empty if it is None or not set."""
    return read_metadata(aggregate) or {}


def read_metadata(aggregate: typing.Any) -> Mapping[str, str] | None:
    """Return an aggregate's metadata; None if it is None or not set.

    nova reads an aggregate without any as an empty dict. So who gets None
    knows nothing of the aggregate.
    """
    metadata: Mapping[str, str] | None
    try:
        # To ask first whether it is set takes twice as long, and there may be
        # tens of thousands of aggregates.
        metadata = aggregate.metadata
    except NotImplementedError:
        metadata = None
    return metadata


def flavor_name(spec_obj: typing.Any) -> str:
    """Return the name of a RequestSpec's flavor for messages."""
    flavor = get_field(spec_obj, 'flavor')
    return get_field(flavor, 'name') or 'without a name'


def flavor_extra_specs(spec_obj: typing.Any) -> Mapping[str, str]:
    """Return the extra specs of a flavor; empty if None or not loaded."""
    return get_field(get_field(spec_obj, 'flavor'), 'extra_specs') or {}


def host_filters_run(request_spec: typing.Any) -> bool:
    """Return whether nova will run the host filters on a request.

    It does not where an administrator forced a host or node at boot
    (nova.scheduler.host_manager.HostManager.get_filtered_hosts).
    """
    forced = get_field(request_spec, 'force_hosts') or get_field(
        request_spec, 'force_nodes'
    )
    return not forced or bool(_check_type(request_spec))


def is_rebuild(request_spec: typing.Any) -> bool:
    """Return whether a request is a rebuild, as nova-api makes one.

    nova believes the hint alone (nova.scheduler.utils.request_is_rebuild).
    Some of its releases let members write the hint, and it stays in the
    server's stored request, for every move on every release. nova-api names
    the server's host and node too, in a copy without the ID of the stored
    row (nova.compute.api.API.rebuild). Every other request has that ID.

    ============  =====================  =====================  ==========
    hint says so  host and node forced   ID of the stored row   a rebuild
    ============  =====================  =====================  ==========
    yes           both                   no                     yes
    yes           both                   yes: at boot           no
    yes           one                    any                    no
    yes           none: at boot, and     any                    no
                  nova-conductor lifts
                  them for every move
    no            any                    any                    no
    ============  =====================  =====================  ==========
    """
    return (
        _says_rebuild(request_spec)
        and bool(get_field(request_spec, 'force_hosts'))
        and bool(get_field(request_spec, 'force_nodes'))
        and 'id' not in request_spec
    )


def pretends_rebuild(request_spec: typing.Any) -> bool:
    """Return whether a request has the hint of a rebuild and is none.

    nova runs no request filter on it, asks placement nothing, and skips the
    host filters that do not run on rebuild.
    """
    return _says_rebuild(request_spec) and not is_rebuild(request_spec)


def _says_rebuild(request_spec: typing.Any) -> bool:
    return _check_type(request_spec) == ['rebuild']


def _check_type(request_spec: typing.Any) -> typing.Any:
    hints = get_field(request_spec, 'scheduler_hints') or {}
    return hints.get(CHECK_TYPE)
