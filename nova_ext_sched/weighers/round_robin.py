# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of server groups: deal the members to the hosts in turn."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
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

CONF = nova.conf.CONF

MULTIPLIER = 'server_group_round_robin_weight_multiplier'


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

    The turns go over the hosts that passed the filters of the first server
    of the request, and those that our filters refused for the group's sake.
    """

    # The option, as of the latest request: nova asks for the multiplier of
    # each host, and reading an option takes longer than all the rest.
    _multiplier: float | None = None

    def weight_multiplier(self, host_state: typing.Any) -> float:
        if self._multiplier is None:
            self._read_option()
        multiplier: float = utils.get_weight_multiplier(
            host_state, MULTIPLIER, self._multiplier
        )
        return multiplier

    def _read_option(self) -> None:
        ours = CONF.nova_ext_sched
        self._multiplier = ours.server_group_round_robin_weight_multiplier

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[typing.Any],
        weight_properties: typing.Any,
    ) -> list[float]:
        self._read_option()
        states = [weighed.obj for weighed in weighed_obj_list]
        order = _order(weight_properties, states)
        # A host that is in no circle, such as one without a domain, is last.
        place = {host: -float(index) for index, host in enumerate(order)}
        last = -float(len(order))
        return [place.get(state.host, last) for state in states]

    def _weigh_object(
        self, host_state: typing.Any, weight_properties: typing.Any
    ) -> float:
        # Abstract in nova; a host has a weight only among others.
        return 0.0


def _order(spec_obj: typing.Any, states: list[typing.Any]) -> list[str]:
    # The hosts, the best first; none if the weigher is not for the request.
    group = fields.get_field(spec_obj, 'instance_group')
    if not group:
        return []
    try:
        limit = failure_domains.read_limit(spec_obj)
    except exception.InvalidValue:
        # The filters refuse every host.
        return []
    is_anti_affinity = fields.group_policy(group) == anti_affinity.POLICY
    if limit is None and not is_anti_affinity:
        return []
    seed = fields.get_field(group, 'uuid') or ''
    number = _number(group, fields.get_field(spec_obj, 'instance_uuid'))
    hosts = request_state.circles.get(spec_obj)
    if hosts is None:
        hosts = _read_hosts(
            [*states, *request_state.refused.get(spec_obj, ())],
            None if limit is None else CONF.nova_ext_sched.failure_domain_key,
        )
        request_state.circles[spec_obj] = hosts
    if limit is None:
        return policy.order_hosts(seed, number, hosts)
    domains, room = _find_room(
        hosts,
        limit,
        _read_rule(group) if is_anti_affinity else limit,
        request_state.spreads.get(spec_obj),
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


def _read_hosts(
    states: Iterable[typing.Any], key: str | None
) -> Mapping[str, frozenset[str]]:
    # Each host's failure domains. By the host, not its nodes: it is what
    # holds members, and a service of ironic has many nodes.
    if key is None:
        return dict.fromkeys((state.host for state in states), frozenset())
    # Hosts share the aggregates of the scheduler's memory.
    known: dict[tuple[int, ...], frozenset[str]] = {}
    hosts = {}
    for state in states:
        aggregates = tuple(map(id, state.aggregates))
        if aggregates not in known:
            known[aggregates] = domains_policy.read_domains(
                map(fields.aggregate_metadata, state.aggregates), key
            )
        hosts[state.host] = known[aggregates]
    return hosts


def _find_room(
    hosts: Mapping[str, frozenset[str]],
    limit: int,
    rule: int,
    spread: domains_policy.Spread | None,
) -> tuple[dict[str, list[str]], dict[str, int]]:
    # Stage 1 leaves full domains out of placement's answer. They had their
    # turns, and keep them.
    held = spread.held if spread else {}
    domains: dict[str, list[str]] = {name: [] for name in held}
    for host, names in hosts.items():
        for name in names:
            domains.setdefault(name, []).append(host)
    room = {
        name: min(limit, max(held.get(name, 0), rule * len(found)))
        for name, found in domains.items()
    }
    return domains, room
