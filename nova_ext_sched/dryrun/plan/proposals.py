# SPDX-License-Identifier: Apache-2.0

"""Proposes hosts of a shared answer, as they are in the open fork.

Say that the shared answer contains cmp-01 to cmp-99. Since then servers came
to cmp-01 and cmp-02, and servers left cmp-03: these three and the best of
cmp-04 to cmp-99 are proposed. Once many hosts have changed, the weighers order
only those that changed since the last ordering; the others keep their order
(:class:`.shared_answers.Ranking`).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import itertools

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import shared_answers

#: Number of untouched hosts that the weighers order together with the touched
#: ones, taken in the order of the shared answer. An untouched host passes the
#: filters if its allocation request still fits.
WEIGHED = 4
#: The same, where the shared answer only proposes. A group's server is offered
#: this many hosts at once, because the weighers spread a group over more than
#: one rack. Any other server is offered _AT_ONCE hosts at a time, up to this
#: many.
PROPOSED = 50
_AT_ONCE = 10
#: The most hosts that stay unordered after they changed. Each move weighs all
#: of these, so they are few; to order them after each move would cost more.
UNORDERED = 12
# The fewest hosts of each run that a server is offered: the best of all may be
# in any run, but hardly all of the best in one.
_OF_EACH = 2


def count_at_once(prepared: movable.Movable, like: shared_answers.Like) -> int:
    """Return how many hosts a server is offered at a time."""
    if like.is_whole:
        return WEIGHED
    return PROPOSED if prepared.spec_obj.instance_group else _AT_ONCE


class Proposals:
    """The hosts that shared answers propose.

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
        shared, most = like.shared, count_at_once(prepared, like)
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
        """Keep the PROPOSED best hosts, by the weighers' order for all."""
        if len(offered) <= PROPOSED:
            return offered
        states = self._said.read_states(shared.filtered, offered)
        order = self._said.weigh(states, shared.filtered)
        return {
            one.uuid: offered[one.uuid]
            for one in itertools.islice(order, PROPOSED)
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
