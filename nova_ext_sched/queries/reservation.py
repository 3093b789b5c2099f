# SPDX-License-Identifier: Apache-2.0

"""Compiles requests for reserved aggregates, for all stages."""

from collections.abc import Callable
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.policy import names
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF


def rules() -> reservation.Rules:
    """Return the operator's rules, from nova.conf."""
    return reservation.Rules.from_options(CONF.nova_ext_sched)


def compile_request(request_spec: typing.Any) -> reservation.Request:
    """Compile a request from the reservation keys that it names.

    The keys of the image are known if stage 1 has run on this request spec.

    :raises exception.RequestRefused: they are too many, or one is no name
    """
    in_force = rules()
    sources = CONF.nova_ext_sched.member_sources
    keys = flavor_keys(request_spec)
    if 'hint' in sources:
        keys |= in_force.keys_in_hints(
            fields.get_field(request_spec, 'scheduler_hints') or {}
        )
    if 'image' in sources:
        keys |= request_state.of(request_spec).image_keys
    names.check(
        keys, 'keys of reserved aggregates', 'key of a reserved aggregate'
    )
    return in_force.request(keys, request_spec.project_id)


def find_image_keys(
    ctxt: typing.Any,
    request_spec: typing.Any,
    read: Callable[[str], set[str]] | None = None,
) -> set[str]:
    """Return the keys among the properties of the image of a request.

    A server whose image is deleted keeps the keys by which it was placed:
    it may go where they let it go, and must.

    :param read: takes the ID of an image, and returns what
        :func:`read_image_keys` does
    :raises exception.RequestRefused: they cannot be read
    """
    image = running_image.image_id(request_spec)
    if image is None:
        return set()
    try:
        if read:
            return read(image)
        known = request_state.of(request_spec).running.images
        return read_image_keys(ctxt, image, known)
    except running_image.ImageGone:
        copied = running_image.read_copy(ctxt, request_spec)
        if copied is None:
            raise
        return rules().keys_among(copied)


def flavor_keys(request_spec: typing.Any) -> set[str]:
    """Return the keys in a request's flavor, if flavors are a source."""
    if 'flavor' not in CONF.nova_ext_sched.member_sources:
        return set()
    return rules().keys_among(
        fields.get_field(request_spec.flavor, 'extra_specs') or {}
    )


def read_image_keys(
    ctxt: typing.Any,
    image: str,
    known: dict[str, dict[str, typing.Any]] | None = None,
) -> set[str]:
    """Return the keys among the properties of an image, from Glance.

    nova's request spec has only the properties that nova knows.

    :param image: its ID
    :param known: the images that were read for the request, by ID
    :raises exception.RequestRefused: it cannot be read
    """
    found = running_image.read(ctxt, image, {} if known is None else known)
    return rules().keys_among(found['properties'])
