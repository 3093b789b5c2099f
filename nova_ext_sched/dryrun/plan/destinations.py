# SPDX-License-Identifier: Apache-2.0

"""Finds destinations of servers by nova-scheduler's code, in the open fork.

A host that refuses a request keeps refusing it as long as servers only come.
So one answer, computed on the cloud as it is, serves all equivalent requests
(:mod:`.shared_answers`). When a server's turn comes, only the hosts of that
answer and vacated hosts are proposed: the weighers order those that changed
since and the best of the others, the filters run again, and the first host
that passes is taken.

====================================  =====================================
a server                              what decides
====================================  =====================================
whose likeness is whole (covers all   the filters, on the hosts of the shared
that nova reads)                      answer
whose likeness is not whole           the shared answer proposes hosts; a
                                      query for this server, on one proposed
                                      host, decides (:mod:`.own_queries`). If
                                      no proposed host passes, a query for this
                                      server on all hosts does
without a likeness                    a query for this server on all hosts
====================================  =====================================
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import itertools
import typing

from nova import exception as nova_exception

from nova_ext_sched import fields
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import own_queries
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import priority
from nova_ext_sched.dryrun.plan import processors
from nova_ext_sched.dryrun.plan import shared_answers

#: Number of untouched hosts that the weighers order together with the touched
#: ones, taken in the order of the shared answer. An untouched host passes the
#: filters if its allocation request still fits.
WEIGHED = 4
# The same, where the shared answer only proposes: hosts that are offered at a
# time, up to own_queries.PROPOSED. The server of a group is offered as many at
# once, because the weighers spread a group over more than one rack.
_AT_ONCE = 10
#: The most hosts that stay unordered after they changed. Each move weighs all
#: of these, so they are few; to order them after each move would cost more.
UNORDERED = 12
# The fewest hosts of each run that a server is offered: the best of all may be
# in any run, but hardly all of the best in one.
_OF_EACH = 2


class Destinations:
    """Finds the destinations of servers in the open fork.

    Callers say which hosts are barred, by the UUIDs of their compute nodes.

    :param cloud: answers as it is in the open fork
    :ivar answers: makes the answers that equivalent requests share
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
        self.answers = shared_answers.SharedAnswers(cloud)
        self._verdicts = shared_answers.Verdicts(cloud)
        self._proposals = _Proposals(cloud, self._verdicts)
        self._own = own_queries.OwnQueries(cloud, self._verdicts)
        # Hosts whose CPU lacks what a guest needs, by the guest's CPU.
        self._lacking_cpu: dict[processors.Processor, frozenset[str]] = {}

    def nodes_of(self, hosts: Iterable[str]) -> frozenset[str]:
        """Return the UUIDs of the compute nodes of hosts, by their names."""
        return frozenset(
            uuid for host in hosts for uuid in self.cloud.nodes_of(host)
        )

    def count(self, prepared: movable.Movable, barred: Set[str]) -> int:
        """Estimate how many hosts a server can go to now.

        :param barred: UUIDs of hosts that are no destinations
        :raises Exception: as :meth:`judge`
        """
        like = prepared.like
        if like is None:
            return len(self._judge_unbarred(prepared.spec_obj, barred))
        requests, touched = like.shared.requests, self._verdicts.touched
        able = requests.keys() - barred
        failing = self._verdicts.find_failing(like.shared, touched & able)
        # Servers are counted before any moves. An order that was made on the
        # way would be wrong again in the next fork, for each host that one
        # had moved to.
        self._proposals.rank(like.shared, requests)
        if like.is_whole:
            return len(able - failing)
        spec_obj = self._own.run_request_filters(prepared)
        if spec_obj is None:
            return 0
        # What refuses all equivalent requests refuses this one. For an
        # estimate, it is enough to ask the best others about this one.
        remaining = [
            one for one in requests if one in able and one not in failing
        ]
        changed = filter(touched.__contains__, remaining)
        fresh = itertools.filterfalse(touched.__contains__, remaining)
        most = _count_at_once(prepared, like)
        checked = [
            *itertools.islice(changed, most),
            *itertools.islice(fresh, WEIGHED),
        ]
        offered = {
            uuid: self._verdicts.fit(requests[uuid]) for uuid in checked
        }
        passing = self._verdicts.filter(
            spec_obj, self._verdicts.read_states(spec_obj, offered)
        )
        return len(passing) + len(remaining) - len(checked)

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
            proposed = self._proposals.propose(prepared, prepared.like, barred)
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
        barred: Set[str] = frozenset(),
        note: Callable[[typing.Any], object] = lambda target: None,
    ) -> typing.Any:
        """Move a server to its destination now, in the open fork.

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
                if prepared.go(self.cloud.future, target):
                    return target
        except placement.PlacementFailed:
            raise
        except Exception:
            # The caller reports the server as stuck.
            pass
        return None

    def make_move(
        self,
        server: plans.Leaving,
        prepared: movable.Movable,
        target: typing.Any,
    ) -> plans.Move:
        """Describe the move of a server to its destination, a HostState."""
        needed, offered = prepared.processor, processors.read_host(target)
        is_host = needed is not None and not needed.is_guest
        return plans.Move(
            **vars(server),
            to=target.host if self.can_be_named(target) else None,
            expected=target.host,
            method=prepared.method,
            why_cold=prepared.why_cold,
            paused=prepared.is_paused,
            lacks=processors.list_lacking(needed, offered),
            newer=is_host and bool(processors.list_lacking(offered, needed)),
            from_image=prepared.method == movable.EVACUATE
            and not fields.get_field(prepared.spec_obj, 'is_bfv'),
        )

    def can_be_named(self, target: typing.Any) -> bool:
        """Return whether nova accepts a move that names its destination.

        :param target: the destination, a nova HostState with its allocation
            candidates
        """
        return own_queries.uses_own_providers(
            target.allocation_candidates[0], target.uuid, self.cloud
        )

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
            offered = next(
                self._proposals.propose(prepared, prepared.like, barred)
            )
            spec_obj = prepared.like.shared.filtered
            if not prepared.like.is_whole:
                spec_obj = self._own.run_request_filters(prepared)
            read = self._verdicts.read_states(spec_obj, offered)
            states = [
                *self._verdicts.weigh(
                    self._verdicts.filter(spec_obj, read), spec_obj
                )
            ]
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
        requests = self._proposals.find_requests(
            prepared.like.shared, frozenset()
        )
        offered = {node: self._verdicts.fit(requests.get(node, []))}
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
        judged, _ = shared_answers.judge_existing(self.cloud, spec_obj, True)
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
        return hosts.judge(self.cloud, spec_obj.obj_clone(), with_reasons)

    def _judge_unbarred(
        self, spec_obj: typing.Any, barred: Set[str]
    ) -> list[typing.Any]:
        _, states = self.judge(spec_obj)
        return [state for state in states if state.uuid not in barred]

    def _find_proposed(
        self,
        prepared: movable.Movable,
        like: shared_answers.Like,
        proposed: Iterable[dict[str, list[claims.Request]]],
    ) -> typing.Any:
        """Return the best proposed host.

        :param proposed: as :meth:`_Proposals.propose` yields them
        """
        if like.is_whole:
            found = (
                self._verdicts.find_first(like.shared, one) for one in proposed
            )
            return next(filter(None, found), None)
        spec_obj = self._own.run_request_filters(prepared)
        if spec_obj is None:
            return None
        return self._own.find(spec_obj, proposed)


class _Proposals:
    """Proposes hosts of a shared answer, as they are in the open fork.

    Say that the shared answer contains cmp-01 to cmp-99. Since then servers
    came to cmp-01 and cmp-02, and servers left cmp-03: these three and the
    best of cmp-04 to cmp-99 are proposed. Once many hosts have changed, the
    weighers order only those that changed since the last ordering; the others
    keep their order (:class:`.shared_answers.Ranking`).

    :param said: the verdicts of hosts
    """

    def __init__(
        self, cloud: snapshot.Snapshot, said: shared_answers.Verdicts
    ) -> None:
        self._cloud, self._said = cloud, said

    def propose(
        self,
        prepared: movable.Movable,
        like: shared_answers.Like,
        barred: Set[str],
    ) -> Iterator[dict[str, list[claims.Request]]]:
        """Yield hosts of the shared answer, chunk by chunk.

        :returns: for each chunk, the allocation requests that fit, by the
            hosts' UUIDs
        """
        shared, most = like.shared, _count_at_once(prepared, like)
        requests = self.find_requests(shared, barred)
        touched = self._said.touched

        def offer(
            uuids: Iterable[str],
        ) -> Iterator[tuple[str, list[claims.Request]]]:
            unbarred = (uuid for uuid in uuids if uuid not in barred)
            return self._offer(prepared, shared, requests, unbarred)

        changed = self.rank(shared, requests)
        # Generators, so that each host is checked only when its turn comes: a
        # full provider may be shared by any number of hosts.
        runs = [
            offer(filter(requests.__contains__, run))
            for run in shared.ranked.read(self._cloud.versions)
        ]
        fresh = offer(uuid for uuid in requests if uuid not in touched)
        first = dict(offer(changed))
        of_each = max(_OF_EACH, 2 * most // max(1, len(runs)))
        for best in runs:
            first |= itertools.islice(best, min(most, of_each))
        if not like.is_whole:
            first = self._keep_best(shared, first)
        yield first | dict(itertools.islice(fresh, most))
        rest = itertools.chain(*runs, fresh)
        while more := dict(itertools.islice(rest, most)):
            yield more

    def _offer(
        self,
        prepared: movable.Movable,
        shared: shared_answers.Shared,
        requests: Mapping[str, list[claims.Request]],
        uuids: Iterable[str],
    ) -> Iterator[tuple[str, list[claims.Request]]]:
        """Yield hosts with their fitting requests.

        Hosts without one are left out, and those that are known to refuse
        the request, or to which nova-conductor does not let the server go.
        """
        for uuid in uuids:
            fit = self._said.fit(requests[uuid])
            if (
                fit
                and not self._said.is_refused(shared, uuid, fit)
                and prepared.may_move_to(self._cloud.states[uuid])
            ):
                yield uuid, fit

    def _keep_best(
        self,
        shared: shared_answers.Shared,
        offered: dict[str, list[claims.Request]],
    ) -> dict[str, list[claims.Request]]:
        """Keep the PROPOSED best hosts by the weighers' order for all."""
        if len(offered) <= own_queries.PROPOSED:
            return offered
        states = self._said.read_states(shared.filtered, offered)
        order = self._said.weigh(states, shared.filtered)
        return {
            one.uuid: offered[one.uuid]
            for one in itertools.islice(order, own_queries.PROPOSED)
        }

    def rank(
        self, shared: shared_answers.Shared, requests: Mapping[str, object]
    ) -> list[str]:
        """Order touched hosts by the weighers, if many have changed.

        :param requests: those that the hosts may satisfy, by UUID
        :returns: UUIDs of touched hosts that changed since, unsorted
        """
        versions = self._cloud.versions
        known = filter(requests.__contains__, self._said.touched)
        changed = shared.ranked.find_changed(known, versions)
        if len(changed) <= UNORDERED:
            return changed

        def order(uuids: Collection[str]) -> Iterator[str]:
            states = self._cloud.get_host_states_by_uuids(
                process.context(), uuids, shared.filtered
            )
            for state in self._said.weigh(states, shared.filtered):
                yield state.uuid

        shared.ranked.add(changed, versions, order)
        return []

    def find_requests(
        self, shared: shared_answers.Shared, barred: Set[str]
    ) -> Mapping[str, list[claims.Request]]:
        """Return a shared answer's requests, and those of hosts vacated since.

        The caller checks whether the requests fit and the hosts pass the
        filters.

        :param barred: UUIDs of hosts of which a caller wants no request
        """
        open_fork = self._cloud.open_fork
        if not open_fork:
            return shared.requests
        vacated = open_fork.find_openable(shared.requests) - barred
        vacated &= shared_answers.list_in_cell(self._cloud, shared.filtered)
        if not vacated:
            return shared.requests
        opened = shared.opened
        if new := vacated - opened.keys():
            known = shared.requests | shared.refused
            opened |= open_fork.open(shared.resources, new, known)
        return shared.requests | {uuid: opened[uuid] for uuid in vacated}


def _count_at_once(
    prepared: movable.Movable, like: shared_answers.Like
) -> int:
    """Return how many hosts a server is offered at a time."""
    if like.is_whole:
        return WEIGHED
    return (
        own_queries.PROPOSED if prepared.spec_obj.instance_group else _AT_ONCE
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
