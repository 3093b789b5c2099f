# SPDX-License-Identifier: Apache-2.0

"""Asks for one server alone, where a shared answer only proposes hosts."""

from collections.abc import Iterable
import typing

import cachetools
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import shared_answers

#: The most hosts that a shared answer proposes for one server.
PROPOSED = 50
# The most filtered requests that are kept.
_MOST_FILTERED = 256


class OwnQueries:
    """The requests of servers, each with its own query.

    :param said: the verdicts of hosts
    """

    def __init__(
        self, cloud: snapshot.Snapshot, said: shared_answers.Verdicts
    ) -> None:
        self._cloud, self._said = cloud, said
        self._ctxt = process.context()
        # The request after the request filters, None if one refused it, by
        # server UUID, type of the request (it marks evacuations and live
        # migrations for the failover policy) and ignored hosts.
        self._filtered: cachetools.LRUCache[
            tuple[typing.Any, ...], typing.Any
        ] = cachetools.LRUCache(_MOST_FILTERED)

    def run_request_filters(self, prepared: movable.Movable) -> typing.Any:
        """Return a request after the request filters; None if one refuses it.

        They may ask cells, Glance and Cinder. The only part of a fork that
        they read is which hosts a group's members are on; so the result is
        kept unless a member has moved.

        :raises Exception: as :func:`.hosts.judge`
        """
        open_fork = self._cloud.open_fork
        group = prepared.spec_obj.instance_group
        spec_obj = prepared.spec_obj
        key = prepared.uuid, type(spec_obj), *(spec_obj.ignore_hosts or ())
        is_kept = not (open_fork and open_fork.has_moved(group))
        if is_kept and key in self._filtered:
            return self._filtered[key]
        filtered = prepared.spec_obj.obj_clone()
        if open_fork:
            open_fork.correct_group(filtered.instance_group)
        try:
            request_filter.process_reqspec(process.context(), filtered)
        except nova_exception.RequestFilterFailed:
            filtered = None
        if is_kept:
            self._filtered[key] = filtered
        return filtered

    def find(
        self,
        spec_obj: typing.Any,
        proposed: Iterable[dict[str, list[claims.Request]]],
    ) -> typing.Any:
        """Return the best proposed host that passes with the request's query.

        Hosts that are proposed together are filtered and ordered for this
        request, with the candidates of the shared answer. Then placement is
        asked for the request's own candidates on one host after the other; the
        first host that passes with these is returned.

        :param spec_obj: a nova RequestSpec after the request filters
        """
        seen = 0
        for offered in proposed:
            states = self._said.read_states(spec_obj, offered)
            # The filters run before: weighers of groups read their notes.
            passing = self._said.filter(spec_obj, states)
            ordered = self._said.weigh(passing, spec_obj)
            for one in ordered:
                alone = {one.uuid: self._ask_about(spec_obj, one)}
                own = self._said.read_states(spec_obj, alone)
                for state in self._said.filter(spec_obj, own):
                    return state
            seen += len(states)
            if seen >= PROPOSED:
                break
        return None

    def _ask_about(
        self, spec_obj: typing.Any, state: typing.Any
    ) -> list[claims.Request]:
        """Return a request's own allocation candidates on one host.

        :param spec_obj: a nova RequestSpec after the request filters
        """
        own = spec_obj.obj_clone()
        if uses_own_providers(
            state.allocation_candidates[0], state.uuid, self._cloud
        ):
            # For a named host, nova queries placement only for providers in
            # that host's tree.
            destination = own.requested_destination or objects.Destination()
            destination.host, destination.node = state.host, state.nodename
            own.requested_destination = destination
        resources = query.forms(self._ctxt, own, self._cloud)
        query.lift_limit(resources)
        source = self._cloud.open_fork or self._cloud.providers
        answer = source.get_candidates(self._ctxt, resources)
        return self._said.fit(query.by_provider(answer.requests)[state.uuid])


def uses_own_providers(
    request: claims.Request, host: str, cloud: snapshot.Snapshot
) -> bool:
    """Return whether a request for a host uses no other sharing provider.

    A sharing provider gives resources to the hosts of its aggregates. The
    host's own provider may be one.

    :param request: an allocation request
    :param host: UUID of the host's compute node
    """
    served = cloud.providers.served
    return not any(
        uuid in served and uuid != host for uuid in request['allocations']
    )
