# SPDX-License-Identifier: Apache-2.0

"""The request spec of a server that is yet to be created.

As nova.compute.api.API.create makes it and nova.conductor sends it to the
scheduler, out of the same functions of nova. Networks are not among it: nova
learns what ports ask for when they are made.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova import exception as nova_exception
from nova import objects
from nova.accelerator import cyborg
from nova.compute import api as compute_api
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_ext_sched import exception
from nova_ext_sched.explain import image


@dataclasses.dataclass
class Wish:
    """What a user asks of nova-api, in its words."""

    flavor: str
    image_id: str | None = None
    image_properties: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    boot_from_volume: bool = False
    #: ``ZONE``, ``ZONE:HOST``, ``ZONE:HOST:NODE`` or ``ZONE::NODE``.
    availability_zone: str | None = None
    #: ``HOST`` or ``HOST:NODE``, which the filters judge all the same.
    destination: str | None = None
    project_id: str | None = None
    server_group: str | None = None
    hints: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict
    )
    num_instances: int = 1


def build(ctxt: typing.Any, wish: Wish) -> typing.Any:
    """Return the nova RequestSpec that the scheduler would get.

    :param ctxt: a nova RequestContext
    :raises exception.InvalidValue: something that is named does not exist or
        contradicts itself
    :raises nova.exception.UnsupportedPolicyException: conductor would refuse
        the server group without asking the scheduler
    """
    flavor = get_flavor(ctxt, wish.flavor)
    boot_meta = image.get(ctxt, wish.image_id, wish.image_properties)
    image_meta = objects.ImageMeta.from_dict(boot_meta)
    hints = dict(wish.hints)
    if wish.server_group:
        hints['group'] = [wish.server_group]
    group = _get_group(ctxt, hints)
    try:
        zone, host, node = compute_api.API.parse_availability_zone(
            ctxt, wish.availability_zone
        )
        spec_obj = objects.RequestSpec.from_components(
            ctxt,
            uuidutils.generate_uuid(),
            boot_meta,
            flavor,
            hardware.numa_get_constraints(flavor, image_meta),
            pci_request.get_pci_requests_from_flavor(
                flavor,
                affinity_policy=hardware.get_pci_numa_policy_constraint(
                    flavor, image_meta
                ),
            ),
            utils.build_filter_properties(hints, host, node, flavor),
            group,
            zone,
            project_id=wish.project_id,
            user_id=ctxt.user_id,
        )
    except nova_exception.Invalid as exc:
        # nova-api would answer 400.
        raise exception.InvalidValue(
            where='the request',
            expected='a request that nova-api accepts',
            got=exc.format_message(),
        ) from exc
    spec_obj.is_bfv = wish.boot_from_volume
    spec_obj.num_instances = wish.num_instances
    if wish.destination:
        spec_obj.requested_destination = destination(wish.destination)
    if profile := flavor.extra_specs.get('accel:device_profile'):
        spec_obj.requested_resources += (
            cyborg.get_device_profile_request_groups(ctxt, profile)
        )
    utils.setup_instance_group(ctxt, spec_obj)
    if group is not None:
        _check_policy(ctxt, group.policy)
    return spec_obj


def get_flavor(ctxt: typing.Any, name_or_id: str) -> typing.Any:
    """Return a nova Flavor by its ID or name.

    :raises exception.InvalidValue: there is none
    """
    for get in (
        objects.Flavor.get_by_flavor_id,
        objects.Flavor.get_by_name,
    ):
        try:
            return get(ctxt, name_or_id)
        except (
            nova_exception.FlavorNotFound,
            nova_exception.FlavorNotFoundByName,
        ):
            continue
    raise exception.InvalidValue(
        where='--flavor', expected='the ID or name of a flavor', got=name_or_id
    )


def destination(text: str) -> typing.Any:
    """Return the nova Destination of ``HOST`` or ``HOST:NODE``."""
    host, _, node = text.partition(':')
    found = objects.Destination(host=host)
    if node:
        found.node = node
    return found


def _get_group(
    ctxt: typing.Any, hints: Mapping[str, Sequence[str]]
) -> typing.Any:
    if 'group' not in hints:
        return None
    [uuid] = hints['group'][:1]
    try:
        return objects.InstanceGroup.get_by_uuid(ctxt, uuid)
    except nova_exception.InstanceGroupNotFound as exc:
        raise exception.InvalidValue(
            where='--server-group',
            expected='the UUID of a server group',
            got=uuid,
        ) from exc


def _check_policy(ctxt: typing.Any, policy: str) -> None:
    # As nova does for the group that a server is in; this one is in none yet.
    # Without a server nova finds out what is configured, and no more.
    utils._get_group_details(ctxt, None)
    supported = {
        'affinity': utils._SUPPORTS_AFFINITY,
        'anti-affinity': utils._SUPPORTS_ANTI_AFFINITY,
        'soft-affinity': utils._SUPPORTS_SOFT_AFFINITY,
        'soft-anti-affinity': utils._SUPPORTS_SOFT_ANTI_AFFINITY,
    }
    if not supported.get(policy, True):
        raise nova_exception.UnsupportedPolicyException(
            reason=f'no filter or weigher of {policy} is configured'
        )
