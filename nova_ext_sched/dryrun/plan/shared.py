# SPDX-License-Identifier: Apache-2.0

"""Where servers go that leave hosts for good: like requests share answers.

While other hosts are only filled, one that refuses a request goes on to refuse
it. So a request is judged once, on the cloud as it is. Then only the hosts
that got a server since are judged again.

===================================  ======================================
a request                            where it is judged
===================================  ======================================
of no server group, without hints;   once for all that are like it, by all
only filters of nova and of ours,    filters; then by those hosts again that
or by aggregates alone               got a server
any other                            on all hosts, each time
===================================  ======================================
"""

from collections.abc import Sequence
from collections.abc import Set
import copy
import dataclasses
import itertools
import types
import typing

import nova.conf
from oslo_serialization import jsonutils

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import kind
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import destinations

CONF = nova.conf.CONF

#: Hosts that got no server yet, of which nova's weighers order the best: those
#: that were the best before any did.
WEIGHED = 10

# Hosts of all kinds that are kept; it bounds the memory.
_MOST_KEPT = 300_000


# What is another's of two requests that are alike, or nova sets anew.
_OWN = (
    'id',
    'instance_uuid',
    'user_id',
    'security_groups',
    'num_instances',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
    'requested_destination',
    'retry',
    'limits',
    'network_metadata',
    'requested_networks',
)
# What a host of the network must have.
_OF_NETWORK = ('physical_network', 'tunneled')


@dataclasses.dataclass(eq=False)
class Kind:
    """Requests that have all in common but their servers.

    :ivar spec_obj: the nova RequestSpec of an evacuation of one of them
    :ivar judged: what the request filters made of it
    :ivar requests: by the UUIDs of the hosts that are left, the best first,
        placement's allocation requests
    :ivar whole: what refuses all others, and why, once that was asked
    """

    spec_obj: typing.Any
    judged: typing.Any
    requests: dict[str, list[claims.Request]]
    whole: matrix.Matrix | None = None


@dataclasses.dataclass
class Evacuee:
    """A server of a host that fails, as :class:`.movable.Movable`.

    :ivar like: see :class:`Shared`
    :ivar info_cache: nova's, of its ports; None where nobody asks why it has
        no place
    """

    uuid: str
    spec_obj: typing.Any
    like: Kind | None
    info_cache: typing.Any = None
    kind = 'evacuate'
    # Of a dead host nothing is freed.
    held: typing.ClassVar[claims.Request] = {'allocations': {}}

    @property
    def instance(self) -> typing.Any:
        """What is to be known of it: its host is dead."""
        return types.SimpleNamespace(
            uuid=self.uuid, host=None, info_cache=self.info_cache
        )

    def may_move_to(self, _source: object, _target: object) -> bool:
        """nova starts it anew: any hypervisor will do."""
        return True


