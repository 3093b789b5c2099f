# SPDX-License-Identifier: Apache-2.0

"""Why a host filter refuses hosts, as far as it says."""

from collections.abc import Iterable
import typing

import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.cmd.explain import causes
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.filters import base
from nova_ext_sched.filters import isolated_aggregates
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import reserved_aggregates

CONF = nova.conf.CONF


def explain(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    refused: Iterable[typing.Any],
) -> dict[str, funnel.Refusal]:
    """Return why a filter refused hosts, by UUID.

    :param refused: nova HostStates
    """
    refused = list(refused)
    if not refused:
        return {}
    name = type(host_filter).__name__
    if name == 'ComputeFilter':
        return {
            state.uuid: funnel.Refusal('are disabled', causes.DISABLED)
            if state.service['disabled']
            else funnel.Refusal('are down', 'service that is down')
            for state in refused
        }
    if isinstance(host_filter, isolated_aggregates.IsolatedAggregatesFilter):
        return _explain_aggregates(host_filter, spec_obj, refused)
    kind = f'are refused by {name}'
    cause = causes.OF_HOST_FILTERS.get(name, '')
    judge = None
    if isinstance(host_filter, base.PolicyFilter):
        judge = host_filter.judge(spec_obj)
    return {
        state.uuid: funnel.Refusal(
            kind, cause, detail=judge(state).reason if judge else ''
        )
        for state in refused
    }


def _explain_aggregates(
    host_filter: isolated_aggregates.IsolatedAggregatesFilter,
    spec_obj: typing.Any,
    refused: list[typing.Any],
) -> dict[str, funnel.Refusal]:
    # The filter stops at the first policy that refuses; to lift one alone
    # would not free a host that both refuse.
    decisions = []
    if CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
        decide = host_filter.compile_isolation(spec_obj)
        decisions.append((causes.ISOLATION, decide))
    if reserved_aggregates.rules().prefixes:
        decide = host_filter.compile_reservation(spec_obj)
        decisions.append((causes.RESERVATION, decide))

    def judge(aggregates: list[typing.Any]) -> funnel.Refusal:
        described = fields.names_and_metadata(
            sorted(aggregates, key=fields.aggregate_name)
        )
        found = [
            (cause, decide, reason)
            for cause, decide in decisions
            for passes, reason in [decide(described)]
            if not passes
        ]
        if not found:
            return funnel.Refusal(
                'are refused by IsolatedAggregatesFilter', causes.ISOLATION
            )
        cause, decide, reason = found[0]
        kind, name = causes.KINDS[cause], ''
        if decide([]).reason == reason:
            # Whatever its aggregates are: it lacks one.
            kind = 'are in no aggregate that the request names'
        else:
            name = next(
                (
                    one
                    for one, metadata in described
                    if not decide([(one, metadata)]).passes
                ),
                '',
            )
        return funnel.Refusal(
            kind,
            cause,
            messages.clean(name),
            reason,
            tuple(other for other, *_ in found[1:]),
        )

    # Many hosts share their aggregates.
    judged: dict[tuple[int, ...], funnel.Refusal] = {}
    reasons = {}
    for state in refused:
        key = tuple(map(id, state.aggregates))
        if key not in judged:
            judged[key] = judge(state.aggregates)
        reasons[state.uuid] = judged[key]
    return reasons
