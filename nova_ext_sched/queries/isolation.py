# SPDX-License-Identifier: Apache-2.0

"""Finds the traits that open isolated aggregates, for all stages."""

import typing

from nova import objects
import nova.conf
from nova.scheduler import utils

from nova_ext_sched import fields

CONF = nova.conf.CONF


def required_traits(request_spec: typing.Any) -> set[str]:
    """Return the traits that open isolated aggregates to a request.

    nova's ResourceRequest finds the traits:

    =============================================  ===========================
    a trait that the request requires in           counts
    =============================================  ===========================
    the flavor, granular groups too; what nova     always
    derives from its ``hw:`` extra specs
    a port or a device profile                     always
    the image; what nova derives from its          if ``image`` is in
    ``hw_`` properties                             ``isolation_trait_sources``
                                                   and the request does not
                                                   pretend to be a rebuild:
                                                   nobody has found out then
                                                   which image the server runs
    =============================================  ===========================

    :raises Exception: whatever nova raises for a flavor or an image that it
        cannot read
    """
    if not image_counts() or fields.pretends_rebuild(request_spec):
        request_spec = _without_image(request_spec)
    return read_requested(request_spec)


def is_faulty_by_image(request_spec: typing.Any) -> bool:
    """Return whether only the image keeps nova from reading a request.

    Members write images.

    :param request_spec: of which nova cannot read what it requires
    """
    try:
        read_requested(_without_image(request_spec))
    except Exception:
        return False
    return True


def _without_image(request_spec: typing.Any) -> typing.Any:
    # A shallow copy. nova takes a request without an image for one without
    # properties.
    return objects.RequestSpec(
        **{
            field: getattr(request_spec, field)
            for field in request_spec.fields
            if field in request_spec and field != 'image'
        }
    )


def read_requested(request_spec: typing.Any) -> set[str]:
    """Return all traits that nova asks of placement for a request."""
    found = utils.ResourceRequest.from_request_spec(request_spec)
    return set(found.all_required_traits)


def image_counts() -> bool:
    """Return whether traits of images open aggregates."""
    return 'image' in CONF.nova_ext_sched.isolation_trait_sources
