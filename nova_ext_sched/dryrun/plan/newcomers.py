# SPDX-License-Identifier: Apache-2.0

"""Adds new servers of one request, one after the other.

They come in a fork, each to the host that the scheduler prefers then, until
none fits. To count those after which the same hosts can fail as now, each
failure is evacuated again in that fork, with the new servers on its hosts. If
it strands more servers than without them, fewer may come.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import itertools
import typing

from nova import objects
from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import count
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

#: The most servers that are counted: each is placed, and evacuated.
MOST = 2000


class Newcomers:
    """New servers of one request.

    :param places: finds their destinations; no fork is open
    :param spec_obj: the nova RequestSpec of a new server; it is changed
    :ivar asked: a copy of the request as it was at first
    :ivar spec_obj: the request of the servers
    :ivar shared: their shared answer, without server group and hints
    """

    def __init__(
        self, places: destinations.Destinations, spec_obj: typing.Any
    ) -> None:
        self.places = places
        self.asked = spec_obj.obj_clone()
        self.spec_obj = spec_obj
        group = spec_obj.instance_group
        self._members: Sequence[str] = group.members if group else ()
        # Whether the request has what the shared answer leaves out.
        self._has_own = bool(
            spec_obj.instance_group or spec_obj.scheduler_hints
        )
        self.shared = places.answers.make(
            spec_obj.obj_clone() if self._has_own else spec_obj
        )
        self._is_known = likeness.are_known(
            places.cloud.enabled_filters, spec_obj
        )
        self._by_cell: dict[str, movable.Shared] = {}

    @property
    def is_whole(self) -> bool:
        """Whether only the hosts' room and servers decide."""
        return self._is_known and not self._has_own

    def fill(
        self, future: fork.Fork, barred: Set[str] = frozenset()
    ) -> Iterator[tuple[str, typing.Any]]:
        """Add the servers, each to the host that the scheduler prefers then.

        :param barred: UUIDs of hosts that get no server
        :returns: the UUID of each server that came, and its HostState
        :raises placement.PlacementFailed: placement does not answer
        """
        while True:
            uuid = uuidutils.generate_uuid()
            target = self.places.find(self.prepare(uuid), barred)
            if target is None or not future.come(uuid, self.spec_obj, target):
                return
            yield uuid, target

    def prepare(self, uuid: str, cell: str = '') -> movable.Evacuation:
        """Prepare a new server, or one that leaves a host of a cell."""
        shared = self.shared
        if not self.is_whole:
            spec_obj = self.spec_obj.obj_clone()
            spec_obj.instance_uuid = uuid
            if group := self.spec_obj.instance_group:
                # nova-api makes a server a member before it is placed.
                if uuid not in group.members:
                    group.members = [*group.members, uuid]
                # A member on no host would be remembered as deleted.
                open_fork = self.places.cloud.open_fork
                there = {
                    *self._members,
                    *(open_fork.moved if open_fork else ()),
                }
                spec_obj.instance_group.members = [
                    one for one in group.members if one in there or one == uuid
                ]
            if cell:
                spec_obj.requested_destination = objects.Destination(
                    cell=self.places.cloud.cells[cell]
                )
            like = None
            if self._is_known:
                like = movable.Like(shared, is_whole=False)
            return self._make(uuid, spec_obj, like)
        if cell:
            # nova evacuates no server to a host of another cell.
            if cell not in self._by_cell:
                states = self.places.cloud.states
                requests = {
                    host: found
                    for host, found in shared.requests.items()
                    if states[host].cell_uuid == cell
                }
                self._by_cell[cell] = dataclasses.replace(
                    shared, requests=requests
                )
            shared = self._by_cell[cell]
        like = movable.Like(shared, is_whole=True)
        return self._make(uuid, shared.spec_obj, like)

    def _make(
        self, uuid: str, spec_obj: typing.Any, like: movable.Like | None
    ) -> movable.Evacuation:
        found = movable.Evacuation(uuid, spec_obj, like)
        found.priority = self.places.priorities.read(spec_obj)
        return found

    def explain(self, barred: Set[str] = frozenset()) -> matrix.Matrix:
        """Return the matrix of refusals for a server that does not fit.

        :param barred: UUIDs of hosts that get no server
        :raises placement.PlacementFailed: placement does not answer
        """
        judged, _ = self.places.judge(self.spec_obj, with_reasons=True)
        remarks.add(
            asking.Asking(
                self.places.cloud, process.context(), self.spec_obj, judged
            )
        )
        if barred:
            judged = destinations.with_barred_ignored(judged, barred)
        return judged


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
    _places: destinations.Destinations
    _newcomers: Newcomers

    @property
    def fit(self) -> count.Fit:
        """The number that fits, whatever fails."""
        is_more = len(self.came) >= MOST
        return count.Fit(
            len(self.came),
            count.State.OR_MORE if is_more else count.State.COUNTED,
        )

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
        with self._places.cloud.fork() as future:
            for uuid, target in self.came[before:number]:
                future.come(uuid, self._newcomers.spec_obj, target)
            yield future

    def _is_as_now(self, evacuated: Evacuated, number: int) -> bool:
        places, movables = self._places, dict(evacuated.movables)
        for uuid, target in self.came[:number]:
            if target.host in evacuated.hosts:
                movables[uuid] = self._newcomers.prepare(
                    uuid, target.cell_uuid
                )
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
            fit=self.fit.servers,
            or_more=self.fit.state is count.State.OR_MORE,
            spare=self.servers,
            failure=messages.clean(self.failure),
            reason=self.reason,
            cause=self.cause,
        )


def count_spare(
    places: destinations.Destinations,
    flavor: typing.Any,
    project: str | None = None,
    barred: Set[str] = frozenset(),
) -> Spare:
    """Return the new servers that fit as long as no host fails.

    :param places: the destinations of servers
    :param flavor: nova's
    :param project: the ID of the one that asks for them; None for no one
    :param barred: UUIDs of hosts that get none
    :raises exception.InvalidValue: nova-api would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """
    coming = make(places, flavor, project)
    with places.cloud.fork() as future:
        came = [*itertools.islice(coming.fill(future, barred), MOST)]
    reason = cause = ''
    if not came:
        answer = document.make_answer(coming.explain(barred))
        reason, cause = answer.sentence.rstrip('.'), answer.cause or ''
    return Spare(flavor, came, len(came), '', reason, cause, places, coming)


def make(
    places: destinations.Destinations,
    flavor: typing.Any,
    project: str | None = None,
) -> Newcomers:
    """Prepare new servers of a flavor, before a fork is opened.

    The parameters, and what is raised, are those of :func:`count_spare`.
    """
    ctxt = process.context(project)
    wanted = request.Question(project=project)
    image = request.get_image(ctxt, wanted)
    return Newcomers(
        places, request.build(ctxt, places.cloud, wanted, flavor, image)
    )
