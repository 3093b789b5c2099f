# SPDX-License-Identifier: Apache-2.0

"""Adds new servers of one request, and promises hosts to them.

They come in a fork, each to the host that the scheduler prefers then, until
none fits.

A plan promises hosts: nova creates the servers after all moves, each on the
host that it was promised, in an unknown order. So a promise holds only if the
host takes the server without the other new servers, with all of them, and in
the order of the promises: a filter that refuses it beside some of them refuses
it in one of the three cases.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import itertools
import typing

from nova import objects
from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import shared_answers


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
        self._by_cell: dict[str, shared_answers.Shared] = {}

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
                like = shared_answers.Like(shared, is_whole=False)
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
        like = shared_answers.Like(shared, is_whole=True)
        return self._make(uuid, shared.spec_obj, like)

    def _make(
        self, uuid: str, spec_obj: typing.Any, like: shared_answers.Like | None
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


def make(
    places: destinations.Destinations,
    flavor: typing.Any,
    project: str | None = None,
) -> Newcomers:
    """Prepare new servers of a flavor, before a fork is opened.

    :param flavor: nova's
    :param project: the ID of the one that asks for them; None for no one
    :raises exception.InvalidValue: nova-api would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """
    ctxt = process.context(project)
    wanted = request.Question(project=project)
    image = request.get_image(ctxt, wanted)
    return Newcomers(
        places, request.build(ctxt, places.cloud, wanted, flavor, image)
    )


class _Place(typing.NamedTuple):
    """A nova HostState that passed the filters, as a claim reads it."""

    uuid: str
    host: str
    cell_uuid: str
    limits: typing.Any
    allocation_candidates: list[claims.Request]


class Promised:
    """The new servers that were promised a host.

    :param coming: makes and places the new servers
    :ivar nodes: UUIDs of their compute nodes, in the order of the promises
    :ivar room_on: see :class:`.plans.Room`
    """

    def __init__(self, coming: Newcomers) -> None:
        self._coming, self._places = coming, coming.places
        self._cloud = coming.places.cloud
        self.nodes: list[str] = []
        self.room_on: list[str | None] = []
        self._uuids: list[str] = []
        # By the host's UUID: the version of its state before the new servers
        # came, and the state that each of them found there, in order.
        self._places_on: dict[str, tuple[int, list[_Place]]] = {}
        # The UUID of the next new server.
        self._next = uuidutils.generate_uuid()

    def __len__(self) -> int:
        return len(self.nodes)

    def fill(self, future: fork.Fork, barred: Set[str], most: int) -> None:
        """Promise hosts to further new servers until none fits.

        :param future: the open fork, with all promised new servers
        :param barred: UUIDs of hosts that get no new server
        :param most: largest number of promises in all
        """
        coming = self._coming.fill(future, barred)
        for uuid, target in itertools.islice(coming, most - len(self)):
            self._promise(uuid, target)

    def promise(self, future: fork.Fork, node: str) -> None:
        """Promise the next new server a host that is known to take it.

        :param future: see :meth:`fill`; the server is added to it
        :param node: UUID of the host's compute node
        """
        uuid, target = self._next, self.find_on(node)
        future.come(uuid, self._coming.spec_obj, target)
        self._promise(uuid, target)
        self._next = uuidutils.generate_uuid()

    def _promise(self, uuid: str, target: typing.Any) -> None:
        is_named = self._places.can_be_named(target)
        self._uuids.append(uuid)
        self.nodes.append(target.uuid)
        self.room_on.append(target.host if is_named else None)

    def cut(self, number: int) -> None:
        """Take back all promises but the first few."""
        for made in (self._uuids, self.nodes, self.room_on):
            del made[number:]

    def copy(self) -> 'Promised':
        """Copy the promises."""
        copied = Promised(self._coming)
        copied.nodes, copied.room_on = [*self.nodes], [*self.room_on]
        copied._uuids = [*self._uuids]
        copied._places_on = {
            node: (version, [*places])
            for node, (version, places) in self._places_on.items()
        }
        return copied

    def find_on(self, node: str, uuid: str = '') -> typing.Any:
        """Return a host's HostState if it takes a new server now, or None.

        :param node: UUID of the host's compute node
        :param uuid: UUID of the new server; empty for the next one
        """
        prepared = self._coming.prepare(uuid or self._next)
        return self._places.find_on(prepared, node)

    def come(self, future: fork.Fork) -> bool:
        """Add all promised new servers; return False if a host refuses one.

        If only the room and the servers of a host decide, hosts that no move
        has changed since the last time are not asked again.
        """
        promises = [*zip(self._uuids, self.nodes, strict=True)]
        if not self._coming.is_whole:
            return self._come(future, promises)
        versions = self._cloud.versions
        before = {node: versions.get(node, 0) for node in self.nodes}
        numbers: collections.Counter[str] = collections.Counter()
        for uuid, node in promises:
            place = self._find_place(uuid, node, before[node], numbers[node])
            if place is None or not future.come(
                uuid, self._coming.spec_obj, place
            ):
                return False
            numbers[node] += 1
        return True

    def _find_place(
        self, uuid: str, node: str, version: int, number: int
    ) -> _Place | None:
        """Return the state in which a host takes a new server, or None.

        :param version: version of the host's state before any new server came
        :param number: number of new servers that came to the host before
        """
        known, places = self._places_on.get(node, (version, []))
        if known != version or len(places) < number:
            places = []
        self._places_on[node] = version, places
        if len(places) > number:
            return places[number]
        target = self.find_on(node, uuid)
        if target is None:
            return None
        place = _Place(*(getattr(target, name) for name in _Place._fields))
        if len(places) == number:
            places.append(place)
        return place

    def _come(
        self, future: fork.Fork, promises: Iterable[tuple[str, str]]
    ) -> bool:
        for uuid, node in promises:
            target = self.find_on(node, uuid)
            if target is None or not future.come(
                uuid, self._coming.spec_obj, target
            ):
                return False
        return True

    @contextlib.contextmanager
    def with_promised(self, movables: movable.Movables) -> Iterator[fork.Fork]:
        """Open a fork with all promised new servers.

        They are also members of their server group, as it is in the requests
        of the servers that may move.

        :param movables: the servers that may move
        """
        wanted = self._coming.spec_obj.instance_group
        mates = []
        for prepared in movables.values() if wanted else ():
            if not isinstance(prepared, Exception):
                group = prepared.spec_obj.instance_group
                if group and group.uuid == wanted.uuid:
                    mates.append((group, group.members))
        with self._cloud.fork() as future:
            if not future.before:
                future.count_under_way()
            self.come(future)
            for group, members in mates:
                group.members = [*members, *self._uuids]
            try:
                yield future
            finally:
                for group, members in mates:
                    group.members = members

    def hold(self, changed: Collection[str], added: str = '') -> bool:
        """Return whether nova would keep all promises in the open fork.

        :param changed: UUIDs of hosts to which servers came since the promises
            were checked
        :param added: UUID of a host that is to be promised to the next new
            server, too
        """
        promises = [*zip(self._uuids, self.nodes, strict=True)]
        promises += [(self._next, added)] if added else []
        if self._coming.is_whole:
            # Only the host itself decides, and the servers are equivalent.
            promises = [
                (uuid, node)
                for uuid, node in promises
                if node in changed or node == added
            ]
            with self._cloud.fork() as trial:
                return self._come(trial, promises)
        one_of = {node: uuid for uuid, node in promises}
        with self._cloud.fork() as trial:
            return (
                all(itertools.starmap(self.find_on, one_of.items()))
                and self._come(trial, promises)
                and all(
                    self._comes_last(uuid, node)
                    for node, uuid in one_of.items()
                )
            )

    def _comes_last(self, uuid: str, node: str) -> bool:
        """Return whether a new server would also fit after all others."""
        with self._cloud.fork() as trial:
            spec_obj = self._coming.spec_obj
            trial.leave(uuid, spec_obj, *trial.placed[uuid])
            return self.find_on(node, uuid) is not None
