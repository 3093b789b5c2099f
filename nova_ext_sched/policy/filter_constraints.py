# SPDX-License-Identifier: Apache-2.0

"""What the host filters of ours say of the hosts that placement returns.

The decisions are the policies' own, those that the filters in the scheduler
call. Of nova's filters only ComputeFilter is judged, because the API tells
what it looks at; the names of the others are returned to be reported.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import isolation_demands
from nova_ext_sched.policy import placement_query
from nova_ext_sched.policy import reservation_demands
from nova_ext_sched.policy import scheduling
from nova_ext_sched.policy import verdict

STAGE = 'host filter'

Judge = Callable[[explanation.Host], explanation.Refusal | None]


def constraints(
    request: scheduling.Request,
    options: scheduling.Options,
    query: placement_query.Query,
    aggregates: Sequence[explanation.Aggregate],
    members: Mapping[str, Sequence[str]],
) -> tuple[list[explanation.Constraint], list[str]]:
    """Return the constraints of the enabled host filters.

    :param members: the members of the server group by their host's name
    :returns: the constraints in the order of ``enabled_filters``, and the
        names of the filters that are not judged here
    """
    if request.forced:
        return [], []
    found = []
    unknown = []
    for name in options.enabled_filters:
        if name == 'ComputeFilter':
            found.append(_named(name, 'nova-compute up and enabled', _alive))
        elif name == 'IsolatedAggregatesFilter':
            if options.enable_isolated_aggregate_filtering:
                found.append(_isolation(name, query, aggregates))
            found += _reservation(name, request, options)
        elif name == 'AggregateInstanceTypeFilter':
            found.append(_instance_type(name, request, options))
        elif name == 'ServerGroupAntiAffinityFilter':
            group = request.group
            if group and group.policy == anti_affinity.POLICY:
                found.append(_anti_affinity(name, group, request, members))
        else:
            unknown.append(name)
    return found, unknown


def _named(name: str, words: str, judge: Judge) -> explanation.Constraint:
    return explanation.Constraint(STAGE, f'{name}: {words}', judge)


def _alive(host: explanation.Host) -> explanation.Refusal | None:
    if not host.enabled:
        why = host.disabled_reason or 'no reason is given'
        return explanation.Refusal(
            'are disabled', f'nova-compute is disabled: {why}'
        )
    if not host.up:
        return explanation.Refusal('are down', 'nova-compute is down')
    return None


def _isolation(
    name: str,
    query: placement_query.Query,
    aggregates: Sequence[explanation.Aggregate],
) -> explanation.Constraint:
    required = query.required_traits
    missing = isolation_demands.missing_traits(aggregates, required)

    def judge(host: explanation.Host) -> explanation.Refusal | None:
        passes, reason = isolation.judge(
            ((a.name, a.metadata) for a in host.aggregates), required
        )
        if passes:
            return None
        refusal = isolation_demands.isolated(host, missing)
        assert refusal is not None
        return explanation.Refusal(refusal.phrase, reason)

    described = isolation_demands.describe_isolated(aggregates, missing)
    return _named(name, f'isolated aggregates: {described or "none"}', judge)


def _reservation(
    name: str, request: scheduling.Request, options: scheduling.Options
) -> list[explanation.Constraint]:
    compiled = reservation_demands.compile_request(request, options)
    if compiled is None:
        return []

    def judge(host: explanation.Host) -> explanation.Refusal | None:
        return _refusal(
            'are refused by reserved aggregates',
            compiled.judge((a.name, a.metadata) for a in host.aggregates),
        )

    words = ', '.join(compiled.required) or 'none named'
    return [_named(name, f'reserved aggregates: {words}', judge)]


def _instance_type(
    name: str, request: scheduling.Request, options: scheduling.Options
) -> explanation.Constraint:
    decision = aggregate_instance_type.Decision(
        request.flavor,
        request.extra_specs,
        options.force_metadata_check_ignored_keys,
        (
            *options.placement_req_required_member_prefix,
            *options.placement_req_default_forbidden_member_prefix,
        ),
    )
    # Hosts that share their aggregates share the verdict.
    verdicts: dict[tuple[str, ...], verdict.Verdict] = {}

    def judge(host: explanation.Host) -> explanation.Refusal | None:
        key = tuple(aggregate.uuid for aggregate in host.aggregates)
        if key not in verdicts:
            verdicts[key] = decision.judge(
                [(a.name, a.metadata) for a in host.aggregates]
            )
        return _refusal(
            f'are refused by the extra specs of flavor {request.flavor}',
            verdicts[key],
        )

    wanted = ', '.join(
        f'{key}={value}' for key, value in sorted(request.extra_specs.items())
    )
    return _named(
        name,
        f'extra specs of flavor {request.flavor} ({wanted or "none"}) and '
        'metadata of aggregates',
        judge,
    )


def _anti_affinity(
    name: str,
    group: scheduling.ServerGroup,
    request: scheduling.Request,
    members: Mapping[str, Sequence[str]],
) -> explanation.Constraint:
    compiled = anti_affinity.Group(group.name, group.members, group.rules)
    rules = ', '.join(f'{k}={v}' for k, v in sorted(group.rules.items()))

    def judge(host: explanation.Host) -> explanation.Refusal | None:
        return _refusal(
            f'are refused by the anti-affinity of server group {group.name}',
            compiled.judge(members.get(host.name, ()), request.server),
        )

    return _named(
        name,
        f'server group {group.name} ({rules or "max_server_per_host=1"})',
        judge,
    )


def _refusal(
    phrase: str, found: verdict.Verdict
) -> explanation.Refusal | None:
    if found.passes:
        return None
    return explanation.Refusal(phrase, found.reason)
