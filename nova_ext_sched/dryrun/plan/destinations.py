# SPDX-License-Identifier: Apache-2.0

"""Finds destinations of servers by nova-scheduler's code, in the open fork.

A host that refuses a request keeps refusing it as long as servers only come.
So one answer, computed on the cloud as it is, serves all equivalent requests
(:mod:`..decision.likeness`). When a server's turn comes, only the hosts of
that answer are looked at, and vacated hosts: the weighers order those that
changed since and the best of the others, the filters run again, and the first
host that passes is taken.

Say that the shared answer contains cmp-01 to cmp-99. Since then servers came
to cmp-01 and cmp-02, and servers left cmp-03: these three and the best of
cmp-04 to cmp-99 are ordered. When thousands of hosts have changed, the
weighers order only those that changed since the last ordering; the others keep
their order.

====================================  =====================================
a server                              what decides
====================================  =====================================
whose likeness is whole (covers all   the filters, on the hosts of the shared
that nova reads)                      answer
whose likeness is not whole           the shared answer proposes hosts; a
                                      query for this server, on one proposed
                                      host, decides. If no proposed host
                                      passes, a query for this server on all
                                      hosts does
without a likeness                    a query for this server on all hosts
====================================  =====================================
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import itertools
import typing

import cachetools
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter

from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import priority
from nova_ext_sched.dryrun.plan import processors

#: Number of untouched hosts that the weighers order together with the touched
#: ones, taken in the order of the shared answer. An untouched host passes the
#: filters if its allocation request still fits.
WEIGHED = 4
#: The same, where the shared answer only proposes. A group's server is offered
#: this many hosts at once, because the weighers spread a group over more than
#: one rack. Any other server is offered _PROPOSED_AT_ONCE hosts at a time, up
#: to this many.
PROPOSED = 50
_PROPOSED_AT_ONCE = 10

# The most hosts in all kept shared answers together: it bounds memory.
_MOST_KEPT = 300_000

# The most filtered requests that are kept.
_MOST_FILTERED = 256

# The most refusals of hosts that are kept.
_MOST_REFUSED = 50_000


class Destinations:
    """Finds the destinations of servers in the open fork.

    Callers say which hosts are barred, by the UUIDs of their compute nodes.
    Shared answers describe the cloud without a fork. Verdicts on single hosts
    are keyed by the version of the host's state, which no two states share,
    and so hold in any fork.

    :param cloud: answers as it is in the open fork
    :ivar reader: reads servers, each group once
    :ivar priorities: reads which servers come first
    :ivar seconds_tried: CPU seconds that :class:`.stuck.Adviser` has spent on
        trials, over all plans of a command
    """

    def __init__(self, cloud: snapshot.Snapshot) -> None:
        self.cloud = cloud
        self.seconds_tried = 0.0
        self.reader = servers.Reader(cloud)
        self.priorities = priority.Priorities()
        self._ctxt = process.context()
        self._kept: cachetools.LRUCache[str, movable.Shared] = (
            cachetools.LRUCache(
                _MOST_KEPT,
                getsizeof=lambda one: len(one.requests) + len(one.refused) + 1,
            )
        )
        # Hosts that do not pass, by what :meth:`_key` returns.
        self._refused: cachetools.LRUCache[object, bool] = cachetools.LRUCache(
            _MOST_REFUSED
        )
        # Hosts whose CPU lacks what a guest needs, by the guest's CPU.
        self._lacking_cpu: dict[processors.Processor, frozenset[str]] = {}
        # The request after the request filters, None if one refused it, by
        # server UUID, type of the request (it marks evacuations and live
        # migrations for the failover policy) and ignored hosts.
        self._filtered: cachetools.LRUCache[
            tuple[typing.Any, ...], typing.Any
        ] = cachetools.LRUCache(_MOST_FILTERED)

    def nodes_of(self, hosts: Iterable[str]) -> frozenset[str]:
        """Return the UUIDs of the compute nodes of hosts, by their names."""
        return frozenset(
            uuid for host in hosts for uuid in self.cloud.nodes_of(host)
        )

    def find_like(
        self, key: likeness.Key | None, make: Callable[[], typing.Any]
    ) -> movable.Like | None:
        """Return the shared answer for a request, made if there is none yet.

        :param key: the result of :func:`.likeness.of_request`
        :param make: returns a nova RequestSpec, which is changed
        :returns: None if the request has no key, or an enabled filter reads
            unknown fields
        :raises Exception: as :meth:`judge`
        """
        if key is None:
            return None
        shared = self._kept.get(key.text)
        if shared is None:
            spec_obj = make()
            if not likeness.are_known(self.cloud.enabled_filters, spec_obj):
                return None
            shared = self.make_shared(spec_obj, self._judge_existing)
            if len(shared.requests) < _MOST_KEPT:
                self._kept[key.text] = shared
        return movable.Like(shared, key.is_whole)

    def make_shared(
        self,
        spec_obj: typing.Any,
        judge: Callable[..., tuple[matrix.Matrix, list[typing.Any]]]
        | None = None,
    ) -> movable.Shared:
        """Make the shared answer for all requests equivalent to one.

        :param spec_obj: a nova RequestSpec; it is changed
        :param judge: runs the request through the scheduler's steps; by
            default :meth:`_judge`, which does not check whether the server
            was deleted
        :raises RuntimeError: a fork is open, and the answer would hold in that
            fork only
        :raises Exception: as :meth:`judge`
        """
        if self.cloud.open_fork:
            raise RuntimeError(
                'a shared answer: expected the cloud as it is, got a fork'
            )
        spec_obj.ignore_hosts = []
        spec_obj.instance_group = None
        spec_obj.scheduler_hints = {}
        judged = spec_obj.obj_clone()
        _, states = (judge or self._judge)(judged, False)
        offered = {one.uuid: one.allocation_candidates for one in states}
        refused: dict[str, list[claims.Request]] = {}
        resources: list[typing.Any] = []
        with contextlib.suppress(
            nova_exception.NoValidHost, placement.QueryRefused
        ):
            resources = query.forms(self._ctxt, judged, self.cloud)
            query.lift_limit(resources)
            # Ask even if no host passed: a host that refuses now may pass once
            # servers have left it.
            answer = self.cloud.providers.get_candidates(self._ctxt, resources)
            near = self._list_in_cell(judged)
            refused = {
                uuid: requests
                for uuid, requests in query.by_provider(
                    answer.requests
                ).items()
                if uuid in near and uuid not in offered
            }
        return movable.Shared(spec_obj, judged, offered, refused, resources)

    def count(self, prepared: movable.Movable, barred: Set[str]) -> int:
        """Estimate how many hosts a server can go to now.

        :param barred: UUIDs of hosts that are no destinations
        :raises Exception: as :meth:`judge`
        """
        like = prepared.like
        if like is None:
            return len(self._judge_unbarred(prepared.spec_obj, barred))
        requests, touched = like.shared.requests, self._touched
        unbarred = [one for one in requests if one not in barred]
        checked = [one for one in unbarred if one in touched]
        untouched = len(unbarred) - len(checked)
        if like.is_whole:
            return self._count_passing(like.shared, checked) + untouched
        spec_obj = self._run_request_filters(prepared)
        if spec_obj is None:
            return 0
        # For an estimate, it is enough to check the best untouched hosts.
        fresh = (one for one in unbarred if one not in touched)
        checked += itertools.islice(fresh, WEIGHED)
        offered = {uuid: self._fit(requests[uuid]) for uuid in checked}
        passing = self._filter(spec_obj, self._read_states(spec_obj, offered))
        return len(passing) + len(unbarred) - len(checked)

    def _count_passing(
        self, shared: movable.Shared, uuids: Iterable[str]
    ) -> int:
        """Count the hosts of a shared answer that pass every filter now.

        The filters run only for hosts that changed since their last verdict:
        survive counts all hosts again for each failure, in forks with
        thousands of moves.
        """
        count, offered = 0, {}
        for uuid in uuids:
            if fit := self._fit(shared.requests[uuid]):
                key = self._key(shared, uuid, fit)
                if shared.passed.get(uuid) == key:
                    count += 1
                elif key not in self._refused:
                    offered[uuid] = fit
        states = self._read_states(shared.judged, offered)
        passing = {one.uuid for one in self._filter(shared.judged, states)}
        for uuid, fit in offered.items():
            key = self._key(shared, uuid, fit)
            if uuid in passing:
                shared.passed[uuid] = key
            else:
                self._refused[key] = True
        return count + len(passing)

    def estimate(self, prepared: movable.Movable, barred: Set[str]) -> int:
        """Estimate like :meth:`count`, without running any filter.

        :returns: 0 for a server whose own query decides, so that it is placed
            first
        """
        if prepared.like is None or not prepared.like.is_whole:
            return 0
        return len(prepared.like.shared.requests.keys() - barred)

    def find(
        self, prepared: movable.Movable, barred: Set[str] = frozenset()
    ) -> typing.Any:
        """Find the destination of a server now: a HostState, or None.

        The HostState has the limits that the filters set, and the allocation
        candidates that passed them. A host whose CPU lacks what the guest
        needs comes after all others, whatever the weighers prefer.

        :param barred: UUIDs of hosts that are no destinations
        :raises Exception: as :meth:`judge`
        """
        lacking = self._list_lacking_cpu(prepared.processor) - barred
        target = None
        if lacking:
            target = self._find(prepared, barred | lacking)
        return self._find(prepared, barred) if target is None else target

    def _list_lacking_cpu(
        self, needed: processors.Processor | None
    ) -> frozenset[str]:
        """Return the UUIDs of hosts whose CPU lacks what a guest needs."""
        if needed is None:
            return frozenset()
        if needed not in self._lacking_cpu:
            self._lacking_cpu[needed] = frozenset(
                uuid
                for uuid, state in self.cloud.states.items()
                if processors.list_lacking(needed, processors.read_host(state))
            )
        return self._lacking_cpu[needed]

    def _find(self, prepared: movable.Movable, barred: Set[str]) -> typing.Any:
        target = None
        if prepared.like is not None:
            proposed = self._propose(prepared, prepared.like, barred)
            target = self._find_proposed(prepared, prepared.like, proposed)
            if prepared.like.is_whole:
                return target
        if target is None:
            allowed = (
                state
                for state in self._judge_unbarred(prepared.spec_obj, barred)
                if prepared.may_move_to(state)
            )
            target = next(allowed, None)
        return target

    def send(
        self,
        prepared: movable.Movable,
        future: fork.Fork,
        barred: Set[str] = frozenset(),
        note: Callable[[typing.Any], object] = lambda target: None,
    ) -> typing.Any:
        """Move a server to its destination now.

        :param future: the open fork
        :param barred: UUIDs of hosts that are no destinations
        :param note: called with the destination before the server moves
        :returns: the destination, a nova HostState; None if there is none, or
            an exception was raised that is not named below
        :raises placement.PlacementFailed: placement does not answer
        """
        try:
            target = self.find(prepared, barred)
            if target is not None:
                note(target)
                if prepared.go(future, target):
                    return target
        except placement.PlacementFailed:
            raise
        except Exception:
            # The caller reports the server as stuck.
            pass
        return None

    def find_weigher(
        self, prepared: movable.Movable, target: typing.Any, barred: Set[str]
    ) -> str:
        """Return the weigher that puts the destination before the next host.

        If several prefer the destination, it is the one with the largest
        difference in weight. The next host is the next best.

        :param target: the result of :meth:`find` for the same server
        :returns: '' if there is no other host, or no weigher prefers the
            destination
        :raises Exception: as :meth:`judge`
        """
        spec_obj = prepared.spec_obj
        if prepared.like is None:
            states = self._judge_unbarred(spec_obj, barred)
        else:
            offered = next(self._propose(prepared, prepared.like, barred))
            spec_obj = prepared.like.shared.judged
            if not prepared.like.is_whole:
                spec_obj = self._run_request_filters(prepared)
            read = self._read_states(spec_obj, offered)
            states = [*self._weigh(self._filter(spec_obj, read), spec_obj)]
        others = [one.uuid for one in states if one.uuid != target.uuid]
        lost = {
            type(weigher).__name__: weights[target.uuid] - weights[others[0]]
            for weigher, weights in hosts.weigh_each(
                self.cloud, states, spec_obj
            )
            if target.uuid in weights
        }
        weigher = max(lost, key=lambda name: lost[name], default='')
        return weigher if weigher and lost[weigher] > 0 else ''

    def find_on(self, prepared: movable.Movable, node: str) -> typing.Any:
        """Return the HostState of one host if a server can go there, or None.

        :param node: UUID of the host's compute node
        """
        if prepared.like is None:
            _, remaining = self.judge(prepared.spec_obj)
            return next((one for one in remaining if one.uuid == node), None)
        requests = self._find_requests(prepared.like.shared, frozenset())
        offered = {node: self._fit(requests.get(node, []))}
        return self._find_proposed(prepared, prepared.like, [offered])

    def explain(self, prepared: movable.Movable) -> matrix.Matrix:
        """Return the matrix of refusals of hosts, barred ones too.

        Equivalent servers with a whole likeness get equal matrices.

        :raises Exception: as :meth:`judge`
        """
        if prepared.like is None or not prepared.like.is_whole:
            judged, _ = self.judge(prepared.spec_obj, with_reasons=True)
            return judged
        spec_obj = prepared.like.shared.spec_obj.obj_clone()
        # The shared request may be of a server that was deleted since, with
        # its ports: use this server's.
        spec_obj.instance_uuid = prepared.uuid
        with contextlib.suppress(
            nova_exception.InstanceNotFound, cells.CellFailed
        ):
            if stored := self.reader.find(prepared.uuid):
                spec_obj.ensure_network_information(stored.instance)
        judged, _ = self._judge_existing(spec_obj, True)
        return judged

    def judge(
        self, spec_obj: typing.Any, with_reasons: bool = False
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        """Run a request through the scheduler's steps.

        :param spec_obj: a nova RequestSpec; a copy of it is judged
        :param with_reasons: see :class:`.matrix.Matrix`
        :returns: the matrix, and the nova HostStates that passed, the best
            first, with the allocation requests that fit
        :raises Exception: whatever nova or placement raise if the request
            cannot be judged
        """
        return self._judge(spec_obj.obj_clone(), with_reasons)

    def _judge_unbarred(
        self, spec_obj: typing.Any, barred: Set[str]
    ) -> list[typing.Any]:
        _, states = self.judge(spec_obj)
        return [state for state in states if state.uuid not in barred]

    def _judge_existing(
        self, spec_obj: typing.Any, with_reasons: bool
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        """Judge a server's request for all equivalent ones.

        A request filter may fail because the server was deleted. Such a
        failure must not become the shared answer of servers that still exist.

        :raises nova.exception.InstanceNotFound: the server was deleted
        """
        judged, states = self._judge(spec_obj, with_reasons)
        server = spec_obj.instance_uuid
        if judged.end and gone.find(self.cloud, [server]):
            raise nova_exception.InstanceNotFound(instance_id=server)
        return judged, states

    def _judge(
        self, spec_obj: typing.Any, with_reasons: bool
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        judged = asking.start(self.cloud, with_reasons)
        asked = asking.Asking(self.cloud, process.context(), spec_obj, judged)
        offered = candidates.ask(asked, with_scheduler_limit=False)
        if offered is None:
            return judged, []
        order = hosts.Hosts(asked, offered).judge()
        # A filter may have removed every candidate of a host.
        return judged, [one for one in order if one.allocation_candidates]

    def _find_proposed(
        self,
        prepared: movable.Movable,
        like: movable.Like,
        proposed: Iterable[dict[str, list[claims.Request]]],
    ) -> typing.Any:
        """Return the best proposed host.

        :param proposed: as :meth:`_propose` yields them
        """
        if like.is_whole:
            found = (self._find_first(like.shared, one) for one in proposed)
            return next(filter(None, found), None)
        spec_obj = self._run_request_filters(prepared)
        if spec_obj is None:
            return None
        return self._find_by_own_query(spec_obj, proposed)

    def _find_by_own_query(
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
            states = self._read_states(spec_obj, offered)
            # The filters run before: weighers of groups read their notes.
            for one in self._weigh(self._filter(spec_obj, states), spec_obj):
                alone = {one.uuid: self._ask_about(spec_obj, one)}
                own = self._read_states(spec_obj, alone)
                for state in self._filter(spec_obj, own):
                    return state
            seen += len(states)
            if seen >= PROPOSED:
                break
        return None

    def _propose(
        self,
        prepared: movable.Movable,
        like: movable.Like,
        barred: Set[str],
    ) -> Iterator[dict[str, list[claims.Request]]]:
        """Yield hosts of the shared answer, chunk by chunk.

        :returns: for each chunk, the allocation requests that fit, by the
            hosts' UUIDs
        """
        shared, most = like.shared, _PROPOSED_AT_ONCE
        if like.is_whole:
            most = WEIGHED
        elif prepared.spec_obj.instance_group:
            most = PROPOSED
        requests, touched = self._find_requests(shared, barred), self._touched

        def offer(
            uuids: Iterable[str],
        ) -> Iterator[tuple[str, list[claims.Request]]]:
            unbarred = (uuid for uuid in uuids if uuid not in barred)
            return self._offer(prepared, shared, requests, unbarred)

        changed, ranked = self._split_touched(shared, requests, touched)
        # Generators, so that each host is checked only when its turn comes: a
        # full provider may be shared by any number of hosts.
        best = offer(ranked)
        fresh = offer(uuid for uuid in requests if uuid not in touched)
        first = dict(offer(changed)) | dict(itertools.islice(best, most))
        if not like.is_whole:
            first = self._keep_best(shared, first)
        yield first | dict(itertools.islice(fresh, most))
        rest = itertools.chain(best, fresh)
        while more := dict(itertools.islice(rest, most)):
            yield more

    def _offer(
        self,
        prepared: movable.Movable,
        shared: movable.Shared,
        requests: Mapping[str, list[claims.Request]],
        uuids: Iterable[str],
    ) -> Iterator[tuple[str, list[claims.Request]]]:
        """Yield hosts with their fitting requests.

        Hosts without one are left out, and those that are known to refuse
        the request, or to which nova-conductor does not let the server go.
        """
        for uuid in uuids:
            fit = self._fit(requests[uuid])
            if (
                fit
                and self._key(shared, uuid, fit) not in self._refused
                and prepared.may_move_to(self.cloud.states[uuid])
            ):
                yield uuid, fit

    def _keep_best(
        self,
        shared: movable.Shared,
        offered: dict[str, list[claims.Request]],
    ) -> dict[str, list[claims.Request]]:
        """Keep the PROPOSED best hosts, by the weighers' order for all."""
        if len(offered) <= PROPOSED:
            return offered
        states = self._read_states(shared.judged, offered)
        order = self._weigh(states, shared.judged)
        return {
            one.uuid: offered[one.uuid]
            for one in itertools.islice(order, PROPOSED)
        }

    def _split_touched(
        self,
        shared: movable.Shared,
        requests: Mapping[str, list[claims.Request]],
        touched: Mapping[str, None],
    ) -> tuple[list[str], list[str]]:
        """Split touched hosts into those that changed, and the others.

        Changed ones changed since the last ordering. The weighers order all
        touched hosts again only when many have changed.

        :returns: UUIDs of the changed hosts, unsorted, and of the others, the
            best first
        """
        versions, before = self.cloud.versions, shared.ranked
        known = [uuid for uuid in touched if uuid in requests]
        changed = [one for one in known if before.get(one) != versions[one]]
        if len(changed) > max(PROPOSED, len(known) // 5):
            states = self.cloud.get_host_states_by_uuids(
                self._ctxt, known, shared.judged
            )
            order = self._weigh(states, shared.judged)
            before = {one.uuid: versions[one.uuid] for one in order}
            shared.ranked = before
            changed = []
        ranked = [
            uuid
            for uuid, version in before.items()
            if versions.get(uuid) == version and uuid in touched
        ]
        return changed, ranked

    def _find_requests(
        self, shared: movable.Shared, barred: Set[str]
    ) -> Mapping[str, list[claims.Request]]:
        """Return a shared answer's requests, and those of hosts vacated since.

        The caller checks whether the requests fit and the hosts pass the
        filters.

        :param barred: UUIDs of hosts of which a caller wants no request
        """
        open_fork = self.cloud.open_fork
        if not open_fork:
            return shared.requests
        vacated = open_fork.find_openable(shared.requests) - barred
        vacated &= self._list_in_cell(shared.judged)
        if not vacated:
            return shared.requests
        opened = shared.opened
        if new := vacated - opened.keys():
            known = shared.requests | shared.refused
            opened |= open_fork.open(shared.resources, new, known)
        return shared.requests | {uuid: opened[uuid] for uuid in vacated}

    def _list_in_cell(self, spec_obj: typing.Any) -> Set[str]:
        """Return the UUIDs of the hosts that nova looks at for a request.

        Placement knows no cells: in its answers are hosts of all of them.
        """
        cell = snapshot.get_cell(spec_obj)
        if cell is None:
            return self.cloud.states.keys()
        return self.cloud.nodes_by_cell.get(cell, frozenset())

    def _find_first(
        self,
        shared: movable.Shared,
        offered: dict[str, list[claims.Request]],
    ) -> typing.Any:
        """Return the best HostState that passes every filter now.

        Hosts are filtered one at a time, because most pass. A host that fails
        is not asked again until its state changes.
        """
        states = self._read_states(shared.judged, offered)
        for one in self._weigh(states, shared.judged):
            for state in self._filter(shared.judged, [one]):
                return state
            key = self._key(shared, one.uuid, offered[one.uuid])
            self._refused[key] = True
        return None

    def _key(
        self,
        shared: movable.Shared,
        uuid: str,
        fit: list[claims.Request],
    ) -> tuple[movable.Shared, str, int, tuple[int, ...]]:
        """Return a key that changes when a host's verdict may change."""
        # It has the requests, too: another host may have taken, or given
        # back, resources of a provider that both share.
        version = self.cloud.versions.get(uuid, 0)
        return shared, uuid, version, tuple(map(id, fit))

    def _weigh(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Iterator[typing.Any]:
        """Yield HostStates in the order of nova's weighers."""
        if states:
            for one in self.cloud.get_weighed_hosts(states, spec_obj):
                yield one.obj

    @property
    def _touched(self) -> dict[str, None]:
        """UUIDs of the hosts that have changed since the shared answers."""
        touched: dict[str, None] = {}
        open_fork = self.cloud.open_fork
        while open_fork:
            touched |= dict.fromkeys(open_fork.touched)
            open_fork = open_fork.before
        return touched

    def _run_request_filters(self, prepared: movable.Movable) -> typing.Any:
        """Return a request after the request filters; None if one refuses it.

        They may ask cells, Glance and Cinder. The only part of a fork that
        they read is which hosts a group's members are on; so the result is
        kept unless a member has moved.

        :raises Exception: as :meth:`judge`
        """
        open_fork = self.cloud.open_fork
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

    def _ask_about(
        self, spec_obj: typing.Any, state: typing.Any
    ) -> list[claims.Request]:
        """Return a request's own allocation candidates on one host.

        :param spec_obj: a nova RequestSpec after the request filters
        """
        own = spec_obj.obj_clone()
        if uses_own_providers(
            state.allocation_candidates[0], state.uuid, self.cloud
        ):
            # For a named host, nova queries placement only for providers in
            # that host's tree.
            destination = own.requested_destination or objects.Destination()
            destination.host, destination.node = state.host, state.nodename
            own.requested_destination = destination
        resources = query.forms(self._ctxt, own, self.cloud)
        query.lift_limit(resources)
        source = self.cloud.open_fork or self.cloud.providers
        answer = source.get_candidates(self._ctxt, resources)
        return self._fit(query.by_provider(answer.requests)[state.uuid])

    def _fit(self, requests: list[claims.Request]) -> list[claims.Request]:
        """Return the allocation requests that fit into the fork."""
        if not (open_fork := self.cloud.open_fork):
            return requests
        find_lacking = open_fork.ledger.find_lacking
        return [request for request in requests if not find_lacking(request)]

    def _read_states(
        self, spec_obj: typing.Any, offered: dict[str, list[claims.Request]]
    ) -> list[typing.Any]:
        """Return HostStates of hosts with allocation candidates.

        :param offered: the candidates, by UUID
        """
        states = self.cloud.get_host_states_by_uuids(
            self._ctxt, [uuid for uuid in offered if offered[uuid]], spec_obj
        )
        for state in states:
            state.allocation_candidates = offered[state.uuid]
        return states

    def _filter(
        self, spec_obj: typing.Any, states: list[typing.Any]
    ) -> list[typing.Any]:
        """Return the HostStates that pass every filter."""
        for state in states:
            # Filters remove candidates, and must not from the shared lists.
            copied = claims.copy_requests(state.allocation_candidates)
            state.allocation_candidates = copied
        for host_filter in self.cloud.enabled_filters if states else ():
            if not host_filter.run_filter_for_index(0):
                continue
            refused = reasons.ask_filter(host_filter, spec_obj, states, False)
            states = [state for state in states if state.uuid not in refused]
        return [state for state in states if state.allocation_candidates]


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


def can_be_named(target: typing.Any, cloud: snapshot.Snapshot) -> bool:
    """Return whether nova accepts a move that names its destination.

    :param target: the destination, a nova HostState with its allocation
        candidates
    """
    return uses_own_providers(
        target.allocation_candidates[0], target.uuid, cloud
    )


def with_barred_ignored(
    judged: matrix.Matrix, barred: Set[str]
) -> matrix.Matrix:
    """Return a copy of a matrix in which barred hosts are refused as ignored.

    Of their own refusals only that they are disabled is kept.

    :param barred: UUIDs of the barred hosts
    """
    unbarred = judged.copy(without=barred)
    unbarred.add(
        'requested host',
        'ignore_hosts',
        refused=dict.fromkeys(barred, refusals.IGNORED),
    )
    return unbarred
