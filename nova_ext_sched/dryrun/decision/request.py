# SPDX-License-Identifier: Apache-2.0

"""Takes a question, and builds the request spec of a new server.

As nova.compute.api.API.create makes it and nova.conductor sends it to the
scheduler, out of the same functions of nova. Networks are not among it: nova
learns what ports ask for when they are made.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import typing

from keystoneauth1 import exceptions as keystone_exceptions
from nova import exception as nova_exception
from nova import objects
from nova.accelerator import cyborg
from nova.compute import api as compute_api
from nova.image import glance
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_ext_sched import exception
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot

# The filters or weighers that nova needs for each policy of server groups.
_READS_GROUPS = {
    'affinity': 'ServerGroupAffinityFilter in [filter_scheduler] '
    'enabled_filters',
    'anti-affinity': 'ServerGroupAntiAffinityFilter in [filter_scheduler] '
    'enabled_filters',
    'soft-affinity': 'ServerGroupSoftAffinityWeigher in [filter_scheduler] '
    'weight_classes',
    'soft-anti-affinity': 'ServerGroupSoftAntiAffinityWeigher in '
    '[filter_scheduler] weight_classes',
}


class InvalidQuestion(exception.InvalidValue):
    """A question that names something missing, or contradicts itself.

    :param sentence: in place of what was expected and got, if it says more
    """

    def __init__(
        self, *, where: str, expected: str, got: object, sentence: str = ''
    ) -> None:
        super().__init__(where=where, expected=expected, got=got)
        if sentence:
            self.args = (sentence,)


@dataclasses.dataclass(frozen=True)
class Question:
    """A new server, or an operation on an existing one.

    =================  ======================================================
    ``server``         what of the other fields counts
    =================  ======================================================
    none               all but ``operation`` and ``stored``
    boot               ``instances``
    resize             ``flavor``, the new one
    rebuild            ``image`` and ``image_properties``, the new one's
    migrate,           ``destination``
    live-migrate,
    evacuate,
    unshelve
    =================  ======================================================

    :ivar flavor: its ID or name, or a nova Flavor
    :ivar image: the UUID of one of Glance, or an image as nova.image.glance
        gives it
    :ivar image_properties: set on top of those that the image has
    :ivar boot_from_volume: whether the root disk is a volume
    :ivar availability_zone: ``ZONE[:HOST[:NODE]]``
    :ivar project: the ID of the one that asks
    :ivar server_group: its UUID
    :ivar hints: scheduler hints; a key may be there several times
    :ivar instances: number of servers that one call creates
    :ivar destination: ``HOST[:NODE]``
    :ivar server: the UUID of one that exists
    :ivar operation: ``boot`` schedules it as nova would do now
    :ivar stored: its nova RequestSpec, where that was read before; it changes
    """

    flavor: typing.Any = None
    image: str | Mapping[str, typing.Any] | None = None
    image_properties: Collection[tuple[str, str]] = ()
    boot_from_volume: bool = False
    availability_zone: str | None = None
    project: str | None = None
    server_group: str | None = None
    hints: Collection[tuple[str, str]] = ()
    instances: int = 1
    destination: str | None = None
    server: str | None = None
    operation: str = 'boot'
    stored: typing.Any = None


class BadRequest(InvalidQuestion):
    """nova-api would answer 400.

    :param got: its reason
    """


class GlanceFailed(exception.NovaExtSchedError):
    """Glance does not answer to the user's credentials, or not at all.

    :param cause: missing credentials, or the error of Glance, keystone or
        openstacksdk
    """

    message = 'Glance: {cause}'


def build(
    ctxt: typing.Any,
    cloud: snapshot.Snapshot,
    wanted: Question,
    flavor: typing.Any,
    boot_meta: dict[str, typing.Any],
) -> typing.Any:
    """Return the nova RequestSpec that the scheduler would get.

    :param flavor: a nova Flavor
    :param boot_meta: the result of :func:`get_image`
    :raises InvalidQuestion: something that is named does not exist
    :raises BadRequest: nova-api would refuse the request
    """
    image_meta = objects.ImageMeta.from_dict(boot_meta)
    hints = grouping.by_key(wanted.hints)
    if wanted.server_group:
        hints['group'] = [wanted.server_group]
    group = _get_group(ctxt, hints['group'][0]) if 'group' in hints else None
    try:
        zone, host, node = compute_api.API.parse_availability_zone(
            ctxt, wanted.availability_zone
        )
        if wanted.availability_zone:
            host = _check_zone(cloud, zone, host, node)
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
            project_id=wanted.project,
            user_id=ctxt.user_id,
        )
    except (
        nova_exception.Invalid,
        nova_exception.PciRequestAliasNotDefined,
    ) as exc:
        raise BadRequest(
            where='the request',
            expected='a request that nova-api accepts',
            got=exc.format_message(),
        ) from exc
    # nova-api stores a request before it asks; the copy that it makes for a
    # rebuild alone has no ID. No row has this one.
    spec_obj.id = 0
    spec_obj.num_instances = wanted.instances
    spec_obj.is_bfv = wanted.boot_from_volume
    add_device_profile(ctxt, spec_obj)
    return spec_obj


def add_device_profile(ctxt: typing.Any, spec_obj: typing.Any) -> None:
    """Add the resources of the flavor's device profile, from Cyborg."""
    if profile := spec_obj.flavor.extra_specs.get('accel:device_profile'):
        spec_obj.requested_resources += (
            cyborg.get_device_profile_request_groups(ctxt, profile)
        )


