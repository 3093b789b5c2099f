# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of reservation: keep requests in and out of reserved aggregates."""

import typing

import nova.conf

from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import reservation as asked
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
    if not asked.rules().prefixes:
        return False

    # A spec that is filtered again has no keys of before.
    state = request_state.of(request_spec)
    state.image_keys = set()
    if 'image' in CONF.nova_ext_sched.member_sources:
        running_image.restore(ctxt, request_spec, 'reservation')
        state.image_keys = asked.find_image_keys(ctxt, request_spec)
    request = asked.compile_request(request_spec)
    items = aggregates.get_metadata(ctxt, request.metadata_prefixes)
    for fault in request.rules.find_faults(items):
        LOG_ONCE.warning(fault)
    query = member_of.Query(request_spec, reservation.DECLARATION)
    resolved = request.resolve(items)
    if resolved.unmet:
        alone = asked.rules().request(
            asked.flavor_keys(request_spec), request_spec.project_id
        )
        if not alone.resolve(items).unmet:
            # Members write the rest, in hints and images.
            resolved = resolved._replace(by_member=True)
    query.write(ctxt, resolved, items)
    return True
