# SPDX-License-Identifier: Apache-2.0

"""The candidates' hosts: cells, the hosts that are named, filters, weights."""

import collections
import copy
import typing

from nova import objects
from nova.scheduler import filters
from nova.scheduler import manager
from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.filters import base
from nova_ext_sched.queries import fields

# The fields of a request that HostManager.get_filtered_hosts looks at.
_NAMING = (
    'requested_destination',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
)


class SchedulerManager(manager.SchedulerManager):
    """nova's, from placement's answer on, which tells of each constraint.

    What nova claims in placement, one instance after the other, is counted
    here against the capacities that placement gave with the candidates.

    :param found: gets the constraints and the order
    :param candidates: None for a rebuild, which placement is not asked about
    """

    def __init__(
        self,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        found: funnel.Funnel,
        candidates: query.Candidates | None,
    ) -> None:
        self.host_manager = scheduler
        self._funnel = found
        self._candidates = candidates
        self._summaries: typing.Any = None
        if candidates is not None:
            self._summaries = candidates.summaries
        self._claimed: collections.Counter[tuple[str, str]] = (
            collections.Counter()
        )
        # HostStates: those that no constraint refused, and those that are out
        # and to be judged by what follows all the same.
        self._left: list[typing.Any] = []
        self._out: list[typing.Any] = []

    def judge(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        """Add the constraints, and the order of the hosts left."""
        number = spec_obj.num_instances
        uuids = [uuidutils.generate_uuid() for _ in range(number)]
        uuids[0] = spec_obj.instance_uuid
        by_provider = None
        if self._candidates is not None:
            by_provider = collections.defaultdict(list)
            for one in self._candidates.requests:
                for uuid in one['allocations']:
                    by_provider[uuid].append(one)
        picked = len(
            self._schedule(ctxt, spec_obj, uuids, by_provider, self._summaries)
        )
        if picked < number and self._left:
            self._funnel.shortage = (
                f'Only {picked} of {number} instances find a host, and nova '
                f'then creates none'
            )

    # What nova's _schedule calls.

    def _get_all_host_states(
        self, ctxt: typing.Any, spec_obj: typing.Any, summaries: typing.Any
    ) -> list[typing.Any]:
        states = list(super()._get_all_host_states(ctxt, spec_obj, summaries))
        hosts = self.host_manager.hosts
        found = {state.uuid for state in states}
        enabled = {cell.uuid for cell in self.host_manager.enabled_cells}
        self._funnel.add(
            'cell',
            'requested cells',
            refused={
                uuid: 'are not in the requested cell'
                if hosts[uuid].cell_uuid in enabled
                else 'are in a disabled cell'
                for uuid in (hosts if summaries is None else summaries)
                # Other providers are no hosts.
                if uuid in hosts and uuid not in found
            },
        )
        missing = [uuid for uuid in self._funnel.detailed if uuid not in found]
        if missing:
            self._out = list(
                self.host_manager.get_host_states_by_uuids(ctxt, missing, None)
            )
        return states

    def _get_sorted_hosts(
        self, spec_obj: typing.Any, states: typing.Any, index: int
    ) -> list[typing.Any]:
        if index:
            return super()._get_sorted_hosts(spec_obj, states, index)
        self._left = list(states)
        self._apply_names(spec_obj)
        if fields.host_filters_run(spec_obj):
            for host_filter in self.host_manager.enabled_filters:
                if host_filter.run_filter_for_index(0):
                    self._apply_filter(host_filter, spec_obj)
        else:
            self._funnel.add(
                'host filter',
                'none',
                'no filter runs, because the request forces a host',
            )
        if self._candidates is not None:
            self._require_candidates()
        if not self._left:
            return []
        weighed = self.host_manager.get_weighed_hosts(self._left, spec_obj)
        self._funnel.order = [(one.obj.uuid, one.weight) for one in weighed]
        return [one.obj for one in weighed]

    @property
    def placement_client(self) -> typing.Any:
        return self

    def claim_resources(
        self,
        ctxt: object,
        uuid: str,
        request: typing.Any,
        *_: object,
        **__: object,
    ) -> bool:
        wanted = {
            (provider, name): amount
            for provider, one in request['allocations'].items()
            for name, amount in one['resources'].items()
        }
        for (provider, name), amount in wanted.items():
            found = self._summaries[provider]['resources'][name]
            taken = found['used'] + self._claimed[provider, name]
            if taken + amount > found['capacity']:
                return False
        self._claimed.update(wanted)
        return True

    def _ensure_sufficient_hosts(self, *_: object) -> None:
        pass

    def _get_alternate_hosts(
        self, hosts: list[typing.Any], *_: object
    ) -> list[typing.Any]:
        return hosts

    def _apply_names(self, spec_obj: typing.Any) -> None:
        """Leave the hosts that the request names, by nova's own code."""
        # Without filters what is left is what the request names.
        bare = copy.copy(self.host_manager)
        bare.enabled_filters = []
        for field in _NAMING:
            value = getattr(spec_obj, field)
            reason = 'are not the requested host'
            if field == 'requested_destination':
                value = [value.host] if value and 'host' in value else None
            elif field == 'ignore_hosts':
                reason = 'are excluded by the request'
            if not value:
                continue
            only = objects.RequestSpec(
                instance_uuid=spec_obj.instance_uuid, **dict.fromkeys(_NAMING)
            )
            setattr(only, field, getattr(spec_obj, field))
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

    def _apply_filter(
        self, host_filter: typing.Any, spec_obj: typing.Any
    ) -> None:
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
                found = host_filter.filter_all(states, spec_obj) or ()
                passed |= {state.uuid for state in found}
            refused = _get_reasons(
                host_filter,
                spec_obj,
                [state for state in judged if state.uuid not in passed],
            )
        except Exception as exc:
            raise nova_scheduler.FilterFailed(
                name=name, cause=messages.describe(exc)
            ) from exc
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
