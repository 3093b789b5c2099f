# SPDX-License-Identifier: Apache-2.0

"""The image that a server runs, where its request spec has another.

nova-api saves the image of a rebuild in the server's request spec before it
asks nova-scheduler. If the rebuild is refused, nova-conductor restores the
image of the instance but not that of the request spec
(nova.compute.api.API.rebuild, nova.conductor.manager.ComputeTaskManager.
rebuild_instance). Every later move would be judged by an image that the server
never got, and its owner could bring it into any isolated aggregate.
"""

from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova import block_device
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import utils as nova_utils
from nova.compute import utils as compute_utils
from nova.image import glance
from nova.volume import cinder
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import request_state

LOG = logging.getLogger(__name__)

# What owners delete while a request goes on, and what they hide.
_GONE = (
    nova_exception.ImageNotAuthorized,
    nova_exception.ImageNotFound,
    nova_exception.InstanceMappingNotFound,
    nova_exception.InstanceNotFound,
    nova_exception.VolumeNotFound,
)


class ImageGone(exception.RequestRefused):
    """Glance has no such image for this user."""


def restore(
    ctxt: typing.Any, request_spec: typing.Any, asker: str = ''
) -> None:
    """Judge a move by the image that the server runs.

    The server's image is the one of its instance or, if it boots from a
    volume, the image metadata that Cinder has for the volume. Cinder updates
    them when a rebuild writes another image to the volume.

    =======  =================================  =============================
    request  images of server and request spec  what happens
    =======  =================================  =============================
    boot     only the request spec has one      nothing
    move     the request spec has none: it was  nothing
             never to be rebuilt
    move     the same                           nothing
    move     they differ                        the server's goes into the
                                                request spec, and the log
    move     the volume says nothing of its     nothing where the server was
             image                              booted from that of the
                                                request spec, else no host
    move     Glance or Cinder cannot be read    no host
    =======  =================================  =============================

    A move costs a read of the instance and of its disks from its cell and,
    for a server on a volume, one of the volume from Cinder: once, however many
    request filters ask.

    :param request_spec: its ``image`` may be replaced
    :param asker: the request filter. If it asks a second time, the request is
        filtered again, and nothing that was read before counts
    :raises exception.RequestRefused: the image cannot be read
    """
    state = request_state.of(request_spec)
    if asker in state.running.askers:
        state.running = request_state.Running()
    state.running.askers.add(asker)
    if not state.running.restored:
        _restore(ctxt, request_spec)
        state.running.restored = True


def _restore(ctxt: typing.Any, request_spec: typing.Any) -> None:
    theirs = image_id(request_spec)
    if theirs is None or not _is_move(request_spec):
        return
    instance, root = _read_server(ctxt, request_spec)
    if root is not None:
        image = _read_volume_image(ctxt, root, theirs)
        if image is None:
            return
        where = f' of volume {root.volume_id}'
    elif instance.image_ref != theirs:
        image = _read_image(ctxt, request_spec, instance.image_ref or '')
        where = ''
    else:
        return
    request_spec.image = image
    LOG.info(
        'Server %(server)s runs %(running)s, but its request spec has image '
        '%(theirs)s of a rebuild that was refused. Its move is judged by '
        '%(running)s.',
        {
            'server': request_spec.instance_uuid,
            'running': f'image {messages.clean(image_id(request_spec))}'
            + where,
            'theirs': messages.clean(theirs),
        },
    )


def image_id(request_spec: typing.Any) -> str | None:
    """Return the ID of the image in a request spec; None if it has none."""
    image = fields.get_field(request_spec, 'image')
    return fields.get_field(image, 'id') or None


def _is_move(request_spec: typing.Any) -> bool:
    # nova-conductor names the cell of a server that it moves, or None where
    # a resize may leave the cell; nobody names one at boot.
    destination = fields.get_field(request_spec, 'requested_destination')
    return destination is not None and 'cell' in destination


def read(
    ctxt: typing.Any,
    image: str,
    known: dict[str, dict[str, typing.Any]],
) -> dict[str, typing.Any]:
    """Read an image from Glance, as nova's own client does it.

    :param image: its ID
    :param known: the images that were read for the request, by ID
    :raises ImageGone: Glance does not have it, or not for who asks
    :raises exception.RequestRefused: it cannot be read
    """
    if image in known:
        return known[image]
    where = f'the properties of image {messages.clean(image)}'
    try:
        return known.setdefault(image, glance.API().get(ctxt, image))
    except Exception as exc:
        refusal = _unread(where, exc)
        if isinstance(exc, nova_exception.ImageNotFound):
            refusal = ImageGone(refusal.reason, refusal.detail)
        raise refusal from _cause(ctxt, exc)


def read_copy(
    ctxt: typing.Any, request_spec: typing.Any
) -> Collection[str] | None:
    """Return the properties of an image that is deleted from Glance.

    nova copies all of them into the system metadata of the server, at boot
    and before it asks for a rebuild. Users cannot write there. So the copy
    says by what the server was placed.

    =========================================  ==============================
    the request                                the copy
    =========================================  ==============================
    a move of a server that runs the image     is of the image
    a boot                                     there is none
    a move after a rebuild that was refused    is of the image of the rebuild
    a move of a server on a volume             is of image metadata that its
                                               owner may write in Cinder
    =========================================  ==============================

    :returns: their names; None where there is no copy of the image
    :raises exception.RequestRefused: the server is deleted meanwhile
    """
    if not _is_move(request_spec):
        return None
    server, image = request_spec.instance_uuid, image_id(request_spec)
    try:
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, server)
    except nova_exception.RequestSpecNotFound as exc:
        raise _unread(f'server {server}', exc) from None
    instance, root = _read_server(ctxt, request_spec)
    if root or image_id(stored) != image or instance.image_ref != image:
        return None
    try:
        # nova reads it from the cell now.
        metadata = instance.system_metadata
    except nova_exception.InstanceNotFound as exc:
        raise _unread(f'server {server}', exc) from None
    return [*choose_copied(metadata)]


