# SPDX-License-Identifier: Apache-2.0

"""The candidates' hosts: cells, the hosts that are named, filters, weights."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import copy
import typing
import weakref

from nova import objects
from nova.scheduler import filters
from nova.scheduler import manager
from nova.scheduler import utils
from nova.scheduler.filters import numa_topology_filter
from oslo_log import log as logging
from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons
from nova_ext_sched.queries import fields

LOG = logging.getLogger(__name__)

_REFUSED = funnel.Refusal('are refused')

# The fields of a request that HostManager.get_filtered_hosts looks at.
_NAMING = (
    'requested_destination',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
)


class SchedulerManager(manager.SchedulerManager):
    """nova's SchedulerManager, which notes what each of its steps refuses.

    It runs what nova does after placement's answer: cells, requested hosts,
    host filters, weighers. Nothing is claimed in placement. For a request of
    several instances, each claim is counted against the capacities in
    placement's answer.

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
            self._claims = claims.Claims(candidates.summaries)
        #: HostStates of the hosts left, the best first.
        self.order: list[typing.Any] = []
        # HostStates: those that no constraint refused, and those that are out
        # and judged by what follows all the same.
        self._left: list[typing.Any] = []
        self._out: list[typing.Any] = []

    def judge(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        """Add the constraints, and the order of the hosts left."""
        number = spec_obj.num_instances
        uuids = [uuidutils.generate_uuid() for _ in range(number)]
        uuids[0] = spec_obj.instance_uuid
        if spec_obj.instance_group is not None and number > 1:
            # nova-api makes all of them members before it asks the scheduler.
            group = spec_obj.instance_group
            members = fields.get_field(group, 'members') or []
            group.members = [*members, *uuids]
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
                'Only '
                + messages.part(
                    picked, number, 'instance', 'finds a host', 'find a host'
                )
                + ', and nova then creates none'
            )

    # What nova's _schedule calls.

    def _get_all_host_states(
        self, ctxt: typing.Any, spec_obj: typing.Any, summaries: typing.Any
    ) -> list[typing.Any]:
        states = list(super()._get_all_host_states(ctxt, spec_obj, summaries))
        hosts = self.host_manager.hosts
        found = {state.uuid for state in states}
        enabled = {cell.uuid for cell in self.host_manager.enabled_cells}
        allowed = enabled
        if cell := get_cell(spec_obj):
            allowed = {cell}
        candidates = hosts if summaries is None else summaries
        disabled = funnel.Refusal('are in a disabled cell', 'disabled cell')
        elsewhere = funnel.Refusal(policies.CELL.refuses, policies.CELL.name)
        self._funnel.add(
            'cell',
            'requested cells',
            refused={
                uuid: elsewhere if host.cell_uuid in enabled else disabled
                for uuid, host in hosts.items()
                if uuid not in found
                and (uuid in candidates or host.cell_uuid not in allowed)
            },
        )
        if self._funnel.whole and len(found) < len(hosts):
            self._out = list(
                self.host_manager.get_host_states_by_uuids(
                    ctxt, list(hosts.keys() - found), None
                )
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
        if self._funnel.whole:
            self._weigh(spec_obj)
        self.order = [one.obj for one in weighed]
        return list(self.order)

    def _weigh(self, spec_obj: typing.Any) -> None:
        """Note what each weigher gives, as nova multiplies and adds it."""
        manager = self.host_manager
        # nova does not weigh a single host.
        for weigher in manager.weighers if len(self._left) > 1 else ():
            for one in manager.weight_handler.get_weighed_objects(
                [weigher], self._left, spec_obj
            ):
                self._funnel.weights.setdefault(one.obj.uuid, {})[
                    type(weigher).__name__
                ] = one.weight

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
        return self._claims.take(request)

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
            refusal = funnel.Refusal(
                policies.REQUESTED_HOST.refuses,
                policies.REQUESTED_HOST.name,
                # A rebuild is where the server is, or nowhere.
                lifts=not utils.request_is_rebuild(spec_obj),
            )
            if field == 'requested_destination':
                value = [value.host] if value and 'host' in value else None
            elif field == 'ignore_hosts':
                refusal = funnel.Refusal(
                    'are excluded by the request',
                    funnel.IGNORED_HOST,
                    lifts=False,
                )
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
                {s.uuid: refusal for s in judged if s.uuid not in passed},
            )

    def _apply_filter(
        self, host_filter: typing.Any, spec_obj: typing.Any
    ) -> None:
        name = type(host_filter).__name__
        try:
            refused = self._explain(host_filter, self._left, spec_obj)
        except Exception as exc:
            raise nova_scheduler.FilterFailed(
                name=name, cause=messages.describe(exc)
            ) from exc
        others, further = self._ask_about_others(host_filter, spec_obj)
        judged = [*self._left, *others]
        self._add('host filter', name, '', judged, {**refused, **further})

    def _ask_about_others(
        self, host_filter: typing.Any, spec_obj: typing.Any
    ) -> tuple[list[typing.Any], dict[str, funnel.Refusal]]:
        """Ask a filter about the hosts that are out already.

        nova does not: where the filter raises, the host is not judged.

        :returns: the host states judged, and the reasons of those refused
        """
        others = self._out
        if isinstance(host_filter, filters.CandidateFilterMixin):
            # It would refuse what has no candidates.
            others = [s for s in others if s.allocation_candidates]
        if not others:
            return [], {}
        with _kept_state(spec_obj):
            try:
                return others, self._explain(host_filter, others, spec_obj)
            except Exception:
                judged, refused = [], {}
                for state in others:
                    try:
                        refused.update(
                            self._explain(host_filter, [state], spec_obj)
                        )
                        judged.append(state)
                    except Exception as exc:
                        LOG.debug(
                            '%s cannot judge %s: %s', host_filter, state, exc
                        )
                return judged, refused

    def _explain(
        self,
        host_filter: typing.Any,
        states: list[typing.Any],
        spec_obj: typing.Any,
    ) -> dict[str, funnel.Refusal]:
        passed = filter_states(host_filter, states, spec_obj)
        refused = [state for state in states if state.uuid not in passed]
        if not self._funnel.whole:
            return dict.fromkeys((state.uuid for state in refused), _REFUSED)
        return reasons.explain_filter(host_filter, spec_obj, refused)

    def _add(
        self,
        stage: str,
        name: str,
        effect: str,
        judged: list[typing.Any],
        refused: dict[str, funnel.Refusal],
    ) -> None:
        """Add a constraint, and sort the hosts that it refuses out."""
        uuids = {state.uuid for state in judged}
        self._funnel.add(stage, name, effect, refused, uuids)
        if self._funnel.whole:
            self._out += [s for s in self._left if s.uuid in refused]
        self._left = [s for s in self._left if s.uuid not in refused]

    def _require_candidates(self) -> None:
        empty = [s for s in self._left if not s.allocation_candidates]
        if empty:
            self._add(
                'host filter',
                'allocation candidates',
                'candidates that the filters left',
                empty,
                {
                    s.uuid: funnel.Refusal('have no allocation candidate left')
                    for s in empty
                },
            )


