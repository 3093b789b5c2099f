# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of server groups: assign the members to the hosts in turn."""

from collections.abc import Sequence
import contextvars
import math
import typing

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.queries import failure_domain
from nova_ext_sched.weighers import server_groups

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)

MULTIPLIER = 'server_group_round_robin_weight_multiplier'

# The multipliers of the request that a thread or greenlet works on, by the
# host's aggregates; None if the weigher is not for the request. To read the
# option and the aggregates of each host would take longer than all the rest.
_multipliers: contextvars.ContextVar[
    dict[tuple[typing.Any, ...], float] | None
] = contextvars.ContextVar('multipliers', default=None)


class ServerGroupRoundRobinWeigher(weights.BaseHostWeigher):
    """Let the members of a server group prefer different hosts, in turn.

    :mod:`nova_ext_sched.policy.round_robin` makes the decision.

    =====================================  ==================================
    request                                weights
    =====================================  ==================================
    no server group                        0
    policy ``anti-affinity`` or            by the slots of the hosts
    ``soft-anti-affinity``
    a limit for failure domains, with any  by the slots of the domains
    policy
    another policy                         0
    rebuild                                nova does not ask: one host
    =====================================  ==================================

    :mod:`nova_ext_sched.weighers.server_groups` says which hosts have slots,
    and where the members stand.
    """

    def __init__(self) -> None:
        super().__init__()
        self._groups = server_groups.ServerGroups()

    def weight_multiplier(self, host_state: typing.Any) -> float:
        known = _multipliers.get()
        if known is None:
            # Every weight is 0.
            return 0.0
        # Hosts share the aggregates of the scheduler's memory.
        aggregates = tuple(host_state.aggregates)
        value = known.get(aggregates)
        if value is None:
            value = known[aggregates] = _read_multiplier(host_state)
        return value

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[typing.Any],
        weight_properties: typing.Any,
    ) -> list[float]:
        states = [weighed.obj for weighed in weighed_obj_list]
        order = _order(weight_properties, states, self._groups)
        # nova asks for the multiplier of each host after this.
        _multipliers.set({} if order else None)
        # A host that has no slot, such as one without a domain, is last.
        last = -len(order)
        place = dict(zip(order, range(0, last, -1), strict=True))
        return [place.get(state.host, last) for state in states]

    def _weigh_object(
        self, host_state: typing.Any, weight_properties: typing.Any
    ) -> float:
        # Abstract in nova; a host has a weight only among others.
        return 0.0


def _read_multiplier(host_state: typing.Any) -> float:
    option = CONF.nova_ext_sched.server_group_round_robin_weight_multiplier
    value = utils.get_weight_multiplier(host_state, MULTIPLIER, option)
    # nova takes them, and its order of the hosts is then any.
    if not math.isfinite(value):
        names = sorted(map(fields.aggregate_name, host_state.aggregates))
        LOG_ONCE.warning(
            'server_group_round_robin_weight_multiplier in the metadata of an '
            f'aggregate of {messages.clean(host_state.host)} '
            f'({messages.first_few(names)}): expected a finite number, got '
            f'{value}; the option counts: {option}',
            key=tuple(names),
        )
        return option
    return value


def _order(
    spec_obj: typing.Any,
    states: list[typing.Any],
    groups: server_groups.ServerGroups,
) -> list[str]:
    # The hosts, the best first; none if the weigher is not for the request.
    group = fields.get_field(spec_obj, 'instance_group')
    if not group:
        return []
    members = fields.get_field(group, 'members')
    if members is None:
        # The filters refuse every host.
        return []
    try:
        limit = failure_domain.read_limit(spec_obj)
    except exception.InvalidValue:
        # Here too.
        return []
    policy = fields.group_policy(group)
    if limit is None and policy not in anti_affinity.APART:
        return []
    # Other policies refuse no host, however many members it has.
    rule = _read_rule(group) if policy == anti_affinity.POLICY else math.inf
    server = fields.get_field(spec_obj, 'instance_uuid')
    known = request_state.of(spec_obj).group
    # Before the first pick, too.
    picks = request_state.picks(spec_obj)
    if known.assignment is None:
        known.assignment = groups.find(
            spec_obj,
            [*states, *known.refused.values()],
            rule,
            limit,
            CONF.nova_ext_sched.failure_domain_key,
        )
    for one, host in zip(known.servers, picks, strict=False):
        known.assignment.pick(one, host)
    if server not in known.servers:
        known.servers.append(server)
    return known.assignment.order_hosts(members, server)


def _read_rule(group: typing.Any) -> int:
    try:
        rules = fields.get_field(group, '_rules')
        return anti_affinity.read_limit(rules or {})
    except exception.InvalidValue:
        # ServerGroupAntiAffinityFilter refuses every host.
        return 1
