# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of server groups: assign the members to the hosts in turn."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.policy import round_robin
from nova_ext_sched.weighers import base
from nova_ext_sched.weighers import server_groups
from nova_ext_sched.weighers import turns

CONF = nova.conf.CONF


class ServerGroupRoundRobinWeigher(base.PolicyWeigher):
    """Order hosts so that members of a server group take them in turn.

    :mod:`nova_ext_sched.policy.round_robin` makes the decision;
    :func:`nova_ext_sched.weighers.turns.find` says for which requests. On
    rebuild nova does not ask: there is one host.

    :mod:`nova_ext_sched.weighers.server_groups` says which hosts have slots,
    and where the members stand.
    """

    policies = (round_robin.DECLARATION,)
    yields = False

    def __init__(self) -> None:
        super().__init__()
        self._groups = server_groups.ServerGroups()

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        order = _order(spec_obj, states, self._groups)
        if not order:
            return None
        # A host that has no slot, such as one without a domain, is last.
        last = -len(order)
        place = dict(zip(order, range(0, last, -1), strict=True))
        return [place.get(state.host, last) for state in states]


def _order(
    spec_obj: typing.Any,
    states: list[typing.Any],
    groups: server_groups.ServerGroups,
) -> list[str]:
    # The hosts, the best first; none if the weigher is not for the request.
    turn = turns.find(spec_obj)
    if turn is None:
        return []
    members = spec_obj.instance_group.members
    server = fields.get_field(spec_obj, 'instance_uuid')
    known = request_state.of(spec_obj).group
    # Before the first pick, too.
    picks = request_state.picks(spec_obj)
    if known.assignment is None:
        known.assignment = groups.find(
            spec_obj,
            [*states, *known.refused.values()],
            turn.rule,
            turn.limit,
            CONF.nova_ext_sched.failure_domain_key,
        )
    for one, host in zip(known.servers, picks, strict=False):
        known.assignment.pick(one, host)
    if server not in known.servers:
        known.servers.append(server)
    return known.assignment.order_hosts(members, server)
