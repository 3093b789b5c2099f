# SPDX-License-Identifier: Apache-2.0

"""How many servers of one request each host takes, one after the other.

In each round every host that is left is judged as nova-scheduler judges it for
the next server: placement has an allocation candidate that fits what is left,
and every enabled filter passes that nova asks for each server. Then it gets
one more server (:mod:`..cloud.fork`). What first says no is the host's end.

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

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Set
import dataclasses
import math
import typing

from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
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

    :param cloud: where the servers come, in a fork
    :param describe: returns what :func:`.likeness.describe` does, by UUID
    :param spec_obj: a nova RequestSpec, which explain's stages have judged
    :param states: nova HostStates of the hosts left, the scheduler's best
        first
    :param candidates: placement's answer
    :ivar tied: once they are measured, UUIDs of hosts of which only the sum is
        known: what one takes another lacks, and the scheduler's order decides
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        describe: Callable[[str], object],
        spec_obj: typing.Any,
        states: Iterable[typing.Any],
        candidates: placement.Candidates,
    ) -> None:
        self._cloud = cloud
        self._ctxt = process.context()
        self._spec_obj = spec_obj
        # Explain's stages have asked all of them. What nova asks once for
        # several servers depends on no claim.
        self._filters = [
            one
            for one in cloud.enabled_filters
            if fields.host_filters_run(spec_obj)
            and one.run_filter_for_index(1)
        ]
        self._group = spec_obj.instance_group
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
        self.tied: list[Set[str]] = []

    def _find_tied(self, future: fork.Fork) -> list[Set[str]]:
        # Each takes a server at the beginning. One that takes none then, or
        # that its failure domain ends, has lost servers to others of the
        # group, or they to it.
        if self._group is not None and any(
            not one.servers
            or (one.end and one.end.cause == failure_domain.DECLARATION.name)
            for one in self._rooms
        ):
            return [{uuid for one in self._rooms for uuid in one.uuids}]
        # What is left of a provider that hosts share is too little.
        users: dict[str, set[str]] = collections.defaultdict(set)
        for one in self._rooms:
            uuid = one.state.uuid
            for request in self._requests[uuid]:
                for key, amount in ledger.amounts(request['allocations']):
                    if amount > future.ledger.get_free(*key):
                        users[key[0]].add(uuid)
        return [uuids for uuids in users.values() if len(uuids) > 1]

    def measure(self) -> dict[str, Room]:
        """Return what each host takes, by UUID."""
        with self._cloud.fork() as future:
            if self._group is None:
                self._fill(future, self._rooms)
            for room in self._rooms if self._group is not None else ():
                # Those before it may have changed it: a nova-compute may have
                # several nodes.
                self._read_state(room)
                self._fill(future, [room])
            self.tied = self._find_tied(future)
        for room in self._rooms:
            if room.end is None:
                room.servers = math.inf
        return {uuid: room for room in self._rooms for uuid in room.uuids}

    def _fill(self, future: fork.Fork, rooms: list[Room]) -> None:
        for _ in range(MOST):
            if not rooms:
                return
            uuid = uuidutils.generate_uuid()
            self._spec_obj.instance_uuid = uuid
            if self._group is not None:
                # nova-api makes the server a member before it is placed.
                self._group.members.append(uuid)
            rooms = self._filter(self._offer(future, rooms))
            for room in rooms:
                if self._group is None:
                    uuid = uuidutils.generate_uuid()
                # What hosts share may have gone to another in this round; the
                # next round then has no candidate.
                if future.come(uuid, self._spec_obj, room.state):
                    room.servers += 1
                    self._read_state(room)
                    if self._group is not None:
                        self._group.hosts = [
                            *self._group.hosts,
                            room.state.host,
                        ]

    def _read_state(self, room: Room) -> None:
        """Read what servers that came have left of a host."""
        [room.state] = self._cloud.get_host_states_by_uuids(
            self._ctxt, [room.state.uuid], self._spec_obj
        )

    def _offer(self, future: fork.Fork, rooms: list[Room]) -> list[Room]:
        """Give hosts the candidates that placement would offer now."""
        left = []
        for room in rooms:
            lacking: set[str] = set()
            offered = []
            for request in self._requests[room.state.uuid]:
                if names := future.ledger.find_lacking(request):
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
