# SPDX-License-Identifier: Apache-2.0

"""Where the servers that are found could go."""

import collections
import copy
import typing

from nova import exception as nova_exception
from nova.scheduler import request_filter

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import server as explain_server
from nova_ext_sched.queries import aggregates

# Answers of placement that are kept: those of the flavors of a host. At 10,000
# hosts one takes some megabytes.
_MOST_ANSWERS = 16


class Destinations:
    """The hosts that a cold migration may go to, by nova-scheduler's code.

    The steps of nova.scheduler.manager.SchedulerManager without its claims.
    The hosts are read once, and placement is asked each query once.

    :param scheduler: what nova-scheduler has in memory; its aggregates count,
        for our request filters too, and not those of the database
    """

    def __init__(self, scheduler: nova_scheduler.ReadOnlyHostManager) -> None:
        self._scheduler = scheduler
        self._answers: dict[tuple[str, ...], query.Candidates] = {}
        self._states: dict[str | None, dict[str, typing.Any]] = {}

    def find(self, uuid: str) -> list[str]:
        """Return the hosts for a server, the best first.

        :raises Exception: whatever nova or placement raise where the request
            cannot be prepared or judged
        """
        ctxt = nova_scheduler.context()
        server = explain_server.Server(ctxt, uuid)
        server.migrate()
        spec_obj = server.spec_obj
        aggregates.use(ctxt, self._scheduler.aggs_by_id.values())
        try:
            request_filter.process_reqspec(ctxt, spec_obj)
            candidates = self._ask_placement(ctxt, spec_obj)
        except (
            nova_exception.RequestFilterFailed,
            nova_exception.NoValidHost,
        ):
            return []
        states = self._read_states(ctxt, spec_obj, candidates)
        passed = list(self._scheduler.get_filtered_hosts(states, spec_obj))
        if not passed:
            return []
        return [
            self._scheduler.hosts[one.obj.uuid].name
            for one in self._scheduler.get_weighed_hosts(passed, spec_obj)
            # A filter may have taken them all away.
            if one.obj.allocation_candidates
        ]

    def _ask_placement(
        self, ctxt: typing.Any, spec_obj: typing.Any
    ) -> query.Candidates:
        forms = query.forms(ctxt, spec_obj, self._scheduler)
        key = tuple(form.to_querystring() for form in forms)
        if key not in self._answers:
            if len(self._answers) == _MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = query.Candidates(
                ctxt, self._scheduler.placement, forms
            )
        return self._answers[key]

    def _read_states(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates,
    ) -> list[typing.Any]:
        """Return nova HostStates of the candidates, as the filters get them.

        nova asks the cell that the request names, and else every enabled one.
        """
        by_host = collections.defaultdict(list)
        for request in candidates.requests:
            for provider in request['allocations']:
                by_host[provider].append(request)
        destination = spec_obj.requested_destination
        cell = None
        if destination.cell and not destination.allow_cross_cell_move:
            cell = destination.cell.uuid
        if cell not in self._states:
            self._states[cell] = {
                state.uuid: state
                for state in self._scheduler.get_host_states_by_uuids(
                    ctxt.elevated(), list(self._scheduler.hosts), spec_obj
                )
            }
        states = [
            self._states[cell][uuid]
            for uuid in candidates.summaries
            if uuid in self._states[cell]
        ]
        for state in states:
            # Filters change them.
            state.allocation_candidates = copy.deepcopy(by_host[state.uuid])
        return states
