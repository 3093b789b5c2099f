# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of failover hosts: keep all but evacuations out of them."""

import typing

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.policy import failover
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import failover as asked
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__, advice=log_once.CHECKED)
OUTAGE = base.Outage(__name__, logging.WARNING)


@base.fail_closed(failover.DECLARATION)
def failover_hosts(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request out of hosts that are kept for failures.

    :mod:`nova_ext_sched.policy.failover` makes the decision. Nobody asks what
    kind of request it is where no host is held.

    Changes :mod:`.member_of`.

    :returns: False if ``enable_failover_hosts`` is off
    :raises nova.exception.RequestFilterFailed: the aggregates cannot be read
    """
    ours = CONF.nova_ext_sched
    if not ours.enable_failover_hosts:
        return False
    key = ours.failover_key
    items = aggregates.get_metadata(ctxt, [key])
    held, faults = failover.read(items, key)
    for fault in faults:
        LOG_ONCE.warning(fault)
    query = member_of.Query(request_spec, failover.DECLARATION)
    state = request_state.of(request_spec)
    state.move = _find_move(ctxt, request_spec) if held else ''
    if failover.is_taken(state.move, ours.failover_takes):
        held = []
    query.write(ctxt, verdict.Resolution(forbidden=held), items)
    return True


def _find_move(ctxt: typing.Any, request_spec: typing.Any) -> str:
    try:
        return asked.find_move(ctxt, request_spec)
    except Exception as exc:
        fault = exc
    # Not in the clause: oslo.log would append the exception.
    OUTAGE.failed(
        'Hosts that are kept for failures do not take a request, because '
        "nova's databases do not say whether it is an evacuation",
        fault,
    )
    return ''