class Judge(SchedulerManager):
    """One that claims nothing: the claims are the caller's."""

    def _weigh(self, spec_obj: typing.Any) -> None:
        pass

    def claim_resources(self, *_: object, **__: object) -> bool:
        return True

    @staticmethod
    def _consume_selected_host(*_: object, **__: object) -> None:
        pass


def filter_states(
    host_filter: typing.Any, states: Sequence[typing.Any], spec_obj: typing.Any
) -> set[str]:
    """Return the UUIDs of the hosts that pass a filter.

    :param states: nova HostStates
    """
    with _cheap_clones(host_filter, spec_obj):
        # nova.filters: None stops the filtering, with no host.
        found = host_filter.filter_all(states, spec_obj) or ()
        return {state.uuid for state in found}


@contextlib.contextmanager
def _cheap_clones(
    host_filter: typing.Any, spec_obj: typing.Any
) -> Iterator[None]:
    # nova's filter copies the whole request for each host, to keep its NUMA
    # topology: most of the time that all filters take. Without a topology
    # there is nothing to keep.
    if (
        type(host_filter) is not numa_topology_filter.NUMATopologyFilter
        or spec_obj.numa_topology is not None
    ):
        yield
        return
    spec_obj.obj_clone = lambda: copy.copy(spec_obj)
    try:
        yield
    finally:
        del spec_obj.obj_clone


def get_cell(spec_obj: typing.Any) -> str | None:
    """Return the UUID of the only cell that nova may look at."""
    destination = fields.get_field(spec_obj, 'requested_destination')
    if destination is None or destination.allow_cross_cell_move:
        return None
    cell = fields.get_field(destination, 'cell')
    return cell and cell.uuid


@contextlib.contextmanager
def _kept_state(spec_obj: typing.Any) -> Iterator[None]:
    """Keep what the stages noted of a request, while others are judged."""
    tables = [
        table
        for table in vars(request_state).values()
        if isinstance(table, weakref.WeakKeyDictionary)
    ]
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, kept in zip(tables, before, strict=True):
            table.clear()
            table.update(kept)
