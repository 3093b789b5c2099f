# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of reservation: keep requests in and out of reserved aggregates."""

from collections.abc import Callable
import typing

import nova.conf

from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.policy import names
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import fields
from nova_ext_sched.queries import running_image
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__, advice=log_once.CHECKED)


@base.fail_closed(reservation.DECLARATION)
def reserved_aggregates(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request in the aggregates that it names and out of all others.

    :mod:`nova_ext_sched.policy.reservation` makes the decision. The keys of a
    request come from the sources in ``member_sources``.

    Changes :mod:`.member_of`.

    :returns: False if neither prefix option is set
    :raises nova.exception.RequestFilterFailed: no aggregate has a key that
        the request names, or none that its project may use; it names too
        many; the aggregates or the image cannot be read
    """
    if not rules().prefixes:
        return False

    # A spec that is filtered again has no keys of before.
    state = request_state.of(request_spec)
    state.image_keys = set()
    if 'image' in CONF.nova_ext_sched.member_sources:
        running_image.restore(ctxt, request_spec)
        state.image_keys = find_image_keys(ctxt, request_spec)
    request = compile_request(request_spec)
    items = aggregates.get_metadata(ctxt, request.metadata_prefixes)
    for fault in request.rules.find_faults(items):
        LOG_ONCE.warning(fault)
    query = member_of.Query(request_spec, reservation.DECLARATION)
    resolved = request.resolve(items)
    if resolved.unmet:
        alone = rules().request(
            _flavor_keys(request_spec), request_spec.project_id
        )
        if not alone.resolve(items).unmet:
            # Members write the rest, in hints and images.
            resolved = resolved._replace(by_member=True)
    query.write(ctxt, resolved, items)
    return True


def rules() -> reservation.Rules:
    """Return the operator's rules, from nova.conf."""
    return reservation.Rules.from_options(CONF.nova_ext_sched)


def compile_request(request_spec: typing.Any) -> reservation.Request:
    """Return what a request's keys mean. Both stages call this.

    The keys of the image are known if stage 1 has run on this request spec.

    :raises exception.RequestRefused: they are too many, or one is no name
    """
    mine = rules()
    sources = CONF.nova_ext_sched.member_sources
    keys = _flavor_keys(request_spec)
    if 'hint' in sources:
        keys |= mine.keys_in_hints(
            fields.get_field(request_spec, 'scheduler_hints') or {}
        )
    if 'image' in sources:
        keys |= request_state.of(request_spec).image_keys
    names.check(
        keys, 'keys of reserved aggregates', 'key of a reserved aggregate'
    )
    return mine.request(keys, request_spec.project_id)


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
        return read(image) if read else read_image_keys(ctxt, image)
    except running_image.ImageGone:
        copied = running_image.read_copy(ctxt, request_spec)
        if copied is None:
            raise
        return rules().keys_among(copied)


def _flavor_keys(request_spec: typing.Any) -> set[str]:
    if 'flavor' not in CONF.nova_ext_sched.member_sources:
        return set()
    return rules().keys_among(
        fields.get_field(request_spec.flavor, 'extra_specs') or {}
    )


def read_image_keys(ctxt: typing.Any, image: str) -> set[str]:
    """Return the keys among the properties of an image, from Glance.

    nova's request spec has only the properties that nova knows.

    :param image: its ID
    :raises exception.RequestRefused: it cannot be read
    """
    return rules().keys_among(running_image.read(ctxt, image)['properties'])
