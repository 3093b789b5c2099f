# SPDX-License-Identifier: Apache-2.0

"""An image's properties as nova reads them, from Glance or as given."""

from collections.abc import Mapping
import os
import typing

from nova import exception as nova_exception
from nova.image import glance
from openstack import config as openstack_config

from nova_ext_sched import exception

_CREDENTIALS = (
    'credentials for Glance in the OS_* variables (OS_AUTH_URL, OS_USERNAME, '
    'OS_PASSWORD, ...) or a cloud of clouds.yaml in OS_CLOUD'
)


def user_auth() -> typing.Any:
    """Return a keystoneauth plugin from ``OS_*`` or clouds.yaml, or None.

    Nova asks Glance as the user, whose credentials nova.conf does not have.
    """
    if not any(name in os.environ for name in ('OS_CLOUD', 'OS_AUTH_URL')):
        return None
    return openstack_config.OpenStackConfig().get_one().get_auth()


def get(
    ctxt: typing.Any, image_id: str | None, properties: Mapping[str, str]
) -> dict[str, typing.Any]:
    """Return an image as nova.image.glance gives it.

    :param ctxt: a nova RequestContext; with the user's credentials where an
        image is named
    :param image_id: UUID, or None for an image that has only ``properties``
    :param properties: set on top of those of the image
    :raises exception.InvalidValue: the image cannot be read
    """
    found: dict[str, typing.Any] = {}
    if image_id is not None:
        try:
            found = glance.API().get(ctxt, image_id, show_deleted=False)
        except nova_exception.ImageNotFound as exc:
            raise exception.InvalidValue(
                where='--image', expected='the UUID of an image', got=image_id
            ) from exc
        except Exception as exc:
            # Whatever keystoneauth and glanceclient raise.
            if ctxt.user_auth_plugin is None:
                raise exception.InvalidValue(
                    where='--image', expected=_CREDENTIALS, got='none'
                ) from exc
            raise
    given = dict(properties)
    # Fields of an image that people know as its properties.
    for field in ('disk_format', 'container_format'):
        if field in given:
            found[field] = given.pop(field)
    return {**found, 'properties': {**found.get('properties', {}), **given}}
