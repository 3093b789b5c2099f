# SPDX-License-Identifier: Apache-2.0

"""Judges the candidates' hosts: cells, named hosts, filters, weighers.

Does what nova.scheduler.manager.SchedulerManager._schedule does after
placement's answer, step by step, with nova's HostManager. Nothing is claimed
in placement.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import copy
import dataclasses
import types
import typing

from nova import objects
import nova.conf
from nova.scheduler import filters
from nova.scheduler import manager
from nova.scheduler import utils
from oslo_log import log as logging
from oslo_utils import uuidutils

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# The fields of a request that HostManager.get_filtered_hosts looks at.
_NAMING = (
    'requested_destination',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
)


@dataclasses.dataclass
class Hosts:
    """The hosts of one request.

    :param asked: the request; each of its servers becomes a member of its
        server group
    :param candidates: placement's answer; None for a rebuild, about which
        placement is not asked
    """

    asked: asking.Asking
    candidates: placement.Candidates | None

    def __post_init__(self) -> None:
        self._cloud, self._matrix = self.asked.cloud, self.asked.matrix
        self._spec_obj = self.asked.spec_obj
        # HostStates: the candidates first, then hosts that are refused already
        # and are judged all the same, for their reasons.
        self._states: list[typing.Any] = []
        number = self._spec_obj.num_instances
        self._servers = [
            self._spec_obj.instance_uuid,
            *(uuidutils.generate_uuid() for _ in range(number - 1)),
        ]
        group = self._spec_obj.instance_group
        if group is not None and number > 1:
            # nova-api makes all of them members before it asks the scheduler.
            members = fields.get_field(group, 'members') or []
            group.members = [*members, *self._servers]

    def judge(self) -> list[typing.Any]:
        """Add the constraints after placement's, and the order of the hosts.

        :returns: nova HostStates of the hosts that passed, the best first
        :raises reasons.FilterFailed: a filter raised what nova does not
            expect
        """
        self._read_states()
        self._apply_names()
        if fields.host_filters_run(self._spec_obj):
            for host_filter in self._cloud.enabled_filters:
                if host_filter.run_filter_for_index(0):
                    self._apply_filter(host_filter)
        else:
            self._matrix.add(
                'host filter',
                'none',
                'no filter runs, because the request forces a host',
            )
        empty = {
            s.uuid
            for s in self._list_remaining()
            if not s.allocation_candidates
        }
        if self.candidates is not None and empty:
            refusal = refusals.Refusal('have no allocation candidate left')
            self._matrix.add(
                'host filter',
                'allocation candidates',
                'candidates that the filters left',
                dict.fromkeys(empty, refusal),
                empty,
            )
        if not self._matrix.remaining:
            return []
        weighed = self._cloud.get_weighed_hosts(
            self._list_remaining(), self._spec_obj
        )
        for one in weighed:
            self._matrix.prefer(one.obj.uuid, one.weight)
        return [one.obj for one in weighed]

    def weigh(self, order: list[typing.Any]) -> None:
        """Collect each weigher's weights, as nova multiplies and adds them.

        :param order: the result of :meth:`judge`
        """
        self._matrix.drawn = _count_drawn(
            [place.weight for place in self._matrix.order]
        )
        places = {place.uuid: place for place in self._matrix.order}
        for weigher, weights in weigh_each(self._cloud, order, self._spec_obj):
            name = type(weigher).__name__
            self._matrix.preferences[name] = ' and '.join(
                one.prefers for one in getattr(weigher, 'policies', ())
            )
            for uuid, weight in weights.items():
                places[uuid].weights[name] = weight

    def place(self, order: list[typing.Any]) -> None:
        """Add a shortage, if a server of the request finds no host.

        The servers are placed one after the other. Each claim is made in a
        fork, and changes the hosts for the next.

        :param order: the result of :meth:`judge`, for the first server
        """
        if len(self._servers) > 1:
            with self._cloud.fork() as future:
                self._place(order, future)

    def _place(self, order: list[typing.Any], future: fork.Fork) -> None:
        nova_scheduler = types.SimpleNamespace(host_manager=self._cloud)
        is_rebuild = self.candidates is None
        for number, uuid in enumerate(self._servers):
            self._spec_obj.instance_uuid = uuid
            if number:
                order = manager.SchedulerManager._get_sorted_hosts(
                    nova_scheduler, self._spec_obj, order, number
                )
            for state in order:
                offered = state.allocation_candidates
                if is_rebuild or (
                    offered
                    and future.allocate(uuid, self._spec_obj, offered[0])
                ):
                    break
            else:
                some = messages.part(
                    number, len(self._servers), 'instance', 'finds', 'find'
                )
                self._matrix.shortage = (
                    f'Only {some} a host, so nova creates none'
                )
                return
            if not is_rebuild:
                for group in self._spec_obj.requested_resources:
                    mappings = offered[0]['mappings']
                    group.provider_uuids = mappings[group.requester_id]
            manager.SchedulerManager._consume_selected_host(
                state, self._spec_obj, instance_uuid=uuid
            )

    def _list_remaining(self) -> list[typing.Any]:
        return [s for s in self._states if s.uuid in self._matrix.remaining]

    def _read_states(self) -> None:
        """Read the HostStates, and add the hosts that cells leave out."""
        cloud, answer = self._cloud, self.candidates
        hosts, ctxt = cloud.nodes, self.asked.ctxt.elevated()
        uuids, offered = None, hosts.keys()
        if answer is not None:
            uuids, offered = list(answer.summaries), answer.summaries.keys()
        states = list(
            cloud.get_host_states_by_uuids(ctxt, uuids, self._spec_obj)
        )
        if answer is not None:
            requests = query.by_provider(answer.requests)
            for state in states:
                copied = claims.copy_requests(requests[state.uuid])
                state.allocation_candidates = copied
        read = {state.uuid for state in states}
        enabled = {cell.uuid for cell in cloud.enabled_cells}
        cell = snapshot.get_cell(self._spec_obj)
        allowed = {cell} if cell else enabled
        disabled = refusals.Refusal(
            'are in a disabled cell', 'disabled cell', rank=refusals.CLOSED
        )
        elsewhere = reasons.refusal(reasons.CELL)
        self._matrix.add(
            'cell',
            'requested cells',
            refused={
                uuid: disabled
                if host.cell_uuid not in enabled
                else elsewhere
                if host.cell_uuid not in allowed
                else reasons.NO_SERVICE
                for uuid, host in hosts.items()
                if uuid not in read
                and (uuid in offered or host.cell_uuid not in allowed)
            },
        )
        if snapshot.is_boot(self._spec_obj) and cloud.unmapped:
            refused = {
                uuid: reasons.UNMAPPED
                for uuid, host in hosts.items()
                if host.host in cloud.unmapped
            }
            self._matrix.add('cell', 'cell mapping', refused=refused)
        if self._matrix.with_reasons and len(read) < len(hosts):
            outside = list(hosts.keys() - read)
            states += cloud.get_host_states_by_uuids(ctxt, outside, None)
        self._states = states

    def _apply_names(self) -> None:
        """Keep the hosts that the request names, by nova's own code."""
        # With no filter enabled, nova keeps just the hosts that the request
        # names.
        bare = copy.copy(self._cloud)
        bare.enabled_filters = []
        requested = reasons.refusal(reasons.REQUESTED_HOST)._replace(
            # A rebuild is on the server's own host, or nowhere.
            lifts=not fields.is_rebuild(self._spec_obj)
        )
        judged = {state.uuid for state in self._states}
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
            remaining = bare.get_filtered_hosts(self._states, only)
            self._matrix.add(
                'requested host',
                field,
                messages.first_few(names),
                dict.fromkeys(
                    judged - {state.uuid for state in remaining},
                    refusals.IGNORED if field == 'ignore_hosts' else requested,
                ),
                judged,
            )

    def _apply_filter(self, host_filter: typing.Any) -> None:
        judged = self._list_remaining()
        refused = reasons.ask_filter(
            host_filter,
            self._spec_obj,
            judged,
            self._matrix.with_reasons,
            self._cloud.aggs_by_id.values(),
        )
        others = [
            state
            for state in self._states
            if state.uuid not in self._matrix.remaining
            # A filter of candidates would refuse each host without any.
            and (
                not isinstance(host_filter, filters.CandidateFilterMixin)
                or state.allocation_candidates
            )
        ]
        if others and self._matrix.with_reasons:
            # A copy, so that filters leave no notes about these hosts in the
            # request.
            noted = request_state.of(self._spec_obj)
            aside = copy.copy(self._spec_obj)
            group = dataclasses.replace(
                noted.group, refused=dict(noted.group.refused)
            )
            request_state.states[aside] = dataclasses.replace(
                noted, group=group
            )
            for states, found in _ask_each(
                host_filter, aside, others, self._cloud
            ):
                refused |= found
                judged += states
        self._matrix.add(
            'host filter',
            type(host_filter).__name__,
            refused=refused,
            judged={state.uuid for state in judged},
        )