class Shared(destinations.Destinations):
    """The hosts that servers may go to, plan after plan.

    Each server has what :meth:`get_kind` returned in its ``like``.
    """

    def __init__(self, scheduler: snapshot.Snapshot) -> None:
        super().__init__(scheduler)
        self._kinds: dict[object, Kind] = {}
        self._ctxt = process.context()
        self._place = {uuid: n for n, uuid in enumerate(scheduler.states)}
        # The states of hosts before servers came or left in this plan.
        self._before: dict[str, typing.Any] = {}
        self._left: Set[str] = frozenset()

    def begin(self, hosts: Set[str]) -> None:
        """Begin a plan, with all as it was before the last one.

        :param hosts: names of those that servers leave, no destinations
        """
        states = self.scheduler.states
        states.update(self._before)
        self._before, self.moved = {}, {}
        self.providers.forget_moves()
        self._left = {uuid for uuid in states if states[uuid].host in hosts}

    def get_kind(
        self, key: object, make: typing.Callable[[], typing.Any]
    ) -> Kind | None:
        """Return what is known of like requests; None if they share nothing.

        :param key: what :func:`find_key` returned
        :param make: returns the nova RequestSpec of one; it is changed
        :raises Exception: as :meth:`judge`
        """
        if key is None:
            return None
        if key not in self._kinds:
            spec_obj = make()
            if not kind.are_shared(self.scheduler.enabled_filters, spec_obj):
                return None
            kept = sum(len(one.requests) for one in self._kinds.values())
            if kept > _MOST_KEPT:
                self._kinds.clear()
            self._kinds[key] = self.make_kind(spec_obj)
        return self._kinds[key]

    def make_kind(self, spec_obj: typing.Any) -> Kind:
        """Judge a request for all that are like it.

        :param spec_obj: a nova RequestSpec; it is changed
        :raises Exception: as :meth:`judge`
        """
        spec_obj.ignore_hosts = []
        judged = spec_obj.obj_clone()
        _, states = self._judge_before(judged, False)
        found = {one.uuid: one.allocation_candidates for one in states}
        return Kind(spec_obj, judged, found)

    def _judge_before(
        self, spec_obj: typing.Any, whole: bool
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        """Judge a request on the cloud as it is before the plan."""
        states = self.scheduler.states
        now = {uuid: states[uuid] for uuid in self._before}
        moved, self.moved = self.moved, {}
        states.update(self._before)
        try:
            with change.used(self.scheduler.aggregates_copy, {}):
                return self._judge(spec_obj, whole)
        finally:
            states.update(now)
            self.moved = moved

    def count(self, mine: typing.Any) -> int:
        if mine.like is None:
            return super().count(mine)
        return sum(uuid not in self._left for uuid in mine.like.requests)

    def find(self, mine: typing.Any) -> typing.Any:
        if mine.like is None:
            return super().find(mine)
        like = mine.like
        source = self._find_source(mine)
        passing, _ = self._judge_again(mine)
        fresh = (
            (state, fitting)
            for uuid in like.requests
            if uuid not in self._left
            and uuid not in self._before
            and mine.may_move_to(source, state := self.scheduler.states[uuid])
            and (fitting := self._find_fitting(like, uuid))
        )
        found = {
            state.uuid: (state, fitting)
            for state, fitting in (
                *(
                    (state, state.allocation_candidates)
                    for state in passing
                    if mine.may_move_to(source, state)
                ),
                *itertools.islice(fresh, WEIGHED),
            )
        }
        if not found:
            return None
        best = self._choose([state for state, _ in found.values()], like)
        target = copy.copy(best)
        target.allocation_candidates = found[best.uuid][1]
        return target

    def _choose(self, states: list[typing.Any], like: Kind) -> typing.Any:
        """Return the HostState that nova's weighers prefer."""
        # Of equal hosts nova takes the first.
        states = sorted(states, key=lambda state: self._place[state.uuid])
        return self.scheduler.get_weighed_hosts(states, like.judged)[0].obj

    def explain(
        self, mine: typing.Any
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        if mine.like is None:
            return super().explain(mine)
        like = mine.like
        if like.whole is None:
            spec_obj = like.spec_obj.obj_clone()
            # The server of which it is may be gone, and its ports.
            spec_obj.instance_uuid = mine.instance.uuid
            spec_obj.ensure_network_information(mine.instance)
            like.whole, _ = self._judge_before(spec_obj, True)
        _, full = self._judge_again(mine)
        found = like.whole.copy(without=self._left)
        found.add(
            'requested host',
            'ignore_hosts',
            refused=dict.fromkeys(self._left, refusals.IGNORED),
        )
        found.add('placement', 'moves before this one', refused=full)
        return found, list(found.left)

    def _find_fitting(self, like: Kind, uuid: str) -> list[claims.Request]:
        """Return the allocation requests of a host that fit what is left."""
        return [
            one
            for one in like.requests[uuid]
            if not self.providers.find_short(one)
        ]

    def _judge_again(
        self, mine: typing.Any, asked: Sequence[str] | None = None
    ) -> tuple[list[typing.Any], dict[str, refusals.Refusal]]:
        """Judge hosts again that were left before.

        :param asked: UUIDs; by default of those that got a server
        :returns: nova HostStates of those that pass, and why others do not
        """
        like = typing.cast(Kind, mine.like)
        like.judged.instance_uuid = mine.instance.uuid
        asked = asked or [
            uuid
            for uuid in self._before
            if uuid in like.requests and uuid not in self._left
        ]
        states, refused = [], {}
        for state in self.scheduler.get_host_states_by_uuids(
            self._ctxt, asked, like.judged
        ):
            if fitting := self._find_fitting(like, state.uuid):
                state.allocation_candidates = copy.deepcopy(fitting)
                states.append(state)
            else:
                refused[state.uuid] = refusals.full(
                    sorted(
                        {
                            name
                            for one in like.requests[state.uuid]
                            for name in self.providers.find_short(one)
                        }
                    )
                )
        for host_filter in self.scheduler.enabled_filters if states else ():
            refused |= reasons.ask_filter(host_filter, like.judged, states)
            states = [state for state in states if state.uuid not in refused]
        return [one for one in states if one.allocation_candidates], refused

    def _find_source(self, mine: typing.Any) -> typing.Any:
        if mine.instance.host is None:
            return None
        return super()._find_source(mine)

    def _replace(self, host: str) -> typing.Any:
        self._before.setdefault(host, self.scheduler.states[host])
        return super()._replace(host)


def find_key(kind: object, instance: typing.Any, text: str | None) -> object:
    """Return what is equal for like requests; None where one is like no other.

    :param kind: what else is to be equal
    :param instance: nova's
    :param text: a RequestSpec as nova stores it
    """
    if text is None:
        return None
    ports = []
    for vif in instance.get_network_info():
        network = vif.get('network') or {}
        meta = network.get('meta') or {}
        ports.append((network.get('id'), *map(meta.get, _OF_NETWORK)))
        if CONF.scheduler.query_placement_for_routed_network_aggregates or (
            vif.get('profile') or {}
        ).get('allocation'):
            # Neutron knows what the port asks of placement.
            return None
    try:
        # Parts of a request have its UUID.
        stored = jsonutils.loads(text.replace(instance.uuid, ''))
        spec = dict(stored['nova_object.data'])
    except (ValueError, LookupError, TypeError):
        return None
    if spec.get('instance_group') or spec.get('scheduler_hints'):
        return None
    kept = {name: spec[name] for name in spec if name not in _OWN}
    return (
        kind,
        tuple(sorted(set(ports), key=str)),
        jsonutils.dumps(kept, sort_keys=True),
    )
