# SPDX-License-Identifier: Apache-2.0

"""Makes answers that equivalent requests share, and asks their hosts again.

An answer is made on the cloud as it is, before a fork is opened. In a fork
only hosts that changed are asked (:class:`Verdicts`) and ordered
(:class:`Ranking`) again.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import dataclasses
import itertools
import typing

import cachetools
from nova import exception as nova_exception
from nova.scheduler import request_filter

from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.queries import running_image

# The most hosts in all kept shared answers together: it bounds memory.
_MOST_KEPT = 300_000
# The most refusals of hosts that are kept.
_MOST_REFUSED = 50_000
# The states of the cloud in which counted hosts are kept: that in which one
# failure after the other is tried, and that after the moves of one.
_COUNTED = 2
#: The most runs of about one length of a :class:`Ranking`.
MOST_RUNS = 4


class Ranking:
    """The order of the hosts of a shared answer, while servers come and go.

    nova's weighers order a list of hosts as a whole, and in a plan of
    thousands of moves the list changes with each. So the hosts that changed
    are ordered among themselves, as one run. When there are MOST_RUNS runs of
    about one length, their hosts are ordered anew as one run; its length is
    MOST_RUNS times as large. A host that changes once is then weighed a few
    times, not with each later move.

    Between two runs there is no order: whoever looks for the best host
    compares the best ones of each.

    A host is known by its UUID and the version of its state. A run holds for
    a host as long as that version is the open fork's, so that a run that was
    made in a fork says nothing once the fork is dropped.
    """

    def __init__(self) -> None:
        # The versions at which hosts were ordered last.
        self._ordered: dict[str, int] = {}
        # The runs, by about how long they are: the short ones first.
        self._levels: list[list[dict[str, int]]] = []

    def find_changed(
        self, uuids: Iterable[str], versions: Mapping[str, int]
    ) -> list[str]:
        """Return the hosts that changed since they were ordered last.

        :param versions: the versions of all hosts that changed at all
        """
        ordered = self._ordered
        return [uuid for uuid in uuids if ordered.get(uuid) != versions[uuid]]

    def add(
        self,
        uuids: Collection[str],
        versions: Mapping[str, int],
        order: Callable[[Collection[str]], Iterable[str]],
    ) -> None:
        """Order hosts that changed, together with runs of about their length.

        :param versions: as of :meth:`find_changed`
        :param order: returns UUIDs of hosts in the weighers' order, the best
            first
        """
        for level in itertools.count():
            if level == len(self._levels):
                self._levels.append([])
            runs = self._levels[level]
            if len(runs) < MOST_RUNS - 1:
                break
            uuids = {*uuids}.union(
                *(_list_unchanged(run, versions) for run in runs)
            )
            runs.clear()
        made = {uuid: versions[uuid] for uuid in order(uuids)}
        runs.append(made)
        self._ordered |= made

    def read(self, versions: Mapping[str, int]) -> Iterator[Iterator[str]]:
        """Yield the runs: for each the hosts as they were, the best first.

        :param versions: as of :meth:`find_changed`
        """
        for run in itertools.chain.from_iterable(self._levels):
            yield _list_unchanged(run, versions)


def _list_unchanged(
    run: dict[str, int], versions: Mapping[str, int]
) -> Iterator[str]:
    """Yield the hosts of a run that did not change since."""
    for uuid, version in run.items():
        if versions.get(uuid) == version:
            yield uuid


@dataclasses.dataclass(eq=False)
class Shared:
    """The shared answer for equivalent requests, on the cloud as it is.

    :ivar spec_obj: one of the requests, a nova RequestSpec without server
        group, hints and ignored hosts
    :ivar filtered: the request after the request filters
    :ivar requests: by UUID of each host that passed, the best first,
        placement's allocation requests
    :ivar refused: the same, of hosts that a filter refuses
    :ivar resources: the queries to placement, nova ResourceRequests
    :ivar opened: allocation requests of vacated hosts, by UUID, whether or not
        there is room for them
    :ivar ranked: the touched hosts in the weighers' order
    :ivar passed: by UUID of each touched host, a key of its state when it last
        passed the filters
    :ivar counted: the touched hosts that were judged when hosts were counted
        last, by the version of the fork that was open
    """

    spec_obj: typing.Any
    filtered: typing.Any
    requests: dict[str, list[claims.Request]]
    refused: dict[str, list[claims.Request]]
    resources: list[typing.Any]
    opened: dict[str, list[claims.Request]] = dataclasses.field(
        default_factory=dict, init=False
    )
    ranked: Ranking = dataclasses.field(default_factory=Ranking, init=False)
    passed: dict[str, object] = dataclasses.field(
        default_factory=dict, init=False
    )
    counted: cachetools.LRUCache[int, 'Counted'] = dataclasses.field(
        default_factory=lambda: cachetools.LRUCache(_COUNTED), init=False
    )


@dataclasses.dataclass(eq=False)
class Counted:
    """Hosts that were judged in one state of the cloud, by UUID.

    :ivar failing: those of them that do not pass
    """

    judged: set[str] = dataclasses.field(default_factory=set)
    failing: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class Like:
    """The shared answer and key of a server's request.

    :ivar is_whole: see :class:`.likeness.Key`
    """

    shared: Shared
    is_whole: bool


def judge_existing(
    cloud: snapshot.Snapshot, spec_obj: typing.Any, with_reasons: bool = False
) -> tuple[matrix.Matrix, list[typing.Any]]:
    """Judge a server's request for all equivalent ones.

    A request filter may fail because the server was deleted. Such a failure
    must not become the shared answer of servers that still exist.

    :raises nova.exception.InstanceNotFound: the server was deleted
    """
    judged, states = hosts.judge(cloud, spec_obj, with_reasons)
    server = spec_obj.instance_uuid
    if judged.end and gone.find(cloud, [server]):
        raise nova_exception.InstanceNotFound(instance_id=server)
    return judged, states


def list_in_cell(cloud: snapshot.Snapshot, spec_obj: typing.Any) -> Set[str]:
    """Return the UUIDs of the hosts that nova looks at for a request.

    Placement knows no cells: in its answers are hosts of all of them.
    """
    cell = snapshot.get_cell(spec_obj)
    if cell is None:
        return cloud.states.keys()
    return cloud.nodes_by_cell.get(cell, frozenset())


class SharedAnswers:
    """The shared answers, each made once."""

    def __init__(self, cloud: snapshot.Snapshot) -> None:
        self._cloud = cloud
        self._kept: cachetools.LRUCache[str, Shared] = cachetools.LRUCache(
            _MOST_KEPT,
            getsizeof=lambda one: len(one.requests) + len(one.refused) + 1,
        )

    def find(
        self, key: likeness.Key | None, make: Callable[[], typing.Any]
    ) -> Like | None:
        """Return the shared answer for a request, made if there is none yet.

        :param key: the result of :func:`.likeness.of_request`
        :param make: returns a nova RequestSpec, which is changed
        :returns: None if the request has no key, or an enabled filter reads
            unknown fields
        :raises Exception: as :func:`.hosts.judge`
        """
        if key is None:
            return None
        shared = self._kept.get(key.text)
        if shared is None:
            spec_obj = make()
            if not likeness.are_known(self._cloud.enabled_filters, spec_obj):
                return None
            shared = self.make(spec_obj, judge_existing)
            if len(shared.requests) < _MOST_KEPT:
                self._kept[key.text] = shared
        return Like(shared, key.is_whole)

    def make(
        self,
        spec_obj: typing.Any,
        ask: Callable[
            ..., tuple[matrix.Matrix, list[typing.Any]]
        ] = hosts.judge,
    ) -> Shared:
        """Make the shared answer for all requests equivalent to one.

        :param spec_obj: a nova RequestSpec; it is changed
        :param ask: runs the request through the scheduler's steps; by default
            without a check whether the server was deleted
        :raises RuntimeError: a fork is open, and the answer would hold in that
            fork only
        :raises Exception: as :func:`.hosts.judge`
        """
        if self._cloud.open_fork:
            raise RuntimeError(
                'a shared answer: expected the cloud as it is, got a fork'
            )
        _make_plain(spec_obj)
        filtered, ctxt = spec_obj.obj_clone(), process.context()
        _, states = ask(self._cloud, filtered)
        offered = {one.uuid: one.allocation_candidates for one in states}
        refused: dict[str, list[claims.Request]] = {}
        resources: list[typing.Any] = []
        with contextlib.suppress(
            nova_exception.NoValidHost, placement.QueryRefused
        ):
            resources = query.forms(ctxt, filtered, self._cloud)
            query.lift_limit(resources)
            # Ask even if no host passed: a host that refuses now may pass once
            # servers have left it.
            answer = self._cloud.providers.get_candidates(ctxt, resources)
            near = list_in_cell(self._cloud, filtered)
            refused = {
                uuid: requests
                for uuid, requests in query.by_provider(
                    answer.requests
                ).items()
                if uuid in near and uuid not in offered
            }
        return Shared(spec_obj, filtered, offered, refused, resources)

    def ask_ahead(self, requests: Iterable[typing.Any], number: int) -> None:
        """Ask placement in several jobs what a plan is about to ask.

        Its answer about all hosts of a large cloud takes a second. A request
        that turns out to ask something else is asked then.

        :param requests: nova RequestSpecs; of equal flavor and image one is
            asked
        :param number: of jobs
        :raises .jobs.JobFailed: a job died
        """
        cloud, ctxt = self._cloud, process.context()
        alike = {
            (request.flavor.flavorid, running_image.image_id(request)): request
            for request in requests
        }
        wanted: dict[tuple[str, ...], list[typing.Any]] = {}
        for request in alike.values():
            filtered = request.obj_clone()
            _make_plain(filtered)
            # What raises here raises again, and is told, when it is needed.
            with contextlib.suppress(Exception):
                request_filter.process_reqspec(ctxt, filtered)
                resources = query.forms(ctxt, filtered, cloud)
                query.lift_limit(resources)
                wanted[query.key_of(resources)] = resources

        def work(
            resources: list[typing.Any], _: progress.Advance
        ) -> bytes | None:
            with contextlib.suppress(placement.PlacementFailed):
                return cloud.providers.get_candidates(ctxt, resources).pack()
            return None

        keys = [*wanted]
        for index, packed in jobs.run(cloud, [*wanted.values()], work, number):
            if packed:
                cloud.providers.keep(keys[index], packed)


def _make_plain(spec_obj: typing.Any) -> None:
    """Remove from a request what the shared answer leaves out."""
    spec_obj.ignore_hosts = []
    spec_obj.instance_group = None
    spec_obj.scheduler_hints = {}


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
        shared: Shared,
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

    def find_failing(self, shared: Shared, uuids: Set[str]) -> Set[str]:
        """Return touched hosts of a shared answer that pass no more.

        Each is judged once until the next claim: survive --flavor counts all
        hosts for each failure, in a fork with thousands of new servers.

        :param uuids: hosts that must be judged; what is returned may have more
        """
        open_fork = self._cloud.open_fork
        version = open_fork.version if open_fork else 0
        counted = shared.counted.get(version)
        if counted is None:
            counted = shared.counted[version] = Counted()
        if new := uuids - counted.judged:
            counted.judged |= new
            counted.failing |= new - self._find_passing(shared, new)
        return counted.failing

    def _find_passing(self, shared: Shared, uuids: Iterable[str]) -> set[str]:
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
        shared: Shared,
        uuid: str,
        fit: list[claims.Request],
    ) -> bool:
        """Return whether a host is known to refuse a shared request."""
        return self._key(shared, uuid, fit) in self._refused

    def _key(
        self,
        shared: Shared,
        uuid: str,
        fit: list[claims.Request],
    ) -> tuple[Shared, str, int, tuple[int, ...]]:
        """Return a key that changes when a host's verdict may change."""
        # It has the requests, too: another host may have taken, or given
        # back, resources of a provider that both share.
        version = self._cloud.versions.get(uuid, 0)
        return shared, uuid, version, tuple(map(id, fit))
