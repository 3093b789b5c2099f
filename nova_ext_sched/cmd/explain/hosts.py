# SPDX-License-Identifier: Apache-2.0

"""The candidates' hosts: cells, the hosts that are named, filters, weights."""

from collections.abc import Iterator
import contextlib
import copy
import typing
import weakref

from nova import objects
from nova.scheduler import filters
from nova.scheduler import manager
from nova.scheduler import utils
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
        if candidates is not None:
            self._claims = claims.Claims(candidates.summaries)
        self._order: list[typing.Any] = []
        # HostStates: the candidates first, then those that are out and judged
        # all the same.
        self._states: list[typing.Any] = []

    @property
    def _left(self) -> list[typing.Any]:
        return [s for s in self._states if s.uuid in self._funnel.left]

    def judge(
        self, ctxt: typing.Any, spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Add the constraints, and the order of the hosts left.

        :returns: HostStates of the hosts left, the best first
        """
        self._spec_obj = spec_obj
        number = spec_obj.num_instances
        uuids = [uuidutils.generate_uuid() for _ in range(number)]
        uuids[0] = spec_obj.instance_uuid
        if spec_obj.instance_group is not None and number > 1:
            # nova-api makes all of them members before it asks the scheduler.
            group = spec_obj.instance_group
            members = fields.get_field(group, 'members') or []
            group.members = [*members, *uuids]
        by_provider, summaries = None, None
        if self._candidates is not None:
            summaries = self._candidates.summaries
            by_provider = query.by_provider(self._candidates.requests)
        picked = len(
            self._schedule(ctxt, spec_obj, uuids, by_provider, summaries)
        )
        if picked < number and self._funnel.left:
            some = messages.part(picked, number, 'instance', 'finds', 'find')
            self._funnel.shortage = (
                f'Only {some} a host, and nova then creates none'
            )
        return self._order

    # What nova's _schedule calls.

    def _get_all_host_states(
        self, ctxt: typing.Any, spec_obj: typing.Any, summaries: typing.Any
    ) -> list[typing.Any]:
        states = list(super()._get_all_host_states(ctxt, spec_obj, summaries))
        hosts = self.host_manager.hosts
        found = {state.uuid for state in states}
        enabled = {cell.uuid for cell in self.host_manager.enabled_cells}
        cell = get_cell(spec_obj)
        allowed = {cell} if cell else enabled
        candidates = hosts if summaries is None else summaries
        disabled = funnel.Refusal('are in a disabled cell', 'disabled cell')
        elsewhere = reasons.refusal(policies.CELL)
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
            self._states = list(
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
        self._states = [*states, *self._states]
        self._apply_names()
        if fields.host_filters_run(spec_obj):
            for host_filter in self.host_manager.enabled_filters:
                if host_filter.run_filter_for_index(0):
                    self._apply_filter(host_filter)
        else:
            self._funnel.add(
                'host filter',
                'none',
                'no filter runs, because the request forces a host',
            )
        empty = {s.uuid for s in self._left if not s.allocation_candidates}
        if self._candidates is not None and empty:
            self._funnel.add(
                'host filter',
                'allocation candidates',
                'candidates that the filters left',
                dict.fromkeys(
                    empty, funnel.Refusal('have no allocation candidate left')
                ),
                empty,
            )
        if not self._funnel.left:
            return []
        weighed = self.host_manager.get_weighed_hosts(self._left, spec_obj)
        self._funnel.order = [(one.obj.uuid, one.weight) for one in weighed]
        if self._funnel.whole:
            self._weigh()
        self._order = [one.obj for one in weighed]
        return list(self._order)

    def _weigh(self) -> None:
        """Note what each weigher gives, as nova multiplies and adds it."""
        manager, left = self.host_manager, self._left
        # nova does not weigh a single host.
        for weigher in manager.weighers if len(left) > 1 else ():
            for one in manager.weight_handler.get_weighed_objects(
                [weigher], left, self._spec_obj
            ):
                self._funnel.weights.setdefault(one.obj.uuid, {})[
                    type(weigher).__name__
                ] = one.weight

    @property
    def placement_client(self) -> typing.Any:
        return self

    def claim_resources(self, *args: typing.Any, **_: object) -> bool:
        _ctxt, _uuid, request, *_others = args
        return self._claims.take(request)

    def _ensure_sufficient_hosts(self, *_: object) -> None:
        pass

    def _get_alternate_hosts(
        self, hosts: list[typing.Any], *_: object
    ) -> list[typing.Any]:
        return hosts

    def _apply_names(self) -> None:
        """Leave the hosts that the request names, by nova's own code."""
        # Without filters what is left is what the request names.
        bare = copy.copy(self.host_manager)
        bare.enabled_filters = []
        requested = reasons.refusal(policies.REQUESTED_HOST)._replace(
            # A rebuild is where the server is, or nowhere.
            lifts=not utils.request_is_rebuild(self._spec_obj)
        )
        ignored = funnel.Refusal(
            'are excluded by the request', funnel.IGNORED_HOST, lifts=False
        )
        for field in _NAMING:
            value = names = getattr(self._spec_obj, field)
            if field == 'requested_destination':
                names = [value.host] if value and 'host' in value else None
            if not names:
                continue
            only = objects.RequestSpec(
                instance_uuid=self._spec_obj.instance_uuid,
                **{**dict.fromkeys(_NAMING), field: value},
            )
            judged = {state.uuid for state in self._states}
            passed = {
                state.uuid
                for state in bare.get_filtered_hosts(self._states, only)
            }
            self._funnel.add(
                'requested host',
                field,
                messages.first_few(names),
                dict.fromkeys(
                    judged - passed,
                    ignored if field == 'ignore_hosts' else requested,
                ),
                judged,
            )

    def _apply_filter(self, host_filter: typing.Any) -> None:
        def ask(states: list[typing.Any]) -> dict[str, funnel.Refusal]:
            return reasons.ask_filter(
                host_filter, self._spec_obj, states, self._funnel.whole
            )

        judged = self._left
        refused = ask(judged)
        # nova does not ask about the hosts that are out already: where the
        # filter raises, such a host is not judged.
        others = [
            state
            for state in self._states
            if state.uuid not in self._funnel.left
            # It would refuse what has no candidates.
            and (
                not isinstance(host_filter, filters.CandidateFilterMixin)
                or state.allocation_candidates
            )
        ]
        batches = [others] if others and self._funnel.whole else []
        with _kept_state():
            for batch in batches:
                try:
                    refused |= ask(batch)
                    judged += batch
                except nova_scheduler.FilterFailed as exc:
                    LOG.debug('%d hosts are not judged: %s', len(batch), exc)
                    if len(batch) > 1:
                        # Each by itself, then.
                        batches += [[state] for state in batch]
        self._funnel.add(
            'host filter',
            type(host_filter).__name__,
            refused=refused,
            judged={state.uuid for state in judged},
        )


class Judge(SchedulerManager):
    """One that claims nothing: the claims are the caller's."""

    def _weigh(self) -> None:
        pass

    def claim_resources(self, *_: object, **__: object) -> bool:
        return True

    @staticmethod
    def _consume_selected_host(*_: object, **__: object) -> None:
        pass


def get_cell(spec_obj: typing.Any) -> str | None:
    """Return the UUID of the only cell that nova may look at."""
    destination = fields.get_field(spec_obj, 'requested_destination')
    if destination is None or destination.allow_cross_cell_move:
        return None
    cell = fields.get_field(destination, 'cell')
    return cell and cell.uuid


@contextlib.contextmanager
def _kept_state() -> Iterator[None]:
    """Keep what the stages noted of a request, while others are judged."""
    before = [
        (table, dict(table))
        for table in vars(request_state).values()
        if isinstance(table, weakref.WeakKeyDictionary)
    ]
    try:
        yield
    finally:
        for table, kept in before:
            table.clear()
            table.update(kept)
