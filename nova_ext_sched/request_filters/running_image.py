# SPDX-License-Identifier: Apache-2.0

"""The image that a server runs, where its request spec has another.

nova-api saves the image of a rebuild in the server's request spec before
nova-scheduler is asked. Where the rebuild is refused, nova-conductor puts the
image of the instance back and leaves that of the request spec
(nova.compute.api.API.rebuild, nova.conductor.manager.ComputeTaskManager.
rebuild_instance). Every later move would be judged by an image that the server
never got, and its owner could bring it into any isolated aggregate.
"""

import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.image import glance
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def restore(ctxt: typing.Any, request_spec: typing.Any) -> None:
    """Judge a move by the image that the server runs.

    =======  ==========================  ====================================
    request  images of server and spec   what happens
    =======  ==========================  ====================================
    boot     only the spec has one       nothing
    move     the same                    nothing
    move     the server's is on a        nothing: nova does not know which
             volume                      one it is
    move     they differ                 the server's goes into the spec,
                                         with a warning
    move     they differ, and Glance     no host
             does not have the server's
    =======  ==========================  ====================================

    A move costs a read of the instance from its cell.

    :param ctxt: a nova RequestContext
    :param request_spec: a nova RequestSpec; its ``image`` may be replaced
    :raises nova.exception.RequestFilterFailed: the image cannot be read
    """
    if not _is_move(request_spec):
        return
    theirs = image_id(request_spec)
    if theirs is None:
        return
    running = _running_image_id(ctxt, request_spec)
    if not running or running == theirs:
        return
    LOG.warning(
        'Server %(server)s runs image %(running)s, and its request spec has '
        'image %(theirs)s of a rebuild that was refused. It is judged by '
        'image %(running)s.',
        {
            'server': request_spec.instance_uuid,
            'running': running,
            'theirs': theirs,
        },
    )
    request_spec.image = objects.ImageMeta.from_dict(read(ctxt, running))


def image_id(request_spec: typing.Any) -> str | None:
    """Return the ID of the image in a request spec, None without one."""
    if (
        'image' not in request_spec
        or request_spec.image is None
        or 'id' not in request_spec.image
    ):
        return None
    return request_spec.image.id or None


def read(ctxt: typing.Any, image: str) -> dict[str, typing.Any]:
    """Read an image from Glance, as nova's own client does it.

    :param image: its ID
    :raises nova.exception.RequestFilterFailed: it cannot be read
    """
    try:
        return glance.API().get(ctxt, image)
    except Exception as exc:
        raise nova_exception.RequestFilterFailed(
            reason=f'the properties of image {image} cannot be read'
        ) from exc


def _is_move(request_spec: typing.Any) -> bool:
    # nova-conductor names the cell of a server that it moves, or None where
    # a resize may leave the cell; nobody names one at boot.
    destination = (
        request_spec.requested_destination
        if 'requested_destination' in request_spec
        else None
    )
    return destination is not None and 'cell' in destination


def _running_image_id(ctxt: typing.Any, request_spec: typing.Any) -> str:
    server = request_spec.instance_uuid
    cell = request_spec.requested_destination.cell
    if cell is None:
        cell = objects.InstanceMapping.get_by_instance_uuid(
            ctxt, server
        ).cell_mapping
    # Whoever moves the server; no project may keep its image from us.
    with nova_context.target_cell(ctxt.elevated(), cell) as target:
        instance = objects.Instance.get_by_uuid(
            target, server, expected_attrs=[]
        )
    return instance.image_ref or ''