def choose_copied(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of its image that a server has a copy of.

    :param metadata: the server's system metadata
    """
    prefix = nova_utils.SM_IMAGE_PROP_PREFIX
    return {
        key.removeprefix(prefix): value
        for key, value in metadata.items()
        if key.startswith(prefix)
    }


def _unread(where: str, exc: Exception) -> exception.RequestRefused:
    return exception.RequestRefused(
        f'{where} cannot be read', detail=messages.say_error(exc)
    )


def _cause(ctxt: typing.Any, exc: Exception) -> Exception | None:
    """Return the fault to log of an exception; None if members cause it.

    A server, an image or a volume that its owner deletes or hides is not; nor
    is a token of whoever moves the server that is revoked, or may not read.
    """
    if isinstance(exc, _GONE):
        return None
    # nova's exceptions and cinderclient's have one, keystoneauth's the other.
    status = getattr(exc, 'http_status', getattr(exc, 'code', None))
    return None if ctxt.auth_token and status in (401, 403) else exc


def _read_image(
    ctxt: typing.Any, request_spec: typing.Any, image: str
) -> typing.Any:
    found = read(ctxt, image, request_state.of(request_spec).running.images)
    try:
        return objects.ImageMeta.from_dict(found)
    except Exception as exc:
        # Its owner writes it.
        where = f'the properties of image {messages.clean(image)}'
        raise _unread(where, exc) from None


def remember(
    ctxt: typing.Any,
    request_spec: typing.Any,
    instance: typing.Any,
    bdms: typing.Any,
) -> None:
    """Keep rows that were read already for :func:`restore`.

    :param instance: the server's nova Instance
    :param bdms: its nova BlockDeviceMappingList
    :raises exception.RequestRefused: nova does not know its volume
    """
    running = request_state.of(request_spec).running
    running.server = _find_root(ctxt, instance, bdms)


def _read_server(
    ctxt: typing.Any, request_spec: typing.Any
) -> tuple[typing.Any, typing.Any]:
    """Return the instance, and the root volume's BDM if it has one.

    Each request filter asks; the database is asked once for a request.
    """
    running = request_state.of(request_spec).running
    if running.server is None:
        running.server = _read_server_of(ctxt, request_spec)
    return running.server


def _read_server_of(
    ctxt: typing.Any, request_spec: typing.Any
) -> tuple[typing.Any, typing.Any]:
    server = request_spec.instance_uuid
    cell = request_spec.requested_destination.cell
    try:
        if cell is None:
            cell = objects.InstanceMapping.get_by_instance_uuid(
                ctxt, server
            ).cell_mapping
        # Whoever moves the server; no project may keep its image from us.
        with nova_context.target_cell(ctxt.elevated(), cell) as target:
            return _read_in_cell(target, server)
    except (
        nova_exception.InstanceMappingNotFound,
        nova_exception.InstanceNotFound,
    ) as exc:
        raise _unread(f'server {server}', exc) from None


def _read_in_cell(
    target: typing.Any, server: str
) -> tuple[typing.Any, typing.Any]:
    instance = objects.Instance.get_by_uuid(target, server, expected_attrs=[])
    bdms = objects.BlockDeviceMappingList.get_by_instance_uuid(target, server)
    return _find_root(target, instance, bdms)


def _find_root(
    ctxt: typing.Any, instance: typing.Any, bdms: typing.Any
) -> tuple[typing.Any, typing.Any]:
    root = bdms.root_bdm()
    if not compute_utils.is_volume_backed_instance(ctxt, instance, bdms):
        return instance, None
    if root is None:
        raise exception.RequestRefused(
            'nova does not know the volume that server '
            f'{instance.uuid} boots from'
        )
    return instance, root


def _read_volume_image(
    ctxt: typing.Any, root: typing.Any, theirs: str
) -> typing.Any:
    """Return the ImageMeta of a root volume; None if it is ``theirs``."""
    where = f'the image on volume {root.volume_id}'
    try:
        # With the token of whoever moves the server; where nova itself does,
        # as the user of [cinder] in nova.conf.
        volume = cinder.API().get(ctxt.elevated(), root.volume_id)
    except Exception as exc:
        raise _unread(where, exc) from _cause(ctxt, exc)
    try:
        metadata = volume.get('volume_image_metadata') or {}
        # As nova makes the image of a boot from a volume: without its ID.
        image = objects.ImageMeta.from_dict(
            block_device.get_image_metadata_from_volume(volume)
        )
    except Exception as exc:
        # Its owner writes it.
        raise _unread(where, exc) from None
    running = metadata.get('image_id') if metadata else root.image_id
    if running == theirs:
        return None
    if not metadata:
        raise exception.RequestRefused(
            f'{where} is not known to Cinder, and the server was not booted '
            f'from image {messages.clean(theirs)}'
        )
    if running:
        image.id = running
    return image
