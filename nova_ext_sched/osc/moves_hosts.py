# SPDX-License-Identifier: Apache-2.0

"""Disables the hosts of a plan before its moves, and enables them after.

They are the hosts that are to be empty; for a plan of make-room, the hosts
where it makes room, so that no other server takes that while the moves run.
nova moves no server to a disabled host, so hosts that moves go to are left
enabled.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from openstack.compute.v2 import service

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan

# The beginning of the reason of a host that is disabled for a plan. The time
# of the plan follows; a plan that failed is followed by one of another time.
_EMPTY = 'nova-ext-sched: being emptied'
_ROOM = 'nova-ext-sched: making room'
_ENABLE = 'openstack compute service set --enable {} nova-compute'


def disable(
    plan: moves_plan.Plan,
    cloud: moves_cloud.Cloud,
    services: Mapping[str, service.Service],
    is_dry: bool,
) -> str:
    """Disable the hosts of a plan; return a clause that names them.

    Hosts that are disabled already keep their reason, and are named.

    :param services: each nova-compute, by its host
    """
    disabled, already = [], []
    targets = {move.expected for move in plan.moves} if plan.room_on else ()
    hosts, begin = _choose(plan)
    for host in hosts:
        service_ = services.get(host)
        if service_ is None or host in targets:
            continue
        if service_.status == 'disabled':
            already.append(messages.clean(host))
        else:
            disabled.append(host)
            if not is_dry:
                cloud.set_status(
                    service_.id, f'{begin}, by the plan of {plan.time}'
                )
    said = [_count(disabled, 'disabled', is_dry)]
    if already:
        is_ = messages.agree(len(already), 'is', 'are')
        said = said * bool(disabled)
        said.append(f'{messages.first_few(already)} {is_} disabled already')
    return '. '.join(said)


def enable(
    plan: moves_plan.Plan,
    cloud: moves_cloud.Cloud,
    services: Mapping[str, service.Service],
    is_dry: bool,
) -> report.Report:
    """Enable the hosts that were disabled for a plan; name the others.

    ====================================  ==================================
    a host of the plan                    result
    ====================================  ==================================
    that is enabled, or has no            left as it is
    nova-compute
    whose reason is that of --disable,    enabled
    of any plan
    that is disabled for another reason   left disabled, and named with the
                                          reason and the command that enables
                                          it; the exit status is 3
    ====================================  ==================================

    :param services: each nova-compute, by its host
    """
    enabled, said = [], []
    hosts, begin = _choose(plan)
    for host in hosts:
        service_ = services.get(host)
        if service_ is None or service_.status != 'disabled':
            continue
        reason = service_.disabled_reason or ''
        if reason.startswith(begin):
            enabled.append(host)
            if not is_dry:
                cloud.set_status(service_.id)
        else:
            shown = messages.clean(reason) or 'without a reason'
            named = messages.clean(host)
            said.append(
                f'{named} stays disabled ({shown}): {_ENABLE.format(named)}.'
            )
    return report.Report(
        *report.begin(_count(enabled, 'enabled', is_dry), *said),
        rows=[],
        status=base.SOME_FOUND if said else base.FINE,
    )


def _choose(plan: moves_plan.Plan) -> tuple[Sequence[str], str]:
    """Return the hosts of a plan, and the beginning of their reason."""
    if plan.room_on:
        return plan.room_on, _ROOM
    return plan.to_be_empty, _EMPTY


def _count(hosts: Sequence[str], done: str, is_dry: bool) -> str:
    text = f'{messages.count("host", len(hosts))} {"would be " * is_dry}{done}'
    return f'{text}: {messages.first_few(hosts)}' if hosts else text
