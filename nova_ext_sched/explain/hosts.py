# SPDX-License-Identifier: Apache-2.0

"""The candidates' hosts: cells, the hosts that are named, filters, weights."""

import collections
from collections.abc import Callable
import copy
import typing

from nova.scheduler import filters

from nova_ext_sched import messages
from nova_ext_sched.explain import faults
from nova_ext_sched.explain import funnel
from nova_ext_sched.explain import picks
from nova_ext_sched.explain import query
from nova_ext_sched.explain import scheduler as explain_scheduler
from nova_ext_sched.filters import base
from nova_ext_sched.request_filters import base as request_filters

# The fields of a request that HostManager.get_filtered_hosts looks at.
_NAMING = (
    'requested_destination',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
)


class Hosts:
    """Judges hosts as nova's HostManager does, one constraint at a time.

    :param found: gets the constraints and the order
    :param detailed: UUIDs of the hosts that every constraint is to judge
    :param advance: called after each step
    """

    def __init__(
        self,
        scheduler: explain_scheduler.Scheduler,
        found: funnel.Funnel,
        detailed: frozenset[str],
        advance: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._manager = scheduler.host_manager
        self._funnel = found
        self._detailed = detailed
        self._advance = advance

    def judge(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates | None,
    ) -> None:
        """Add the constraints, and the order of the hosts left.

        :param ctxt: a nova RequestContext
        :param spec_obj: a nova RequestSpec
        :param candidates: None for a rebuild, which placement is not asked
            about
        """
        states = self._get_states(ctxt, spec_obj, candidates)
        # Hosts that are out and yet to be judged by what follows.
        missing = self._detailed.difference(state.uuid for state in states)
        out = self._scheduler.host_states(ctxt, missing) if missing else []
        left = self._apply_names(spec_obj, states, out)
        if request_filters.host_filters_run(spec_obj):
            left = self._apply_filters(spec_obj, left, out)
        else:
            self._funnel.add(
                'host filter',
                'none',
                'no filter runs, because the request forces a host',
            )
        if candidates is not None:
            left = self._with_candidates(left)
        if left:
            weighed = self._manager.get_weighed_hosts(left, spec_obj)
            self._funnel.order = [
                (one.obj.uuid, one.weight) for one in weighed
            ]
            self._advance()
        if candidates is not None and spec_obj.num_instances > 1:
            number = picks.count(
                self._manager, spec_obj, states, candidates.summaries
            )
            if number < spec_obj.num_instances:
                self._funnel.shortage = (
                    f'Only {number} of {spec_obj.num_instances} instances '
                    f'find a host, and nova then creates none'
                )

    def _get_states(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates | None,
    ) -> list[typing.Any]:
        hosts = self._scheduler.hosts
        wanted = None if candidates is None else candidates.summaries.keys()
        states = self._scheduler.host_states(ctxt, wanted, spec_obj)
        gone = hosts.keys() if wanted is None else hosts.keys() & wanted
        enabled = {cell.uuid for cell in self._manager.enabled_cells}
        self._funnel.add(
            'cell',
            'requested cells',
            refused={
                uuid: 'are not in the requested cell'
                if hosts[uuid].cell_uuid in enabled
                else 'are in a disabled cell'
                for uuid in gone - {state.uuid for state in states}
            },
        )
        if candidates is not None:
            by_provider = collections.defaultdict(list)
            for one in candidates.requests:
                for uuid in one['allocations']:
                    by_provider[uuid].append(one)
            for state in states:
                state.allocation_candidates = copy.deepcopy(
                    by_provider[state.uuid]
                )
        self._advance()
        return states

    def _apply_names(
        self,
        spec_obj: typing.Any,
        states: list[typing.Any],
        out: list[typing.Any],
    ) -> list[typing.Any]:
        """Leave the hosts that the request names, by nova's own code."""
        # Without filters what is left is what the request names.
        bare = copy.copy(self._manager)
        bare.enabled_filters = []
        left = states
        for field in _NAMING:
            value = getattr(spec_obj, field)
            reason = 'are not the requested host'
            if field == 'requested_destination':
                if not value or 'host' not in value:
                    continue
                value = [value.host]
            elif field == 'ignore_hosts':
                reason = 'are excluded by the request'
            if not value:
                continue
            only = spec_obj.obj_clone()
            for other in _NAMING:
                if other != field:
                    setattr(only, other, None)
            judged = [*left, *out]
            passed = {
                state.uuid for state in bare.get_filtered_hosts(judged, only)
            }
            self._funnel.add(
                'requested host',
                field,
                messages.first_few(value),
                {s.uuid: reason for s in judged if s.uuid not in passed},
                frozenset(state.uuid for state in judged),
            )
            left = self._leave(left, passed, out)
        return left

    def _apply_filters(
        self,
        spec_obj: typing.Any,
        left: list[typing.Any],
        out: list[typing.Any],
    ) -> list[typing.Any]:
        for host_filter in self._manager.enabled_filters:
            if not host_filter.run_filter_for_index(0):
                continue
            name = type(host_filter).__name__
            # A filter of candidates refuses what has none.
            others = [
                state
                for state in out
                if state.allocation_candidates
                or not isinstance(host_filter, filters.CandidateFilterMixin)
            ]
            try:
                passed = _run(host_filter, left, spec_obj)
                for state in others:
                    passed |= _run(host_filter, [state], spec_obj)
                refused = [
                    state
                    for state in [*left, *others]
                    if state.uuid not in passed
                ]
                reasons = _get_reasons(host_filter, spec_obj, refused)
            except Exception as exc:
                raise faults.FilterFault(name, exc) from exc
            self._funnel.add(
                'host filter',
                name,
                refused=reasons,
                judged=frozenset(state.uuid for state in [*left, *others]),
            )
            left = self._leave(left, passed, out)
            self._advance()
        return left

    def _leave(
        self,
        left: list[typing.Any],
        passed: set[str],
        out: list[typing.Any],
    ) -> list[typing.Any]:
        """Return those that passed; the rest that is asked about goes out."""
        out += [
            state
            for state in left
            if state.uuid not in passed and state.uuid in self._detailed
        ]
        return [state for state in left if state.uuid in passed]

    def _with_candidates(self, left: list[typing.Any]) -> list[typing.Any]:
        empty = [
            state.uuid for state in left if not state.allocation_candidates
        ]
        if empty:
            self._funnel.add(
                'host filter',
                'allocation candidates',
                'candidates that the filters left',
                dict.fromkeys(empty, 'have no allocation candidate left'),
            )
        return [state for state in left if state.allocation_candidates]


def _run(
    host_filter: typing.Any, states: list[typing.Any], spec_obj: typing.Any
) -> set[str]:
    found = host_filter.filter_all(states, spec_obj)
    # nova.filters: None stops the filtering, with no host.
    return {state.uuid for state in found or ()}


def _get_reasons(
    host_filter: typing.Any, spec_obj: typing.Any, refused: list[typing.Any]
) -> dict[str, str]:
    name = type(host_filter).__name__
    if not refused:
        return {}
    if isinstance(host_filter, base.PolicyFilter):
        judge = host_filter.judge(spec_obj)
        if judge is not None:
            return {
                state.uuid: f'are refused by {name} ({judge(state).reason})'
                for state in refused
            }
    if name == 'ComputeFilter':
        return {
            state.uuid: 'are disabled'
            if state.service['disabled']
            else 'are down'
            for state in refused
        }
    return {state.uuid: f'are refused by {name}' for state in refused}
