# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of server groups: deal the members to the hosts in turn."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextvars
import typing

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from nova_ext_sched import exception
from nova_ext_sched import request_state
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import failure_domains as domains_policy
from nova_ext_sched.policy import round_robin as policy
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import failure_domains
from nova_ext_sched.weighers import circles

CONF = nova.conf.CONF

MULTIPLIER = 'server_group_round_robin_weight_multiplier'

# The multipliers of the request that a thread or greenlet works on, by the
# host's aggregates; None if the weigher is not for the request. To read the
# option and the aggregates of each host would take longer than all the rest.
_multipliers: contextvars.ContextVar[dict[tuple[int, ...], float] | None] = (
    contextvars.ContextVar('multipliers', default=None)
)


class ServerGroupRoundRobinWeigher(weights.BaseHostWeigher):
    """Let the members of a server group prefer different hosts, in turn.

    :mod:`nova_ext_sched.policy.round_robin` makes the decision.

    =====================================  ==================================
    request                                weights
    =====================================  ==================================
    no server group                        0
    policy ``anti-affinity``               by the turns of the hosts
    a limit for failure domains, with any  by the turns of the domains
    policy
    another policy                         0
    rebuild                                nova does not ask: one host
    =====================================  ==================================

    :mod:`nova_ext_sched.weighers.circles` says which hosts have turns.
    """

    def __init__(self) -> None:
        super().__init__()
        self._circles = circles.Circles()

    def weight_multiplier(self, host_state: typing.Any) -> float:
        known = _multipliers.get()
        if known is None:
            # Every weight is 0.
            return 0.0
        # Hosts share the aggregates of the scheduler's memory.
        key = tuple(map(id, host_state.aggregates))
        if key not in known:
            ours = CONF.nova_ext_sched
            known[key] = utils.get_weight_multiplier(
                host_state,
                MULTIPLIER,
                ours.server_group_round_robin_weight_multiplier,
            )
        return known[key]

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[typing.Any],
        weight_properties: typing.Any,
    ) -> list[float]:
        states = [weighed.obj for weighed in weighed_obj_list]
        order = _order(weight_properties, states, self._circles)
        # nova asks for the multiplier of each host after this.
        _multipliers.set({} if order else None)
        # A host that is in no circle, such as one without a domain, is last.
        place = {host: -float(index) for index, host in enumerate(order)}
        last = -float(len(order))
        return [place.get(state.host, last) for state in states]

    def _weigh_object(
        self, host_state: typing.Any, weight_properties: typing.Any
    ) -> float:
        # Abstract in nova; a host has a weight only among others.
        return 0.0


def _order(
    spec_obj: typing.Any,
    states: list[typing.Any],
    found: circles.Circles,
) -> list[str]:
    # The hosts, the best first; none if the weigher is not for the request.
    group = fields.get_field(spec_obj, 'instance_group')
    if not group:
        return []
    try:
        limit = failure_domains.read_limit(spec_obj)
    except exception.InvalidValue:
        # The filters refuse every host.
        return []
    if fields.group_policy(group) == anti_affinity.POLICY:
        rule = _read_rule(group)
    elif limit is not None:
        # Other policies have no rule for a host.
        rule = limit
    else:
        return []
    seed = fields.get_field(group, 'uuid') or ''
    number = _number(group, fields.get_field(spec_obj, 'instance_uuid'))
    hosts = request_state.circles.get(spec_obj)
    if hosts is None:
        hosts = found.find(
            spec_obj,
            [*states, *request_state.refused.get(spec_obj, ())],
            rule,
            None if limit is None else CONF.nova_ext_sched.failure_domain_key,
        )
        request_state.circles[spec_obj] = hosts
    if limit is None:
        room = {name: host.room for name, host in hosts.items()}
        return policy.order_hosts(seed, number, room)
    domains, room = _find_room(
        hosts, limit, request_state.spreads.get(spec_obj)
    )
    return policy.order_hosts_by_domain(seed, number, domains, room)


def _number(group: typing.Any, instance_uuid: str | None) -> int:
    members = fields.get_field(group, 'members') or []
    try:
        return members.index(instance_uuid)
    except ValueError:
        # As the next member.
        return len(members)


def _read_rule(group: typing.Any) -> int:
    try:
        rules = fields.get_field(group, '_rules')
        return anti_affinity.read_limit(rules or {})
    except exception.InvalidValue:
        # ServerGroupAntiAffinityFilter refuses every host.
        return 1


def _find_room(
    hosts: Mapping[str, policy.Host],
    limit: int,
    spread: domains_policy.Spread | None,
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    # Stage 1 leaves full domains out of placement's answer. They had their
    # turns, and keep them.
    held = spread.held if spread else {}
    domains: dict[str, dict[str, int]] = {name: {} for name in held}
    for name, host in hosts.items():
        for domain in host.domains:
            domains.setdefault(domain, {})[name] = host.room
    room = {
        name: min(limit, max(held.get(name, 0), sum(found.values())))
        for name, found in domains.items()
    }
    return domains, room