def set_up_group(ctxt: typing.Any, spec_obj: typing.Any) -> None:
    """Add the hosts of its server group to a request, as conductor does.

    :raises nova.exception.UnsupportedPolicyException: conductor would refuse
        the server group without asking the scheduler
    """
    utils.setup_instance_group(ctxt, spec_obj)
    if spec_obj.instance_group is None:
        return
    # As nova does for the group that a server is in; this one is in none yet.
    # Without a server nova finds out what is configured, and no more.
    utils._get_group_details(ctxt, None)
    policy = spec_obj.instance_group.policy
    name = policy.upper().replace('-', '_')
    if not getattr(utils, f'_SUPPORTS_{name}', True):
        raise nova_exception.UnsupportedPolicyException(
            reason=f'nova.conf does not have {_READS_GROUPS[policy]}'
        )


def get_flavor(ctxt: typing.Any, wanted: typing.Any) -> typing.Any:
    """Return a nova Flavor.

    :param wanted: its ID or name, or the Flavor itself
    :raises exception.UnknownName: there is none
    """
    if isinstance(wanted, objects.Flavor):
        return wanted
    for get in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        try:
            return get(ctxt, wanted)
        except (
            nova_exception.FlavorNotFound,
            nova_exception.FlavorNotFoundByName,
        ):
            continue
    known = objects.FlavorList.get_all(ctxt)
    raise exception.UnknownName('flavor', wanted, [one.name for one in known])