def schedule(asked: asking.Asking) -> None:
    """Run a request through nova-scheduler's steps; collect the refusals.

    nova's own functions run the steps of nova.scheduler.manager
    (SchedulerManager.select_destinations, _schedule), unless the request has
    ended. Only the claim in placement is left out.

    :raises reasons.FilterFailed: a filter raised what nova does not expect
    :raises placement.PlacementFailed: placement does not answer
    """
    if asked.matrix.end is not None:
        return
    offered = None
    if not utils.request_is_rebuild(asked.spec_obj):
        offered = candidates.ask(asked)
        if offered is None:
            return
    judging = Hosts(asked, offered)
    if order := judging.judge():
        judging.weigh(order)
        judging.place(order)


def judge(
    cloud: snapshot.Snapshot,
    spec_obj: typing.Any,
    with_reasons: bool = False,
    with_scheduler_limit: bool = False,
) -> tuple[matrix.Matrix, list[typing.Any]]:
    """Run a request through the scheduler's steps.

    :param spec_obj: a nova RequestSpec; it is changed
    :param with_reasons: see :class:`.matrix.Matrix`
    :param with_scheduler_limit: see :func:`.candidates.ask`
    :returns: the matrix, and the nova HostStates that passed, the best first,
        with the allocation requests that fit
    :raises Exception: whatever nova or placement raise if the request cannot
        be judged
    """
    judged = asking.start(cloud, with_reasons)
    asked = asking.Asking(cloud, process.context(), spec_obj, judged)
    offered = candidates.ask(asked, with_scheduler_limit)
    if offered is None:
        return judged, []
    order = Hosts(asked, offered).judge()
    # A filter may have removed every candidate of a host.
    return judged, [one for one in order if one.allocation_candidates]


