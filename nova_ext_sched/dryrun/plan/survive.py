# SPDX-License-Identifier: Apache-2.0

"""Finds hosts whose failure strands no server, and how many may still come.

To count the new servers after which the same hosts can fail as now, each
failure is evacuated again in the fork where they came, with the new servers on
its hosts. If it strands more servers than without them, fewer may come.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import gc
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import holding
from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

#: The most new servers that are counted: each is placed, and evacuated.
MOST = 2000
# The most choices of spares that are tried before fewer are left out.
_MOST_TRIED = 200
# The most failures that strand servers which the progress line names.
_MOST_SHOWN = 3


class Evacuated(typing.NamedTuple):
    """A failure as it was evacuated on the cloud of now.

    :ivar hosts: names of those that fail
    :ivar movables: each server on them, or why nova does not evacuate it
    :ivar stuck: the UUIDs of servers that cannot be placed
    """

    failure: str
    hosts: Set[str]
    movables: movable.Movables
    stuck: Set[str]


class Failed(typing.NamedTuple):
    """A failure, and what became of its servers.

    :ivar deleted: the servers that were deleted meanwhile
    :ivar evacuated: how it was evacuated; without servers if that was in
        another process
    """

    failure: plans.Failure
    deleted: list[plans.Leaving]
    evacuated: Evacuated

    def without_movables(self) -> 'Failed':
        """Return it without what takes most memory, and cannot be sent."""
        bare = self.evacuated._replace(movables={})
        return self._replace(evacuated=bare)


class Survival:
    """Lets hosts fail, one failure after the other.

    :param places: the destinations of servers
    :param spares: names of hosts that are enabled only if a failure needs them
    """

    def __init__(
        self,
        places: destinations.Destinations,
        spares: Set[str] = frozenset(),
    ) -> None:
        self._places = places
        self._spares = spares
        self._policies = policies.Policies(places.cloud).on
        self._evacuations = departures.Evacuations(places)
        # How many servers each host has, by cell.
        self._counts: dict[str, dict[str, int]] = {}
        for cell, counts in places.reader.count().items():
            for host, count in counts.items():
                self._counts.setdefault(host, {})[cell] = count

    def find(
        self,
        by: str = 'host',
        hosts: Collection[str] = (),
        aggregates: Collection[str] = (),
        with_empty: bool = False,
    ) -> tuple[dict[str, Set[str]], str]:
        """Group the hosts that fail at once, by name; add a remark.

        :param by: ``host`` or ``domain``
        :param hosts: names of the only ones that fail
        :param aggregates: names, UUIDs or IDs of those whose hosts fail
        :param with_empty: whether hosts without servers fail, too
        :raises exception.InvalidValue: a host or aggregate does not exist
        """
        cloud, used = self._places.cloud, set(self._counts)
        if with_empty:
            used |= {state.host for state in cloud.states.values()}
        if hosts or aggregates:
            used &= selection.find(cloud, hosts, aggregates)
        if by == 'host':
            return {host: {host} for host in sorted(used)}, ''
        domains = selection.group(cloud)
        alone = used.difference(*domains.values())
        remark = ''
        if alone:
            are = messages.agree(len(alone), 'is', 'are')
            remark = f'{messages.count("host", len(alone))} {are} in no domain'
        return {
            name: members
            for name, members in sorted(domains.items())
            if used & members
        }, remark

    def fail(
        self,
        failures: Mapping[str, Set[str]],
        advance: progress.Advance = progress.silent,
    ) -> Iterator[Failed]:
        """Yield the outcome of each failure, one cell's after another's.

        :param failures: the result of :meth:`find`
        :param advance: called after each server
        :raises placement.PlacementFailed: placement does not answer
        """
        advance(total=sum(map(self._count, failures.values())))
        bad: list[str] = []
        for name in self.in_cells(failures):
            # A cell that stops answering is in the snapshot's faults.
            try:
                failed = self._fail(name, failures[name], advance)
            except cells.CellFailed:
                continue
            _note_bad(failed.failure, bad, advance)
            yield failed

    def in_cells(self, failures: Mapping[str, Set[str]]) -> Iterator[str]:
        """Yield the names of failures, one cell's after another's.

        The servers of several are read at once, so :meth:`prepare` each as it
        is yielded.

        :param failures: the hosts of each
        """
        for names in self._split(failures):
            expected: dict[str, dict[str, int]] = {}
            for host in itertools.chain(*(sorted(failures[n]) for n in names)):
                for cell, count in self._counts.get(host, {}).items():
                    expected.setdefault(cell, {})[host] = count
            self._evacuations.expect(expected)
            yield from names

    def fail_in_jobs(
        self,
        failures: Mapping[str, Set[str]],
        number: int,
        advance: progress.Advance = progress.silent,
    ) -> Iterator[Failed]:
        """Yield the same as :meth:`fail`, found in several processes.

        :param number: of jobs
        :raises .jobs.JobFailed: a job died
        """
        priorities = self._places.priorities

        def work(
            part: Sequence[str], advance: progress.Advance
        ) -> list[tuple[Failed, Mapping[str, str]]]:
            of_part = {name: failures[name] for name in part}
            return [
                (failed.without_movables(), priorities.take_unread())
                for failed in self.fail(of_part, advance)
            ]

        advance(total=sum(map(self._count, failures.values())))
        parts = self._split(failures)
        bad: list[str] = []
        for _, ended in jobs.run(
            self._places.cloud, parts, work, number, advance
        ):
            for failed, unread in ended:
                _note_bad(failed.failure, bad, advance)
                priorities.add_unread(unread)
                yield failed

    def _split(self, failures: Mapping[str, Set[str]]) -> list[list[str]]:
        """Return the names of failures, those of one cell together.

        :returns: the most servers first
        """
        parts: dict[object, list[str]] = {}
        for name, hosts in failures.items():
            of_cells = {
                cell for host in hosts for cell in self._counts.get(host, ())
            }
            key = tuple(of_cells) if len(of_cells) == 1 else name
            parts.setdefault(key, []).append(name)
        return sorted(
            parts.values(),
            key=lambda names: (
                -sum(self._count(failures[one]) for one in names)
            ),
        )

    def _count(self, hosts: Iterable[str]) -> int:
        """Return how many servers hosts have."""
        counts = self._counts
        return sum(sum(counts.get(host, {}).values()) for host in hosts)

    def _fail(
        self, name: str, hosts: Set[str], advance: Callable[[], object]
    ) -> Failed:
        leaving, deleted, movables = self.prepare(hosts)
        enabled = self._find_enabled(leaving, movables, hosts)
        goal = planner.Goal(
            leaving=leaving,
            barred=hosts | (self._spares - {*enabled}),
            never_given_up=self._policies,
            tells_crowded=False,
        )
        plan = planner.plan(self._places, goal, lambda *_: movables, advance)
        deleted += plan.deleted_meanwhile
        failure = plans.Failure(
            name,
            sorted(hosts),
            plan.moves,
            plan.without_place,
            plan.room_for_last,
            enabled=enabled,
        )
        failure = dataclasses.replace(
            failure, causes=plans.count_causes(failure.lost)
        )
        stuck = {server.server for server in plan.without_place}
        evacuated = Evacuated(name, hosts, movables, stuck)
        return Failed(failure, deleted, evacuated)

    def prepare(
        self, hosts: Set[str]
    ) -> tuple[list[plans.Leaving], list[plans.Leaving], movable.Movables]:
        """Prepare the servers of hosts that fail at once, before any fork.

        :param hosts: names
        :returns: the servers, those that are gone, and the evacuation of each
        :raises cells.CellFailed: the database stops answering
        :raises placement.PlacementFailed: placement does not answer
        """
        leaving: list[plans.Leaving] = []
        deleted: list[plans.Leaving] = []
        for host in sorted(hosts & self._counts.keys()):
            for cell in self._counts[host]:
                for stored in self._evacuations.read(cell, host):
                    # A server that is gone takes no place from others.
                    is_gone = gone.is_gone(stored.instance)
                    (deleted if is_gone else leaving).append(
                        plans.make_leaving(stored.instance, host)
                    )
        return leaving, deleted, self._evacuations.prepare(leaving, hosts)

    @property
    def counts(self) -> dict[str, int]:
        """The number of servers of each host that has one."""
        return {
            host: sum(of_cells.values())
            for host, of_cells in self._counts.items()
        }

    def _find_enabled(
        self,
        leaving: Sequence[plans.Leaving],
        movables: movable.Movables,
        hosts: Set[str],
    ) -> list[str]:
        """Return the fewest spares with which as few servers are stranded."""
        spares = sorted(self._spares - hosts, key=messages.in_order)

        def count(enabled: Sequence[str]) -> int:
            places = self._places
            barred = places.nodes_of(hosts | (self._spares - {*enabled}))
            with places.cloud.fork() as future:
                future.count_under_way()
                return len(
                    planner.find_remaining(places, leaving, movables, barred)
                )

        if not spares or count([]) == (least := count(spares)):
            return []
        tried = itertools.islice(
            itertools.chain.from_iterable(
                itertools.combinations(spares, number)
                for number in range(1, len(spares))
            ),
            _MOST_TRIED,
        )
        for some in tried:
            if count(some) == least:
                return [*some]
        # Too many to try: without each that is not needed beside the others.
        for one in [*spares]:
            fewer = [other for other in spares if other != one]
            if count(fewer) == least:
                spares = fewer
        return spares


def _note_bad(
    failure: plans.Failure, bad: list[str], advance: progress.Advance
) -> None:
    """Show a failure that strands servers beside those before it."""
    if failure.lost:
        bad.append(failure.failure)
        shown = messages.first_few(bad, _MOST_SHOWN)
        advance(steps=0, label=f'{len(bad)} cannot fail: {shown}')


@dataclasses.dataclass
class Spare:
    """The new servers of a flavor that can be added.

    :ivar flavor: nova's
    :ivar came: the UUID of each that fits, and the HostState where it goes
    :ivar servers: number of them that can come
    :ivar failure: the one that allows no more; empty where all may come
    :ivar reason: the reason why none fits, a sentence without its stop
    :ivar cause: the same in a word
    """

    flavor: typing.Any
    came: list[tuple[str, typing.Any]]
    servers: int
    failure: str
    reason: str
    cause: str
    _coming: newcomers.Newcomers

    def check(self, failures: Sequence[Evacuated]) -> None:
        """Lower the number until each failure ends as it does now."""
        todo = list(failures)
        while todo and self.servers:
            with self._growing(self.servers):
                while todo and self._is_as_now(todo[0], self.servers):
                    del todo[0]
            if todo:
                self.servers = self._lower(todo[0])
                self.failure = todo[0].failure

    def _lower(self, evacuated: Evacuated) -> int:
        """Return the most new servers with which a failure ends as now."""
        low, high = 0, self.servers
        with contextlib.ExitStack() as forks:
            # Each fork is on top of those that end as now.
            while high - low > 1:
                number = (low + high) // 2
                growing = self._growing(number, low)
                with contextlib.ExitStack() as opened:
                    opened.enter_context(growing)
                    if self._is_as_now(evacuated, number):
                        forks.push(opened.pop_all())
                        low = number
                    else:
                        high = number
        return low

    @contextlib.contextmanager
    def _growing(self, number: int, before: int = 0) -> Iterator[fork.Fork]:
        """Open a fork with a number of the new servers.

        :param before: number of those that are in the fork below
        """
        with self._coming.places.cloud.fork() as future:
            for uuid, target in self.came[before:number]:
                future.come(uuid, self._coming.spec_obj, target)
            yield future

    def _is_as_now(self, evacuated: Evacuated, number: int) -> bool:
        places, movables = self._coming.places, dict(evacuated.movables)
        for uuid, target in self.came[:number]:
            if target.host in evacuated.hosts:
                movables[uuid] = self._coming.prepare(uuid, target.cell_uuid)
        barred = places.nodes_of(evacuated.hosts)
        leaving = [plans.Leaving(uuid, '', '', '', []) for uuid in movables]
        remaining = planner.find_remaining(places, leaving, movables, barred)
        stuck = {server.server for server in remaining}
        if len(stuck) <= len(evacuated.stuck):
            return True
        # Servers that are gone meanwhile count in neither.
        deleted = gone.find(places.cloud, stuck & evacuated.movables.keys())
        return len(stuck - deleted) <= len(evacuated.stuck - deleted)

    def make_room(self) -> plans.FlavorRoom:
        """Return the plan's part for the flavor."""
        return plans.FlavorRoom(
            id=self.flavor.flavorid,
            name=messages.clean(self.flavor.name),
            fit=len(self.came),
            or_more=len(self.came) >= MOST,
            spare=self.servers,
            failure=messages.clean(self.failure),
            reason=self.reason,
            cause=self.cause,
        )