def get_image(ctxt: typing.Any, wanted: Question) -> dict[str, typing.Any]:
    """Return an image as nova.image.glance gives it.

    :param ctxt: a nova RequestContext
    :raises InvalidQuestion: Glance does not show the image, or nova
        does not take a property
    :raises GlanceFailed: it does not answer
    """
    image: dict[str, typing.Any] = {}
    if isinstance(wanted.image, Mapping):
        return {**wanted.image}
    if wanted.image is not None:
        try:
            image = find_image(ctxt, wanted.image)
        except nova_exception.ImageNotFound as exc:
            raise InvalidQuestion(
                where='--image',
                expected='an image that Glance shows these credentials',
                got=wanted.image,
                sentence=f'Glance shows no image '
                f'{messages.clean(wanted.image)} to the user of OS_CLOUD or '
                'OS_*.',
            ) from exc
        except exception.UnknownName:
            raise
        except Exception as exc:
            # Any error of openstacksdk, keystoneauth or glanceclient.
            cause = 'no usable credentials (set OS_CLOUD or OS_*)'
            if not isinstance(exc, keystone_exceptions.MissingRequiredOptions):
                cause = (
                    'no answer to the user of OS_CLOUD or OS_* '
                    f'({messages.say_error(exc)})'
                )
            raise GlanceFailed(cause=cause) from exc
    properties = dict(image.get('properties', {}))
    given = wanted.image_properties
    for key, value in given:
        # Glance has these as fields; people know them as properties.
        if key in ('disk_format', 'container_format'):
            image[key] = value
        else:
            properties[key] = value
    for key, value in properties.items():
        option = '--image-property' if (key, value) in given else '--image'
        _check_property(option, key, value)
    return {**image, 'properties': properties}


def find_image(ctxt: typing.Any, wanted: str) -> dict[str, typing.Any]:
    """Return an image of Glance, by its UUID or its name.

    :raises exception.UnknownName: there is none of the name, or several
    """
    client = glance.API()
    if uuidutils.is_uuid_like(wanted):
        return dict(client.get(ctxt, wanted, show_deleted=False))
    shown = client.get_all(ctxt, filters={'name': wanted})
    found = {one['id']: one for one in shown if one['name'] == wanted}
    if not found:
        found = {one['id']: one for one in client.get_all(ctxt)}
    names = {id_: one['name'] or '' for id_, one in found.items()}
    return dict(found[named.find('image', wanted, names)])


def destination(cloud: snapshot.Snapshot, text: str) -> typing.Any:
    """Return the nova Destination of ``HOST`` or ``HOST:NODE``.

    :raises exception.UnknownName: no compute node has the names
    """
    host, _, node = text.partition(':')
    found = objects.Destination(host=_check_host(cloud, host, node))
    if node:
        found.node = node
    return found


def _check_zone(
    cloud: snapshot.Snapshot,
    zone: str | None,
    host: str | None,
    node: str | None,
) -> str | None:
    """Return the host that is forced, with its domain."""
    # nova-api, too, looks at the zone only where no host is forced.
    if zone and not host and zone not in cloud.zones:
        raise exception.UnknownName('zone with hosts', zone, cloud.zones)
    return _check_host(cloud, host, node)


def _check_host(
    cloud: snapshot.Snapshot, host: str | None, node: str | None
) -> str | None:
    """Return the host that is named, with its domain.

    :raises exception.UnknownName: there is none, or it has no such node
    """
    hosts = cloud.nodes.values()
    if host:
        host = selection.find_host(cloud, host, {one.host for one in hosts})
    if node and not cloud.silent_cells:
        nodes = {one.node for one in hosts if host in (None, '', one.host)}
        if node not in nodes:
            raise exception.UnknownName('node', node, nodes)
    return host


def _check_property(option: str, key: str, value: typing.Any) -> None:
    try:
        objects.ImageMetaProps.from_dict({key: value})
    except (ValueError, nova_exception.Invalid) as exc:
        field = objects.ImageMetaProps.fields.get(key)
        expected = f'what nova takes ({exc})'
        if valid := getattr(field, 'valid_values', None):
            expected = f'one of {messages.nearest(str(value), valid)}'
        raise InvalidQuestion(
            where=f'{option}: {key}', expected=expected, got=value
        ) from exc


def _get_group(ctxt: typing.Any, uuid: str) -> typing.Any:
    try:
        return objects.InstanceGroup.get_by_uuid(ctxt, uuid)
    except nova_exception.InstanceGroupNotFound as exc:
        raise InvalidQuestion(
            where='--server-group',
            expected='the UUID of an existing server group',
            got=uuid,
            sentence=f'There is no server group {messages.clean(uuid)}.',
        ) from exc