def _ask_each(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    states: list[typing.Any],
    cloud: snapshot.Snapshot,
) -> Iterator[tuple[list[typing.Any], dict[str, refusals.Refusal]]]:
    """Yield hosts that a filter judged, and why it refuses some of them.

    nova does not run a filter on hosts that are refused already, so it may
    raise. Then it runs on each host alone; a host on which it raises again is
    not judged.
    """
    try:
        known = cloud.aggs_by_id.values()
        yield (
            states,
            reasons.ask_filter(
                host_filter, spec_obj, states, aggregates=known
            ),
        )
    except reasons.FilterFailed as exc:
        LOG.debug('%d hosts are not judged: %s', len(states), exc)
        if len(states) > 1:
            for state in states:
                yield from _ask_each(host_filter, spec_obj, [state], cloud)


def weigh_each(
    cloud: snapshot.Snapshot, states: list[typing.Any], spec_obj: typing.Any
) -> Iterator[tuple[typing.Any, dict[str, float]]]:
    """Yield each weigher, with its multiplied weights by UUID of the host.

    nova does not weigh a single host.

    :param states: nova HostStates
    """
    for weigher in cloud.weighers if len(states) > 1 else ():
        weighed = cloud.weight_handler.get_weighed_objects(
            [weigher], states, spec_obj
        )
        yield weigher, {one.obj.uuid: one.weight for one in weighed}


def _count_drawn(weights: Sequence[float]) -> int:
    """Count the best hosts among which nova draws one, by nova.conf.

    ================  ====================================  ===============
    host_subset_size  shuffle_best_same_weighed_hosts       drawn from
    ================  ====================================  ===============
    1                 off                                   the first
    1                 on                                    all that weigh as
                                                            much as the first
    more              off                                   that number
    more              on                                    the larger of both
    ================  ====================================  ===============

    nova.scheduler.manager.SchedulerManager._get_sorted_hosts

    :param weights: weights of the remaining hosts, the greatest first; not
        empty
    """
    options = CONF.filter_scheduler
    number = options.host_subset_size
    if options.shuffle_best_same_weighed_hosts:
        number = max(number, list(weights).count(weights[0]))
    return min(number, len(weights))
