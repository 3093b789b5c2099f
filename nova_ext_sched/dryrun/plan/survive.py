# SPDX-License-Identifier: Apache-2.0

"""Which hosts may fail, so that every server on them finds another."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import gc

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.cloud import topology
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import spare

# Failures that cost servers, which are named while others are evacuated.
_MOST_SHOWN = 3


class Survival:
    """Lets hosts fail, one failure after the other.

    :param cloud: what nova-scheduler has in memory
    :param flavors: names or IDs of those whose servers may still come
    :param project: the ID of the one that asks for them
    :param keeps: whether :attr:`evacuated` is wanted
    :ivar places: where servers may go
    :ivar evacuated: what is known of failures, where somebody goes on from it
    :ivar deleted: the servers that were deleted meanwhile, by UUID
    :raises exception.InvalidValue: there is none of a name, or nova-api would
        refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        flavors: Sequence[str] = (),
        project: str | None = None,
        keeps: bool = False,
    ) -> None:
        self.cloud = cloud
        self._policies = policies.Policies(cloud).on
        self.places = destinations.Destinations(cloud)
        self._cells: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        for cell, counts in self.places.reader.count().items():
            for host, count in counts.items():
                self._cells.setdefault(host, []).append(cell)
                self._counts[host] = self._counts.get(host, 0) + count
        self._evacuations = departures.Evacuations(self.places)
        ctxt = process.context()
        #: Each counts the servers of a flavor that may still come.
        self.spares = [
            spare.count_spare(
                self.places, request.get_flavor(ctxt, name), project
            )
            for name in dict.fromkeys(flavors)
        ]
        self.deleted: dict[str, plans.Leaving] = {}
        self._keeps = keeps or bool(self.spares)
        self.evacuated: list[spare.Evacuated] = []

    def find(
        self, by: str, hosts: Collection[str], aggregates: Collection[str]
    ) -> tuple[dict[str, Set[str]], str]:
        """Return the hosts in use that fail at once, by name, and a remark.

        :param by: ``host`` or ``domain``
        :param hosts: names of the only ones that fail
        :param aggregates: names, UUIDs or IDs of those whose hosts fail
        :raises exception.InvalidValue: a host or aggregate does not exist
        """
        used = set(self._counts)
        if self.spares:
            # More servers come to others too.
            used |= {state.host for state in self.cloud.states.values()}
        if hosts or aggregates:
            used &= selection.find(self.cloud, hosts, aggregates)
        if by == 'host':
            return {host: {host} for host in sorted(used)}, ''
        domains = selection.group(self.cloud)
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
    ) -> Iterator[plans.Failure]:
        """Yield what comes of each failure.

        :param failures: what :meth:`find` returned
        :param advance: called after each server
        :raises placement.PlacementFailed: placement does not answer
        """
        advance(
            total=sum(
                self._counts.get(host, 0)
                for hosts in failures.values()
                for host in hosts
            )
        )
        bad: list[str] = []
        for name, hosts in failures.items():
            # A cell that stops answering is in the snapshot's faults.
            try:
                found = self._fail(name, hosts, advance)
            except cells.CellFailed:
                continue
            if found.lost:
                bad.append(name)
                shown = messages.first_few(bad, _MOST_SHOWN)
                advance(steps=0, label=f'{len(bad)} cannot fail: {shown}')
            yield found

    def _fail(
        self, name: str, hosts: Set[str], advance: Callable[[], object]
    ) -> plans.Failure:
        leaving: list[plans.Leaving] = []
        deleted: list[plans.Leaving] = []
        for host in sorted(hosts & self._cells.keys()):
            for cell in self._cells[host]:
                for stored in self._evacuations.read(cell, host):
                    one = plans.describe(stored.instance, host)
                    # It takes no place from others.
                    is_gone = gone.is_gone(stored.instance)
                    (deleted if is_gone else leaving).append(one)
        movables: dict[str, movable.Movable | Exception] = {}

        def prepare(
            leaving: Sequence[plans.Leaving], hosts: Set[str]
        ) -> movable.Movables:
            movables.update(self._evacuations.prepare(leaving, hosts))
            return movables

        goal = planner.Goal(
            leaving=leaving, barred=hosts, never_given_up=self._policies
        )
        plan = planner.plan(self.places, goal, prepare, advance)
        deleted += plan.deleted_meanwhile
        self.deleted |= {one.server: one for one in deleted}
        if self._keeps:
            stuck = {one.server for one in plan.without_place}
            self.evacuated.append(
                spare.Evacuated(name, hosts, movables, stuck)
            )
        return plans.Failure(
            name,
            sorted(hosts),
            plan.moves,
            plan.without_place,
            plan.room_for_last,
        )

    def describe_flavors(self) -> list[plans.FlavorRoom]:
        """Return how many more servers of each flavor may come.

        After all failures.
        """
        for one in self.spares:
            one.check(self.evacuated)
        return [one.describe() for one in self.spares]


def make(
    cloud: snapshot.Snapshot,
    flavors: Sequence[str] = (),
    by: str = 'host',
    hosts: Collection[str] = (),
    aggregates: Collection[str] = (),
    advance: progress.Advance = progress.silent,
    project: str | None = None,
) -> plans.Outcome:
    """Return what comes of failures.

    :param flavors: see :class:`Survival`; ``project`` too
    :param by: see :meth:`Survival.find`; ``hosts`` and ``aggregates`` too
    :param advance: called after each server
    :raises exception.InvalidValue: what is named does not exist
    :raises placement.PlacementFailed: placement does not answer
    """
    survey = Survival(cloud, flavors, project)
    failures, remark = survey.find(by, hosts, aggregates)
    if failures and cloud.states:
        # They stay until the process ends; as capacity does.
        gc.freeze()
    found = [one for one in survey.fail(failures, advance) if one.servers]
    hosts_of = [
        name
        for one in found
        for name in (*one.hosts, *(move.expected for move in one.moves))
    ]
    return plans.Outcome(
        found,
        survey.describe_flavors(),
        [*survey.deleted.values()],
        [f'{remark}.'] if remark else [],
        cloud.faults,
        cloud.services_of(hosts_of),
        topology.describe(cloud),
    )
