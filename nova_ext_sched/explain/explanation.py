# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's steps for one request, each asked what it takes away.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule) and HostManager.get_filtered_hosts, run by
nova's own functions. A claim in placement is the one step that is not made.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import copy
import typing

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import filters
from nova.scheduler import request_filter
from nova.scheduler import utils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.explain import funnel
from nova_ext_sched.explain import query
from nova_ext_sched.explain import reasons
from nova_ext_sched.explain import scheduler as explain_scheduler
from nova_ext_sched.filters import base
from nova_ext_sched.request_filters import base as request_filters

CONF = nova.conf.CONF

# The fields of a request that HostManager.get_filtered_hosts looks at.
_REQUESTED = (
    'requested_destination',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
)


class FilterFault(exception.NovaExtSchedError):
    """A filter raised what nova does not expect.

    :param name: of the filter
    :param cause: type and text of the exception
    """

    message = (
        '{name}: expected an answer, got {cause}; nova-scheduler would fail '
        'the request with this error'
    )


class Explanation:
    """Explains requests, one at a time.

    :param scheduler: nova in this process
    :param detailed: UUIDs of compute nodes that every host filter is to
        judge, not only the first that refuses
    :param advance: called after each step
    """

    def __init__(
        self,
        scheduler: explain_scheduler.Scheduler,
        detailed: Collection[str] = (),
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheduler = scheduler
        self._manager = scheduler.host_manager
        self._detailed = frozenset(detailed)
        self._advance = advance
        self._reasons = reasons.Reasons(self._manager.aggs_by_id.values())
        self._providers = query.Providers(scheduler.placement)

    def explain(self, ctxt: typing.Any, spec_obj: typing.Any) -> funnel.Funnel:
        """Run a request through the scheduler's steps.

        :param ctxt: a nova RequestContext
        :param spec_obj: a nova RequestSpec, which changes as in the scheduler
        :raises FilterFault: a filter raised what nova does not expect
        :raises query.PlacementFault: placement does not answer
        """
        self._hosts = self._scheduler.hosts
        self._funnel = funnel.Funnel(
            {uuid: host.name for uuid, host in self._hosts.items()}
        )
        for name, reason in self._scheduler.silent_cells.items():
            self._funnel.remarks.append(
                f'The hosts of cell {messages.quote(name)} are not counted, '
                f'because its database does not answer: {reason}'
            )
        candidates = None
        if not utils.request_is_rebuild(spec_obj):
            resources = self._prepare(ctxt, spec_obj)
            if resources is None:
                return self._funnel
            candidates = query.Candidates(
                ctxt, self._scheduler.placement, resources
            )
            self._advance()
            self._explain_placement(ctxt, resources, candidates)
        states = self._get_host_states(ctxt, spec_obj, candidates)
        states = self._filter(ctxt, spec_obj, states, candidates)
        self._weigh(spec_obj, states, candidates)
        return self._funnel

    def end(self, stage: str, name: str, reason: str) -> funnel.Funnel:
        """Return the funnel of a request that never gets to the scheduler."""
        self._hosts = self._scheduler.hosts
        self._funnel = funnel.Funnel(
            {uuid: host.name for uuid, host in self._hosts.items()}
        )
        self._end(stage, name, reason)
        return self._funnel

    # Request filters and placement.

    def _prepare(
        self, ctxt: typing.Any, spec_obj: typing.Any
    ) -> list[typing.Any] | None:
        """Run the request filters; None where one ends the request."""
        before = query.parts_of(ctxt, spec_obj, self._manager)
        own = list(before)
        #: The parts of each request filter, to be asked about later.
        self._asked: list[tuple[funnel.Constraint, list[query.Part]]] = []
        for request_filter_ in request_filter.ALL_REQUEST_FILTERS:
            name = request_filter_.__name__
            fields = _fields(spec_obj)
            try:
                applied = request_filter_(ctxt, spec_obj)
            except nova_exception.RequestFilterFailed as exc:
                self._end('request filter', name, exc.format_message())
                return None
            except Exception as exc:
                raise _fault(f'request filter {name}', exc) from exc
            after = query.parts_of(ctxt, spec_obj, self._manager)
            new = _merge([part for part in after if part not in before])
            self._asked.append(
                (
                    self._add(
                        'request filter',
                        name,
                        self._effect(applied, new, fields, spec_obj),
                    ),
                    new,
                )
            )
            before = after
            self._advance()
        try:
            resources = query.forms(ctxt, spec_obj, self._manager)
        except nova_exception.NoValidHost as exc:
            self._end('placement', 'query', exc.format_message())
            return None
        self._own = _merge([part for part in before if part in own])
        return resources

    def _effect(
        self,
        applied: bool,
        new: list[query.Part],
        fields: dict[str, typing.Any],
        spec_obj: typing.Any,
    ) -> str:
        if new:
            return '; '.join(self._reasons.describe(part) for part in new)
        after = _fields(spec_obj)
        changed = sorted(
            field
            for field in fields.keys() | after.keys()
            if fields.get(field) != after.get(field)
        )
        if changed:
            return f'changes {", ".join(changed)}'
        return 'changes nothing' if applied else 'does not apply'

    def _explain_placement(
        self,
        ctxt: typing.Any,
        resources: list[typing.Any],
        candidates: query.Candidates,
    ) -> None:
        outside = self._hosts.keys() - candidates.summaries.keys()
        for constraint, parts in self._asked:
            constraint.refused = self._refused(outside, parts)
        self._add(
            'placement',
            'resource provider',
            refused=dict.fromkeys(
                outside - self._providers.roots if outside else (),
                'are unknown to placement: no resource provider',
            ),
        )
        fallback: list[query.Part] = []
        for form in resources[1:]:
            fallback = query.split(form.to_querystring())
        for part in self._own:
            if fallback and part not in fallback:
                continue
            self._add(
                'placement',
                self._reasons.describe(part),
                refused=self._refused(outside, [part]),
            )
            self._advance()
        if fallback:
            self._add_fallback(outside, fallback)
        self._explain_whole(ctxt, resources, candidates, outside)

    def _add_fallback(
        self, outside: set[str], fallback: list[query.Part]
    ) -> None:
        first = [part for part in self._own if part not in fallback]
        second = [part for part in fallback if part not in self._own]
        # What request filters added is in both forms.
        asked = {part for _, parts in self._asked for part in parts}
        second = [part for part in _merge(second) if part not in asked]
        refused = self._refused(outside, first)
        either = self._refused(outside, second)
        texts = [
            ', '.join(self._reasons.describe(part) for part in some)
            for some in (first, second)
        ]
        self._add(
            'placement',
            f'{texts[0]} or, in its place, {texts[1]}',
            'pinned CPUs are asked for in two forms',
            {
                uuid: f'{reason} and {either[uuid]}'
                for uuid, reason in refused.items()
                if uuid in either
            },
        )

    def _explain_whole(
        self,
        ctxt: typing.Any,
        resources: list[typing.Any],
        candidates: query.Candidates,
        outside: set[str],
    ) -> None:
        rest = outside & self._funnel.left
        why = 'have no set of providers that fits the query as a whole'
        if candidates.refusals:
            why = f'are not asked about: {"; ".join(candidates.refusals)}'
        refused = dict.fromkeys(rest, why)
        if rest and candidates.is_full:
            limit = CONF.scheduler.max_placement_results
            for form in resources:
                # As nova itself lifts the limit.
                form._limit = None
            more = query.Candidates(
                ctxt, self._scheduler.placement, resources
            ).summaries
            refused.update(
                dict.fromkeys(
                    rest & more.keys(),
                    f'are left out by max_placement_results ({limit})',
                )
            )
        self._add(
            'placement',
            'query as a whole',
            ' and '.join(
                messages.quote(form.to_querystring(), 2000)
                for form in resources
            ),
            refused,
        )
        self._advance()

    def _refused(
        self, outside: Collection[str], parts: Iterable[query.Part]
    ) -> dict[str, str]:
        """Return the reasons of hosts that placement leaves out."""
        refused: dict[str, str] = {}
        if not outside:
            return refused
        for part in parts:
            if part.forbids:
                found = self._providers.having(part)
            else:
                found = set(outside) - self._providers.satisfying([part])
            for uuid in found.intersection(outside):
                if part.forbids and part.key == 'member_of':
                    reason = self._reasons.forbidding(
                        self._hosts[uuid].host, part
                    )
                else:
                    reason = self._reasons.lack(part)
                refused.setdefault(uuid, reason)
        return refused

    # Hosts.

    def _get_host_states(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates | None,
    ) -> list[typing.Any]:
        uuids = None if candidates is None else candidates.summaries.keys()
        states = self._scheduler.host_states(ctxt, uuids, spec_obj)
        missing = set(self._hosts if uuids is None else uuids)
        missing &= self._hosts.keys()
        missing.difference_update(state.uuid for state in states)
        enabled = {cell.uuid for cell in self._manager.enabled_cells}
        self._add(
            'cell',
            'cells that are asked',
            refused={
                uuid: 'are in another cell than the server, or have no '
                'service record'
                if self._hosts[uuid].cell_uuid in enabled
                else 'are in a disabled cell'
                for uuid in missing
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

    def _filter(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        states: list[typing.Any],
        candidates: query.Candidates | None,
    ) -> list[typing.Any]:
        others = self._get_others(ctxt, states)
        left = self._apply_requested(spec_obj, states, others)
        if not request_filters.host_filters_run(spec_obj):
            self._add(
                'host filter',
                'none',
                'the request forces a host, so that no filter runs',
            )
            return left
        for host_filter in self._manager.enabled_filters:
            name = type(host_filter).__name__
            if not host_filter.run_filter_for_index(0):
                continue
            try:
                passed = _filter_all(host_filter, left, spec_obj)
                refused = self._filter_reasons(
                    host_filter, spec_obj, left, passed
                )
                judged = {state.uuid for state in left}
                for state in others:
                    # One that placement has no candidate for is refused for
                    # that alone.
                    if (
                        isinstance(host_filter, filters.CandidateFilterMixin)
                        and not state.allocation_candidates
                    ):
                        continue
                    judged.add(state.uuid)
                    refused.update(
                        self._filter_reasons(
                            host_filter,
                            spec_obj,
                            [state],
                            _filter_all(host_filter, [state], spec_obj),
                        )
                    )
            except Exception as exc:
                raise _fault(name, exc) from exc
            gone = {state.uuid for state in passed}
            if self._detailed:
                others += [
                    state
                    for state in left
                    if state.uuid in self._detailed and state.uuid not in gone
                ]
            self._add(
                'host filter', name, refused=refused, judged=frozenset(judged)
            )
            left = passed
            self._advance()
        return left

    def _get_others(
        self, ctxt: typing.Any, states: list[typing.Any]
    ) -> list[typing.Any]:
        """Return the states of hosts to judge that are out already."""
        wanted = self._detailed.difference(state.uuid for state in states)
        return self._scheduler.host_states(ctxt, wanted) if wanted else []

    def _apply_requested(
        self,
        spec_obj: typing.Any,
        states: list[typing.Any],
        others: list[typing.Any],
    ) -> list[typing.Any]:
        """Leave the hosts that the request names, by nova's own code."""
        # Without filters what is left is what the request names.
        bare = copy.copy(self._manager)
        bare.enabled_filters = []
        left = states
        for field in _REQUESTED:
            value = getattr(spec_obj, field)
            if not value or (
                field == 'requested_destination' and 'host' not in value
            ):
                continue
            only = spec_obj.obj_clone()
            for other in _REQUESTED:
                if other != field:
                    setattr(only, other, None)
            both = [*states, *others]
            passed = {
                id(state) for state in bare.get_filtered_hosts(both, only)
            }
            named = (
                [value.host]
                if field == 'requested_destination'
                else list(value)
            )
            verb = (
                'are left out by the request'
                if field == 'ignore_hosts'
                else 'are not the host that the request names'
            )
            self._add(
                'requested host',
                field,
                messages.first_few(named),
                {s.uuid: verb for s in both if id(s) not in passed},
                frozenset(s.uuid for s in both),
            )
            others += [
                s
                for s in left
                if id(s) not in passed and s.uuid in self._detailed
            ]
            left = [s for s in left if id(s) in passed]
        return left

    def _filter_reasons(
        self,
        host_filter: typing.Any,
        spec_obj: typing.Any,
        states: list[typing.Any],
        passed: list[typing.Any],
    ) -> dict[str, str]:
        name = type(host_filter).__name__
        kept = {id(state) for state in passed}
        refused = [state for state in states if id(state) not in kept]
        judge = None
        if refused and isinstance(host_filter, base.PolicyFilter):
            judge = host_filter.judge(spec_obj)
        found = {}
        for state in refused:
            reason = f'are refused by {name}'
            if judge is not None:
                reason += f' ({judge(state).reason})'
            elif name == 'ComputeFilter':
                reason = (
                    'are disabled' if state.service['disabled'] else 'are down'
                )
            found[state.uuid] = reason
        return found

    # The order.

    def _weigh(
        self,
        spec_obj: typing.Any,
        states: list[typing.Any],
        candidates: query.Candidates | None,
    ) -> None:
        if candidates is not None:
            empty = [s for s in states if not s.allocation_candidates]
            if empty:
                self._add(
                    'host filter',
                    'allocation candidates',
                    'what the filters left of them',
                    dict.fromkeys(
                        (s.uuid for s in empty),
                        'have no allocation candidate left',
                    ),
                )
            states = [s for s in states if s.allocation_candidates]
        if not states:
            return
        weighed = self._manager.get_weighed_hosts(states, spec_obj)
        self._funnel.order = [(one.obj.uuid, one.weight) for one in weighed]
        self._advance()

    # The funnel.

    def _add(
        self,
        stage: str,
        name: str,
        effect: str = '',
        refused: dict[str, str] | None = None,
        judged: frozenset[str] | None = None,
    ) -> funnel.Constraint:
        constraint = funnel.Constraint(
            stage, name, effect, refused or {}, judged
        )
        self._funnel.constraints.append(constraint)
        return constraint

    def _end(self, stage: str, name: str, reason: str) -> None:
        text = messages.quote(reason.rstrip('.'), 1000)
        self._add(
            stage,
            name,
            f'ends the request: {text}',
            dict.fromkeys(
                self._funnel.left, f'are not asked about ({name}: {text})'
            ),
        )


def _filter_all(
    host_filter: typing.Any, states: list[typing.Any], spec_obj: typing.Any
) -> list[typing.Any]:
    found = host_filter.filter_all(states, spec_obj)
    # nova.filters: None stops the filtering, with no host.
    return [] if found is None else list(found)


def _fields(spec_obj: typing.Any) -> dict[str, typing.Any]:
    return dict(spec_obj.obj_to_primitive()['nova_object.data'])


def _merge(parts: list[query.Part]) -> list[query.Part]:
    """Put the forbidden aggregates into one part, as placement takes them."""
    forbidden = [
        part.value.removeprefix('!in:')
        for part in parts
        if part.key == 'member_of' and part.forbids
    ]
    rest = [
        part
        for part in parts
        if not (part.key == 'member_of' and part.forbids)
    ]
    if forbidden:
        rest.append(query.Part('member_of', f'!in:{",".join(forbidden)}'))
    return rest


def _fault(name: str, exc: Exception) -> FilterFault:
    return FilterFault(name=name, cause=f'{type(exc).__name__}: {exc}')
