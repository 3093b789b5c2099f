# SPDX-License-Identifier: Apache-2.0

"""Asks hosts what they say of a request now, in the open fork."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Set
import typing

import cachetools

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.plan import shared_answers

# The most refusals of hosts that are kept.
_MOST_REFUSED = 50_000


class Verdicts:
    """The verdicts of hosts in the open fork.

    They are keyed by the version of the host's state, which no two states
    share, and so hold in any fork.
    """

    def __init__(self, cloud: snapshot.Snapshot) -> None:
        self._cloud, self._ctxt = cloud, process.context()
        # Hosts that do not pass, by what :meth:`_key` returns.
        self._refused: cachetools.LRUCache[object, bool] = cachetools.LRUCache(
            _MOST_REFUSED
        )

    @property
    def touched(self) -> Set[str]:
        """UUIDs of the hosts that have changed since the shared answers."""
        open_fork = self._cloud.open_fork
        return open_fork.all_touched if open_fork else frozenset()

    def fit(self, requests: list[claims.Request]) -> list[claims.Request]:
        """Return the allocation requests that fit into the fork."""
        if not (open_fork := self._cloud.open_fork):
            return requests
        fits = open_fork.ledger.fits
        return [request for request in requests if fits(request)]

    def read_states(
        self, spec_obj: typing.Any, offered: dict[str, list[claims.Request]]
    ) -> list[typing.Any]:
        """Return HostStates of hosts with allocation candidates.

        :param offered: the candidates, by UUID
        """
        states = self._cloud.get_host_states_by_uuids(
            self._ctxt, [uuid for uuid in offered if offered[uuid]], spec_obj
        )
        for state in states:
            state.allocation_candidates = offered[state.uuid]
        return states

    def filter(
        self, spec_obj: typing.Any, states: list[typing.Any]
    ) -> list[typing.Any]:
        """Return the HostStates that pass every filter."""
        for state in states:
            # Filters remove candidates, and must not from the shared lists.
            copied = claims.copy_requests(state.allocation_candidates)
            state.allocation_candidates = copied
        for host_filter in self._cloud.enabled_filters if states else ():
            if not host_filter.run_filter_for_index(0):
                continue
            refused = reasons.ask_filter(host_filter, spec_obj, states, False)
            states = [state for state in states if state.uuid not in refused]
        return [state for state in states if state.allocation_candidates]

    def weigh(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Iterator[typing.Any]:
        """Yield HostStates in the order of nova's weighers."""
        if states:
            for one in self._cloud.get_weighed_hosts(states, spec_obj):
                yield one.obj

    def find_first(
        self,
        shared: shared_answers.Shared,
        offered: dict[str, list[claims.Request]],
    ) -> typing.Any:
        """Return the best HostState that passes every filter now.

        Hosts are filtered one at a time, because most pass. A host that fails
        is not asked again until its state changes.
        """
        states = self.read_states(shared.filtered, offered)
        for one in self.weigh(states, shared.filtered):
            for state in self.filter(shared.filtered, [one]):
                return state
            key = self._key(shared, one.uuid, offered[one.uuid])
            self._refused[key] = True
        return None

    def find_failing(
        self, shared: shared_answers.Shared, uuids: Set[str]
    ) -> Set[str]:
        """Return touched hosts of a shared answer that pass no more.

        Each is judged once until the next claim: survive --flavor counts all
        hosts for each failure, in a fork with thousands of new servers.

        :param uuids: hosts that must be judged; what is returned may have more
        """
        open_fork = self._cloud.open_fork
        version = open_fork.version if open_fork else 0
        counted = shared.counted.get(version)
        if counted is None:
            counted = shared.counted[version] = shared_answers.Counted()
        if new := uuids - counted.judged:
            counted.judged |= new
            counted.failing |= new - self._find_passing(shared, new)
        return counted.failing

    def _find_passing(
        self, shared: shared_answers.Shared, uuids: Iterable[str]
    ) -> set[str]:
        """Return the hosts of a shared answer that pass every filter now.

        The filters run only for hosts that changed since their last verdict.
        """
        passing, offered = set[str](), {}
        for uuid in uuids:
            if fit := self.fit(shared.requests[uuid]):
                key = self._key(shared, uuid, fit)
                if shared.passed.get(uuid) == key:
                    passing.add(uuid)
                elif key not in self._refused:
                    offered[uuid] = fit
        states = self.read_states(shared.filtered, offered)
        newly = {one.uuid for one in self.filter(shared.filtered, states)}
        for uuid, fit in offered.items():
            key = self._key(shared, uuid, fit)
            if uuid in newly:
                shared.passed[uuid] = key
            else:
                self._refused[key] = True
        return passing | newly

    def is_refused(
        self,
        shared: shared_answers.Shared,
        uuid: str,
        fit: list[claims.Request],
    ) -> bool:
        """Return whether a host is known to refuse a shared request."""
        return self._key(shared, uuid, fit) in self._refused

    def _key(
        self,
        shared: shared_answers.Shared,
        uuid: str,
        fit: list[claims.Request],
    ) -> tuple[shared_answers.Shared, str, int, tuple[int, ...]]:
        """Return a key that changes when a host's verdict may change."""
        # It has the requests, too: another host may have taken, or given
        # back, resources of a provider that both share.
        version = self._cloud.versions.get(uuid, 0)
        return shared, uuid, version, tuple(map(id, fit))
