# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of Blazar: keep requests in and out of Blazar's pools of hosts."""

import typing

import nova.conf

from nova_ext_sched.policy import blazar
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import blazar as asked
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF


@base.fail_closed(blazar.DECLARATION)
def blazar_reservations(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request in the pools that it names and out of all others.

    :mod:`nova_ext_sched.policy.blazar` makes the decision.

    Changes :mod:`.member_of`.

    :returns: False if ``BlazarFilter`` is not enabled, and for requests that
        may use every host (instance reservations)
    :raises nova.exception.RequestFilterFailed: the request names no pool that
        its project may use, or too many; no aggregate takes preemptible
        servers; the aggregates cannot be read
    """
    if not blazar.DECLARATION.is_on(CONF):
        return False
    request = asked.compile_request(request_spec)
    if request is None:
        return False

    items = aggregates.get_by_name_or_value(
        ctxt, request.names, blazar.ZONE, request.zone_prefixes
    )
    query = member_of.Query(request_spec, blazar.DECLARATION)
    query.write(ctxt, request.resolve(items), items)
    return True
