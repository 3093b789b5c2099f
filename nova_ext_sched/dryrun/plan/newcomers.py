# SPDX-License-Identifier: Apache-2.0

"""Adds new servers of one request, one after the other."""

from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import typing

from nova import objects

from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.fit import count
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable


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
        :returns: see :func:`..fit.count.fill`
        :raises placement.PlacementFailed: placement does not answer
        """

        def choose(uuid: str) -> Sequence[typing.Any]:
            target = self.places.find(self.prepare(uuid), barred)
            return [] if target is None else [target]

        return count.fill(future, self.spec_obj, choose)

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