def _count_spare(
    places: destinations.Destinations,
    flavor: typing.Any,
    project: str | None,
    barred: Set[str],
) -> Spare:
    """Return the new servers that fit as long as no host fails.

    The parameters, and what is raised, are those of :func:`.newcomers.make`.

    :param barred: UUIDs of hosts that get none
    """
    coming = newcomers.make(places, flavor, project)
    with places.cloud.fork() as future:
        came = [*itertools.islice(coming.fill(future, barred), MOST)]
    reason = cause = ''
    if not came:
        answer = document.make_answer(coming.explain(barred))
        reason, cause = answer.sentence.rstrip('.'), answer.cause or ''
    return Spare(flavor, came, len(came), '', reason, cause, coming)


def make(
    cloud: snapshot.Snapshot,
    flavors: Sequence[str] = (),
    by: str = 'host',
    hosts: Collection[str] = (),
    aggregates: Collection[str] = (),
    advance: progress.Advance = progress.silent,
    project: str | None = None,
    spares: Set[str] = frozenset(),
    number: int = 1,
) -> plans.Outcome:
    """Return the outcome of failures.

    :param flavors: names or IDs of those whose servers may still come
    :param project: the ID of the one that asks for them
    :param by: see :meth:`Survival.find`; ``hosts`` and ``aggregates`` too
    :param advance: called after each server
    :param spares: see :class:`Survival`
    :param number: of jobs; one if there are flavors
    :raises exception.InvalidValue: what is named does not exist, or nova-api
        would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """
    ctxt, places = process.context(), destinations.Destinations(cloud)
    survival = Survival(places, spares)
    barred = places.nodes_of(spares)
    rooms = [
        _count_spare(places, request.get_flavor(ctxt, name), project, barred)
        for name in dict.fromkeys(flavors)
    ]
    # New servers come to hosts without servers, too.
    failures, remark = survival.find(by, hosts, aggregates, bool(rooms))
    if failures and cloud.states:
        # As capacity does: these objects stay until the process ends.
        gc.freeze()
    by_name: dict[str, Failed] = {}
    for failed in (
        survival.fail(failures, advance)
        if number == 1
        else survival.fail_in_jobs(failures, number, advance)
    ):
        by_name[failed.failure.failure] = (
            failed if rooms else failed.without_movables()
        )
    ended = [by_name[name] for name in failures if name in by_name]
    with_servers = [one.failure for one in ended if one.failure.servers]
    deleted = {one.server: one for each in ended for one in each.deleted}
    for counted in rooms:
        counted.check([each.evacuated for each in ended])
    kept = None
    if not (hosts or aggregates):
        enabled = policies.Policies(cloud).on
        kept = holding.find_kept(cloud, survival.counts, enabled, by)
    return plans.Outcome(
        with_servers,
        [counted.make_room() for counted in rooms],
        [*deleted.values()],
        [f'{remark}.'] * bool(remark) + places.priorities.remarks,
        cloud.faults,
        cloud.services_of(plans.name_hosts(with_servers)),
        selection.make_documents(cloud),
        kept and kept.lacking,
    )
