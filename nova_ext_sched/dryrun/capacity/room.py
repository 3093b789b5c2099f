# SPDX-License-Identifier: Apache-2.0

"""How many servers of one request each host takes, one after the other.

In each round every host that is left is judged as nova-scheduler judges it for
the next server: placement has an allocation candidate that fits what is left,
and every enabled filter passes that nova asks for each server. Then it gets
one more server (:mod:`..cloud.claims`). What first says no is the host's end.

===========================  ==============================================
request, filters             what is judged
===========================  ==============================================
no server group, all         one host of each kind: hosts of one kind have
filters are nova's or ours   the same aggregates, the same use and the same
                             room in placement
no server group, filters     each host
of others
a server group               each host, one after the other in the
                             scheduler's order: what one takes may close
                             another (affinity, failure domains)
===========================  ==============================================
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import math
import typing

from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.queries import fields

#: No hypervisor runs as many servers. A host that takes them takes any number.
MOST = 20_000


@dataclasses.dataclass
class Room:
    """What one host takes, and each of those that it stands for.

    :ivar state: its nova HostState, which claims change
    :ivar uuids: its own, and those of the other hosts of its kind
    :ivar servers: how many; ``math.inf`` for any number, NaN where it is
        not known
    :ivar end: why it takes no more; None where it takes any number
    """

    state: typing.Any
    uuids: list[str]
    servers: float = 0
    end: refusals.Refusal | None = None


class Rooms:
    """The room of the hosts that a request may use.

    :param host_filters: the enabled ones
    :param describe: returns what :func:`.likeness.describe` does, by UUID
    :param spec_obj: a nova RequestSpec, which explain's stages have judged
    :param states: nova HostStates of the hosts left, the scheduler's best
        first; they are changed
    :param candidates: placement's answer
    """

    def __init__(
        self,
        host_filters: Iterable[typing.Any],
        describe: Callable[[str], object],
        spec_obj: typing.Any,
        states: Iterable[typing.Any],
        candidates: placement.Candidates,
    ) -> None:
        self._spec_obj = spec_obj
        # Explain's stages have asked all of them. What nova asks once for
        # several servers depends on no claim.
        self._filters = [
            one
            for one in host_filters
            if fields.host_filters_run(spec_obj)
            and one.run_filter_for_index(1)
        ]
        self._group = spec_obj.instance_group
        self._claims = claims.Claims(candidates.summaries)
        self._requests = query.by_provider(candidates.requests)
        shared = likeness.are_shared(self._filters, spec_obj)
        rooms: dict[object, Room] = {}
        for state in states:
            uuid = state.uuid
            key: object = uuid
            if shared:
                key = likeness.of_host(
                    uuid,
                    describe(uuid),
                    self._requests[uuid],
                    candidates.summaries,
                )
            rooms.setdefault(key, Room(state, [])).uuids.append(uuid)
        self._rooms = list(rooms.values())

    @property
    def depend_on_order(self) -> bool:
        """Whether other hosts of the group would take more, asked first.

        Each takes a server at the beginning. One that takes none then, or
        that its failure domain ends, has lost servers to others, or they to
        it.
        """
        return self._group is not None and any(
            not one.servers
            or (one.end and one.end.cause == failure_domain.DECLARATION.name)
            for one in self._rooms
        )

    def measure(self) -> dict[str, Room]:
        """Return what each host takes, by UUID."""
        if self._group is None:
            self._fill(self._rooms)
        else:
            for room in self._rooms:
                self._fill([room])
        for room in self._rooms:
            if room.end is None:
                room.servers = math.inf
        return {uuid: room for room in self._rooms for uuid in room.uuids}

    def _fill(self, rooms: list[Room]) -> None:
        for _ in range(MOST):
            if not rooms:
                return
            uuid = uuidutils.generate_uuid()
            self._spec_obj.instance_uuid = uuid
            if self._group is not None:
                # nova-api makes the server a member before it is placed.
                self._group.members.append(uuid)
            rooms = self._filter(self._offer(rooms))
            for room in rooms:
                # What hosts share may have gone to another in this round; the
                # next round then has no candidate.
                request = room.state.allocation_candidates[0]
                if self._claims.take(request):
                    claims.consume(room.state, self._spec_obj, request, uuid)
                    room.servers += 1

    def _offer(self, rooms: list[Room]) -> list[Room]:
        """Give hosts the candidates that placement would offer now."""
        left = []
        for room in rooms:
            lacking: set[str] = set()
            offered = []
            for request in self._requests[room.state.uuid]:
                if names := self._claims.find_lacking(request):
                    lacking.update(names)
                else:
                    offered.append(request)
            room.state.allocation_candidates = offered
            if offered:
                left.append(room)
            else:
                room.end = refusals.full(sorted(lacking))
        return left

    def _filter(self, rooms: list[Room]) -> list[Room]:
        """Return the hosts that pass every filter."""
        for host_filter in self._filters:
            if not rooms:
                break
            why = reasons.ask_filter(
                host_filter, self._spec_obj, [room.state for room in rooms]
            )
            for room in rooms:
                room.end = why.get(room.state.uuid)
            rooms = [room for room in rooms if room.end is None]
        return rooms
