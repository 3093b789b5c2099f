# SPDX-License-Identifier: Apache-2.0

"""The image of a request that ``openstack scheduler explain`` is asked about.

nova-scheduler goes by the properties that an image had when the server was
given it. nova-api shows those of them that are nova's own, and no traits.
"""

from collections.abc import Mapping
import typing

from openstack import exceptions as sdk_exc

from nova_ext_sched.osc import explain_facts
from nova_ext_sched.policy import image_metadata


def named(connection: typing.Any, uuid: str) -> dict[str, typing.Any]:
    """Return what a request has of an image that Glance has.

    :param connection: openstack.connection.Connection
    :returns: attributes of :class:`~nova_ext_sched.policy.scheduling.Request`
    :raises openstack.exceptions.HttpException: Glance refuses, or has it not
    """
    image = explain_facts.read(connection.image, f'/images/{uuid}')
    return {
        'image_properties': _strings(image),
        'disk_format': image.get('disk_format'),
    }


def of_server(
    connection: typing.Any, server: typing.Any
) -> dict[str, typing.Any]:
    """Return what a request has of the image, or the volume, of a server.

    ====================  ==================================================
    the server's image    its properties
    ====================  ==================================================
    is in Glance          nova's own as the server has them; the others,
                          traits among them, as Glance has them today
    is not, any more      nova's own as the server has them
    is on a volume        as the volume has them today
    ====================  ==================================================

    :param connection: openstack.connection.Connection
    :param server: as nova-api shows it
    :returns: as :func:`named` does, and what is not known
    """
    if not server['image']:
        return _of_volume(connection, server)
    uuid = server['image']['id']
    # None where nova-api is too old to show them.
    stored = server['image'].get('properties')
    try:
        found = named(connection, uuid)
    except sdk_exc.NotFoundException:
        lost = 'traits' if stored is not None else 'traits and properties'
        return {
            'image_properties': stored or {},
            'image_is_gone': True,
            'unknown': [
                f'the {lost} that image {uuid} required, which Glance does '
                'not have any more'
            ],
        }
    if stored is not None:
        others = {
            key: value
            for key, value in found['image_properties'].items()
            if not image_metadata.is_of_nova(key)
        }
        found['image_properties'] = others | stored
    return found | {'unknown': [_as_of_today('image')]}


def _of_volume(
    connection: typing.Any, server: typing.Any
) -> dict[str, typing.Any]:
    # The volume of the root disk carries the properties of the image that it
    # was made from.
    root = server.get('OS-EXT-SRV-ATTR:root_device_name')
    found = {}
    for attached in server['os-extended-volumes:volumes_attached']:
        volume = explain_facts.read(
            connection.block_storage, f'/volumes/{attached["id"]}'
        )['volume']
        devices = {a['device'] for a in volume.get('attachments', ())}
        found[root in devices, volume.get('bootable') == 'true'] = volume.get(
            'volume_image_metadata'
        )
    image = found[max(found)] if found else None
    return {
        'image_properties': _strings(image or {}),
        'unknown': [_as_of_today('volume')],
    }


def _as_of_today(what: str) -> str:
    return (
        f'which trait: properties the {what} had when the server was given '
        'it; those count for nova, and those of today are used here'
    )


def _strings(image: Mapping[str, typing.Any]) -> dict[str, str]:
    return {
        key: value for key, value in image.items() if isinstance(value, str)
    }
