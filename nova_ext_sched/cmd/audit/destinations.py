# SPDX-License-Identifier: Apache-2.0

"""Where a server could go, after the moves that are planned.

Placement still counts what those moves take and give back. Of the candidates
in its answer, those stay that fit what is left. Candidates that the moves
open are in no answer of it: they are found on the hosts that servers left.

=======================================  ==================================
a host that servers left                 it is a candidate
=======================================  ==================================
is in placement's answer                 if its candidates fit what is left
is not, and satisfies every constraint   if the amounts fit what is left, and
of the query but the amounts             the inventories' units
lacks a constraint, or the request is    no
for several providers of a tree
=======================================  ==================================
"""

from collections.abc import Iterable
from collections.abc import Iterator
import copy
import typing

from nova import objects

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import movable
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import hosts
from nova_ext_sched.cmd.explain import placement
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import server as explain_server
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import fields
from nova_ext_sched.queries import group_members


class Destinations:
    """The hosts that a server may go to, by nova-scheduler's code.

    The hosts are read once, and placement is asked each query once.

    :param scheduler: its aggregates count, for our request filters too, and
        not those of the database
    :ivar claims: what the moves take and give back in placement
    :ivar moved: the hosts of the servers that moved, by their UUIDs
    """

    def __init__(self, scheduler: kept_hosts.HostManager) -> None:
        self._scheduler = scheduler
        self.claims = claims.Claims({})
        self.moved: dict[str, str] = {}
        # UUIDs of the hosts that servers left.
        self._left: set[str] = set()

    def find(self, uuid: str) -> list[str]:
        """Return the hosts for a cold migration, the best first.

        :raises Exception: whatever nova or placement raise where the request
            cannot be prepared or judged
        """
        server = explain_server.Server(nova_scheduler.context(), uuid)
        server.migrate()
        return [
            self._scheduler.hosts[state.uuid].name
            for state in self.judge(server.spec_obj)[1]
        ]

    def move(
        self, mine: movable.Movable, source: typing.Any, target: typing.Any
    ) -> None:
        """Move a server, as nova does: it takes first, and leaves then.

        :param source: the HostState where it is; None where it is not known
        :param target: a HostState of :meth:`judge`
        """
        uuid = mine.instance.uuid
        spec_obj = mine.spec_obj.obj_clone()
        request = target.allocation_candidates[0]
        taken = self._replace(target.uuid)
        claims.consume(taken, spec_obj, request, uuid)
        taken.instances[uuid] = objects.Instance(uuid=uuid)
        self.claims.take(request)
        if source is not None:
            left = self._replace(source.uuid)
            claims.leave(left, spec_obj, mine.instance)
            self._left.add(source.uuid)
        self.claims.give_back(mine.held)
        self.moved[uuid] = target.host

    def _replace(self, host: str) -> typing.Any:
        """Put a copy of a host's state in its place; return the copy."""
        states = self._scheduler.states
        states[host] = claims.copy_state(states[host])
        return states[host]

    def save(self) -> tuple[typing.Any, ...]:
        """Return what :meth:`restore` goes back to, once."""
        return (
            dict(self._scheduler.states),
            self.claims.copy(),
            dict(self.moved),
            set(self._left),
        )

    def restore(self, saved: tuple[typing.Any, ...]) -> None:
        """Undo all moves since."""
        self._scheduler.states, self.claims, self.moved, self._left = saved

    def judge(
        self, spec_obj: typing.Any, whole: bool = False
    ) -> tuple[funnel.Funnel, list[typing.Any]]:
        """Run a request through the scheduler's steps.

        :param spec_obj: a nova RequestSpec; a copy of it is judged
        :param whole: whether to say of each host why it is refused
        :returns: what refuses which hosts, and the nova HostStates left, the
            best first, with the allocation requests that fit
        :raises Exception: as :meth:`find`
        """
        spec_obj = spec_obj.obj_clone()
        ctxt = nova_scheduler.context()
        aggregates.use(ctxt, self._scheduler.aggregates_copy)
        group_members.use(ctxt, self.moved)
        self._correct_group(spec_obj)
        found = explanation.start(self._scheduler, whole)
        candidates = placement.Placement(
            self._scheduler, found, self._scheduler.providers, is_limited=False
        ).ask(ctxt, spec_obj)
        if candidates is None:
            return found, []
        candidates = self._correct(ctxt, spec_obj, candidates, found)
        judge = hosts.Judge(self._scheduler, found, candidates)
        order = judge.judge(ctxt, spec_obj)
        # A filter may have taken the candidates away.
        return found, [s for s in order if s.allocation_candidates]

    def _correct_group(self, spec_obj: typing.Any) -> None:
        """Let the request's group have its members where they moved."""
        group = fields.get_field(spec_obj, 'instance_group')
        if group is None or self.moved.keys().isdisjoint(group.members):
            return
        group.hosts = [
            state.host
            for state in self._scheduler.states.values()
            if not state.instances.keys().isdisjoint(group.members)
        ]

    def _correct(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates,
        judged: funnel.Funnel,
    ) -> query.Candidates:
        """Return the answer that placement would give after the moves.

        :param judged: gets the hosts that are full then
        """
        self.claims.learn(candidates.summaries)
        if not self.moved:
            return candidates
        found = copy.copy(candidates)
        found.requests = list(self._find_opened(ctxt, spec_obj, candidates))
        judged.readmit(_get_providers(found.requests) & judged.hosts.keys())
        full: dict[str, funnel.Refusal] = {}
        for request in candidates.requests:
            if lacking := self.claims.find_lacking(request):
                refusal = funnel.full(lacking)
                full.update(dict.fromkeys(request['allocations'], refusal))
            else:
                found.requests.append(request)
        offered = _get_providers(found.requests)
        judged.add(
            'placement',
            'moves before this one',
            refused={
                uuid: refusal
                for uuid, refusal in full.items()
                if uuid in judged.hosts and uuid not in offered
            },
        )
        # nova takes from them which hosts there are.
        found.summaries = dict.fromkeys(offered)
        return found

    def _find_opened(
        self,
        ctxt: typing.Any,
        spec_obj: typing.Any,
        candidates: query.Candidates,
    ) -> Iterator[claims.Request]:
        """Yield candidates on hosts that servers left."""
        hidden = self._left - candidates.summaries.keys()
        providers = self._scheduler.providers
        forms = query.forms(ctxt, spec_obj, self._scheduler) if hidden else ()
        for form in forms:
            if form.get_num_of_suffixed_groups():
                continue
            amounts = form.merged_resources()
            fitting = {
                uuid for uuid in hidden if self._fits_units(uuid, amounts)
            }
            for part in query.split(form.to_querystring()):
                if part.key != 'resources':
                    fitting -= providers.find_lacking(part, fitting)
            for uuid in sorted(fitting):
                request = {
                    'allocations': {uuid: {'resources': amounts}},
                    'mappings': {'': [uuid]},
                }
                if not self.claims.find_lacking(request):
                    yield request

    def _fits_units(self, uuid: str, amounts: dict[str, int]) -> bool:
        """Return whether a host's inventories ever give such amounts."""
        inventories = self._scheduler.providers.get_inventories(uuid)
        self.claims.learn({uuid: {'resources': inventories}})
        return amounts.keys() <= inventories.keys() and all(
            inventories[name]['min_unit'] <= amount
            and amount <= inventories[name]['max_unit']
            and amount % inventories[name]['step_size'] == 0
            for name, amount in amounts.items()
        )


def _get_providers(requests: Iterable[claims.Request]) -> set[str]:
    return {uuid for one in requests for uuid in one['allocations']}
