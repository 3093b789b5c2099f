# SPDX-License-Identifier: Apache-2.0

"""The candidates' hosts: cells, the hosts that are named, filters, weights."""

import collections
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
    :param ctxt: a nova RequestContext
    :param spec_obj: a nova RequestSpec
    :param candidates: None for a rebuild, which placement is not asked about
    """

    def __init__(
        self,
        scheduler: explain_scheduler.Scheduler,
        found: funnel.Funnel,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates | None,
    ) -> None:
        self._scheduler = scheduler
        self._funnel = found
        self._ctxt = ctxt
        self._spec_obj = spec_obj
        self._candidates = candidates
        # HostStates: those that no constraint refused, and those that are out
        # and to be judged by what follows all the same.
        self._left: list[typing.Any] = []
        self._out: list[typing.Any] = []

    def judge(self) -> None:
        """Add the constraints, and the order of the hosts left."""
        spec_obj, candidates = self._spec_obj, self._candidates
        self._read_states()
        states = self._left
        self._apply_names()
        if request_filters.host_filters_run(spec_obj):
            for host_filter in self._scheduler.enabled_filters:
                if host_filter.run_filter_for_index(0):
                    self._apply_filter(host_filter)
        else:
            self._funnel.add(
                'host filter',
                'none',
                'no filter runs, because the request forces a host',
            )
        if candidates is not None:
            self._require_candidates()
        if self._left:
            weighed = self._scheduler.get_weighed_hosts(self._left, spec_obj)
            self._funnel.order = [
                (one.obj.uuid, one.weight) for one in weighed
            ]
        if candidates is not None and spec_obj.num_instances > 1:
            picker = picks.Picker(self._scheduler, candidates.summaries)
            number = picker.count(self._ctxt, spec_obj, states)
            if number < spec_obj.num_instances:
                self._funnel.shortage = (
                    f'Only {number} of {spec_obj.num_instances} instances '
                    f'find a host, and nova then creates none'
                )

    def _get_states(
        self, uuids: list[str] | None, spec_obj: typing.Any
    ) -> list[typing.Any]:
        return list(
            self._scheduler.get_host_states_by_uuids(
                self._ctxt.elevated(), uuids, spec_obj
            )
        )

    def _read_states(self) -> None:
        hosts = self._scheduler.hosts
        wanted = None
        if self._candidates is not None:
            wanted = list(self._candidates.summaries)
        self._left = self._get_states(wanted, self._spec_obj)
        found = {state.uuid for state in self._left}
        enabled = {cell.uuid for cell in self._scheduler.enabled_cells}
        self._funnel.add(
            'cell',
            'requested cells',
            refused={
                uuid: 'are not in the requested cell'
                if hosts[uuid].cell_uuid in enabled
                else 'are in a disabled cell'
                for uuid in (hosts if wanted is None else wanted)
                # Other providers are no hosts.
                if uuid in hosts and uuid not in found
            },
        )
        missing = [uuid for uuid in self._funnel.detailed if uuid not in found]
        if missing:
            self._out = self._get_states(missing, None)
        if self._candidates is None:
            return
        by_provider = collections.defaultdict(list)
        for one in self._candidates.requests:
            for uuid in one['allocations']:
                by_provider[uuid].append(one)
        for state in self._left:
            state.allocation_candidates = copy.deepcopy(
                by_provider[state.uuid]
            )

    def _apply_names(self) -> None:
        """Leave the hosts that the request names, by nova's own code."""
        # Without filters what is left is what the request names.
        bare = copy.copy(self._scheduler)
        bare.enabled_filters = []
        for field in _NAMING:
            value = getattr(self._spec_obj, field)
            reason = 'are not the requested host'
            if field == 'requested_destination':
                value = [value.host] if value and 'host' in value else None
            elif field == 'ignore_hosts':
                reason = 'are excluded by the request'
            if not value:
                continue
            only = self._spec_obj.obj_clone()
            for other in _NAMING:
                if other != field:
                    setattr(only, other, None)
            judged = [*self._left, *self._out]
            passed = {
                state.uuid for state in bare.get_filtered_hosts(judged, only)
            }
            self._add(
                'requested host',
                field,
                messages.first_few(value),
                judged,
                {s.uuid: reason for s in judged if s.uuid not in passed},
            )

    def _apply_filter(self, host_filter: typing.Any) -> None:
        name = type(host_filter).__name__
        # A filter of candidates refuses what has none.
        others = [
            state
            for state in self._out
            if state.allocation_candidates
            or not isinstance(host_filter, filters.CandidateFilterMixin)
        ]
        judged = [*self._left, *others]
        try:
            passed: set[str] = set()
            for states in (self._left, *([state] for state in others)):
                # nova.filters: None stops the filtering, with no host.
                found = host_filter.filter_all(states, self._spec_obj) or ()
                passed |= {state.uuid for state in found}
            refused = _get_reasons(
                host_filter,
                self._spec_obj,
                [state for state in judged if state.uuid not in passed],
            )
        except Exception as exc:
            raise faults.FilterFault(name, exc) from exc
        self._add('host filter', name, '', judged, refused)

    def _add(
        self,
        stage: str,
        name: str,
        effect: str,
        judged: list[typing.Any],
        refused: dict[str, str],
    ) -> None:
        """Add a constraint, and sort the hosts that it refuses out."""
        uuids = {state.uuid for state in judged}
        self._funnel.add(stage, name, effect, refused, uuids)
        self._out += [
            state
            for state in self._left
            if state.uuid in refused and state.uuid in self._funnel.detailed
        ]
        self._left = [s for s in self._left if s.uuid not in refused]

    def _require_candidates(self) -> None:
        empty = [s for s in self._left if not s.allocation_candidates]
        if empty:
            self._add(
                'host filter',
                'allocation candidates',
                'candidates that the filters left',
                empty,
                {s.uuid: 'have no allocation candidate left' for s in empty},
            )


def _get_reasons(
    host_filter: typing.Any, spec_obj: typing.Any, refused: list[typing.Any]
) -> dict[str, str]:
    name = type(host_filter).__name__
    judge = None
    if refused and isinstance(host_filter, base.PolicyFilter):
        judge = host_filter.judge(spec_obj)
    reasons = {}
    for state in refused:
        if name == 'ComputeFilter':
            disabled = state.service['disabled']
            reason = 'are disabled' if disabled else 'are down'
        else:
            reason = f'are refused by {name}'
            if judge is not None:
                reason += f' ({judge(state).reason})'
        reasons[state.uuid] = reason
    return reasons
