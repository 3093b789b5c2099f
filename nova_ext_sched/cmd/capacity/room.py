# SPDX-License-Identifier: Apache-2.0

"""How many servers of one request each host takes, one after the other.

In each round every host that is left is judged as nova-scheduler judges it for
the next server: placement has an allocation candidate that fits what is left,
and every enabled filter passes that nova asks for each server. Then it gets
one more server (:mod:`nova_ext_sched.cmd.claims`). What first says no is the
host's end.

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

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from oslo_utils import uuidutils

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd.capacity import host_manager
from nova_ext_sched.cmd.capacity import kind
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import reasons
from nova_ext_sched.queries import fields

#: No hypervisor runs as many servers. A host that takes them takes any number.
MOST = 20_000


class Room(typing.NamedTuple):
    """What one host takes.

    :ivar servers: None for any number
    :ivar end: why it takes no more; None where it takes any number
    """

    servers: int | None
    end: funnel.Refusal | None


class _Host:
    """A host that takes servers, and the hosts that it stands for.

    :ivar uuids: its own, and those of the other hosts of its kind
    """

    def __init__(self, state: typing.Any) -> None:
        self.state = state
        self.uuids = [state.uuid]
        self.servers = 0
        self.end: funnel.Refusal | None = None


class Rooms:
    """The room of the hosts that a request may use.

    :param spec_obj: a nova RequestSpec, which explain's stages have judged
    :param states: nova HostStates of the hosts left, the scheduler's best
        first; they are changed
    :param requests: allocation requests of placement's answer
    :param summaries: its provider summaries, by UUID
    """

    def __init__(
        self,
        scheduler: host_manager.HostManager,
        spec_obj: typing.Any,
        states: Sequence[typing.Any],
        requests: Iterable[claims.Request],
        summaries: Mapping[str, typing.Any],
    ) -> None:
        self._spec_obj = spec_obj
        # Explain's stages have asked all of them. What nova asks once for
        # several servers depends on no claim.
        self._filters = [
            one
            for one in scheduler.enabled_filters
            if fields.host_filters_run(spec_obj)
            and one.run_filter_for_index(1)
        ]
        self._group = spec_obj.instance_group
        self._claims = claims.Claims(summaries)
        self._requests: dict[str, list[claims.Request]] = {
            state.uuid: [] for state in states
        }
        for one in requests:
            for uuid in one['allocations']:
                if uuid in self._requests:
                    self._requests[uuid].append(one)
        kinds = kind.Kinds(self._filters, spec_obj, summaries)
        found: dict[object, _Host] = {}
        for state in states:
            key = kinds.get(
                state.uuid,
                scheduler.describe(state.uuid),
                self._requests[state.uuid],
            )
            if key in found:
                found[key].uuids.append(state.uuid)
            else:
                found[key] = _Host(state)
        self._hosts = list(found.values())

    def measure(self) -> dict[str, Room]:
        """Return what each host takes, by UUID."""
        batches = [self._hosts]
        if self._group is not None:
            batches = [[host] for host in self._hosts]
        for batch in batches:
            self._fill(batch)
        return {
            uuid: Room(host.servers if host.end else None, host.end)
            for host in self._hosts
            for uuid in host.uuids
        }

    def _fill(self, hosts: list[_Host]) -> None:
        for _ in range(MOST):
            if not hosts:
                return
            uuid = uuidutils.generate_uuid()
            self._spec_obj.instance_uuid = uuid
            if self._group is not None:
                # nova-api makes the server a member before it is placed.
                self._group.members.append(uuid)
            hosts = self._filter(self._offer(hosts))
            for host in hosts:
                # What hosts share may have gone to another in this round; the
                # next round then has no candidate.
                request = host.state.allocation_candidates[0]
                if self._claims.take(request):
                    claims.consume(host.state, self._spec_obj, request, uuid)
                    host.servers += 1

    def _offer(self, hosts: list[_Host]) -> list[_Host]:
        """Give hosts the candidates that placement would offer now."""
        left = []
        for host in hosts:
            lacking: set[str] = set()
            offered = []
            for request in self._requests[host.state.uuid]:
                if names := self._claims.find_lacking(request):
                    lacking.update(names)
                else:
                    offered.append(request)
            host.state.allocation_candidates = offered
            if offered:
                left.append(host)
            else:
                host.end = funnel.full(sorted(lacking))
        return left

    def _filter(self, hosts: list[_Host]) -> list[_Host]:
        """Return the hosts that pass every filter."""
        for host_filter in self._filters:
            if not hosts:
                break
            why = reasons.ask_filter(
                host_filter, self._spec_obj, [host.state for host in hosts]
            )
            for host in hosts:
                host.end = why.get(host.state.uuid)
            hosts = [host for host in hosts if host.end is None]
        return hosts
