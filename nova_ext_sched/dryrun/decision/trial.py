# SPDX-License-Identifier: Apache-2.0

"""Tries acts: supposes them, and judges the request again.

To try an act that frees room, existing servers leave the host in a fork, so
that nova's own accounting says which CPUs, NUMA nodes and devices become free.
A new host like an existing one is tried as that host, emptied.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import math
import typing

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.virt import hardware

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import overlay
from nova_ext_sched.dryrun.cloud import readers
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import hosts as hosts_step
from nova_ext_sched.dryrun.decision import server
from nova_ext_sched.policy import act

#: Judges the request again, changed by acts (:func:`change_request`), and
#: returns how many hosts take it.
Ask = Callable[[Sequence[act.Act]], int]

_OF_REQUESTS = (act.REQUEST, act.IMAGE, act.FLAVOR, act.RULE)
# What may be dropped from the request of an existing server.
_DROPPABLE_OF_EXISTING = {'availability_zone', 'host'}

#: Acts that may be allowed on one host and not on another.
ALLOWED_BY_HOST = act.RUNS, act.UNHELD, act.JOINS, act.LEAVES

# The most hosts that are searched for a movable member of the group.
_MOST_AWAY = 3


class Step(typing.NamedTuple):
    """An act, and the hosts that it applies to.

    :ivar hosts: UUIDs of compute nodes, in the order in which they are listed
    :ivar lacking: the amounts that the first host lacks, by resource class
    """

    act: act.Act
    hosts: tuple[str, ...]
    lacking: tuple[tuple[str, int], ...] = ()


class Untried(Exception):
    """A trial cannot tell whether an act helps."""


@dataclasses.dataclass
class Trials:
    """Tries acts on one cloud, for one request.

    :param group: the nova InstanceGroup of the request, or None
    :param described: the make-room options that describe the new server;
        empty for an existing server
    :param unheld: UUIDs of consumers of leaked allocations, by UUID of each
        compute node that would have room without them
    :param smaller: the name of the nearest flavor that fits, which may be
        asked for instead; empty for none
    :param is_new: whether the server does not exist yet, so that its whole
        request may change
    :param stays: whether the request is a rebuild, which changes no host
    """

    cloud: snapshot.Snapshot
    ask: Ask
    group: typing.Any = None
    described: Sequence[str] = ()
    unheld: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict
    )
    smaller: str = ''
    is_new: bool = False
    stays: bool = False

    def __post_init__(self) -> None:
        self._reader = servers.Reader(self.cloud)
        #: The UUIDs of the server that leaves, and of its compute node, for
        #: each step of AWAY that was tried.
        self.moved: dict[Step, tuple[str, str]] = {}

    @property
    def _members(self) -> set[str]:
        return {*(self.group.members if self.group else ())}

    def count(self, steps: Sequence[Step]) -> int:
        """Count the hosts that take the request after some steps.

        :raises Untried: a step cannot be tried
        """
        supposed = overlay.NONE
        for step in steps:
            if step.act.supposes == act.NOTHING:
                raise Untried
            supposed = supposed.with_(self._suppose(step))
        inside = [one for one in steps if one.act.supposes in _IN_FORKS]
        with contextlib.ExitStack() as stack:
            stack.enter_context(overlay.laid(self.cloud, supposed))
            if inside:
                future = stack.enter_context(self.cloud.fork())
                for step in inside:
                    _IN_FORKS[step.act.supposes](self, future, step)
            return self.ask(
                [one.act for one in steps if one.act.supposes in _OF_REQUESTS]
            )

    def _suppose(self, step: Step) -> overlay.Overlay:
        """Return the overlay of a step, besides its changes in a fork."""
        cloud, the_act, nodes = self.cloud, step.act, step.hosts
        hosts = sorted({cloud.nodes[uuid].host for uuid in nodes})
        aggregates = [
            one
            for one in cloud.aggs_by_id.values()
            if one.name in the_act.names
        ]
        pairs = tuple((one.uuid, host) for one in aggregates for host in hosts)
        match the_act.supposes:
            case act.OPTION:
                return overlay.Overlay(options=(the_act.names[:2],))  # type: ignore[arg-type]
            case act.RUNS:
                return overlay.Overlay(running=tuple(hosts))
            case act.MAPPED:
                return overlay.Overlay(mapped=tuple(hosts))
            case act.JOINS:
                return overlay.Overlay(joins=pairs)
            case act.LEAVES:
                return overlay.Overlay(
                    leaves=tuple(
                        (one.uuid, host)
                        for one in aggregates
                        for host in hosts
                        if host in one.hosts
                    )
                )
            case act.DOMAIN:
                return overlay.Overlay(domains=(cloud.nodes[nodes[0]].host,))
            case act.AMOUNT:
                option, value = the_act.names
                return overlay.Overlay(
                    amounts=tuple((option, one, float(value)) for one in nodes)
                )
            case act.SETS | act.UNSETS:
                name, key, *values = the_act.names
                return overlay.Overlay(
                    metadata=tuple(
                        (one.uuid, key, values[0] if values else None)
                        for one in cloud.aggs_by_id.values()
                        if one.name == name
                    )
                )
            case act.MIRRORED:
                return overlay.Overlay(mirrored=pairs)
            case act.GETS_TRAIT | act.LOSES_TRAIT:
                has = the_act.supposes == act.GETS_TRAIT
                return overlay.Overlay(
                    traits=tuple(
                        (trait, uuid, has)
                        for trait in the_act.names
                        for uuid in nodes
                    )
                )
        return overlay.NONE

    def allows(self, the_act: act.Act, node: str) -> bool:
        """Return whether an act is allowed: for the request, or on a host.

        Whether the request, its image, flavor or group may change depends on
        the server alone. Of the host depend RUNS (one that is forced down
        stays so while its servers are evacuated), UNHELD, JOINS and LEAVES.

        :param node: UUID of the host's compute node
        """
        match the_act.supposes:
            case act.RUNS:
                return not self._is_being_evacuated(node)
            case act.REQUEST | act.IMAGE:
                later = set() if self.stays else _DROPPABLE_OF_EXISTING
                return self.is_new or {*the_act.names} <= later
            case act.SETS | act.UNSETS:
                # Without names, no aggregate was found for the act.
                return bool(the_act.names)
            case act.RULE:
                return self.is_new
            case act.UNHELD:
                return node in self.unheld
            case act.ANOTHER | act.DOMAIN:
                # A group that stays together does not go to a new host.
                return self.group is None or self.group.policy != 'affinity'
            case act.FLAVOR:
                return bool(self.smaller)
            case act.JOINS | act.LEAVES:
                return self._keeps_zone(the_act, node)
        return True

    def _keeps_zone(self, the_act: act.Act, node: str) -> bool:
        """Return whether nova-api lets a host join or leave aggregates.

        It refuses (409) to put a host into a second availability zone, or to
        change the zone of a host with servers.
        """
        known = self.cloud.aggs_by_id.values()
        named = [one for one in known if one.name in the_act.names]
        mine = self.cloud.aggregates_of(self.cloud.nodes[node].host)
        kept = [one for one in mine if one not in named]
        before = {one.availability_zone for one in mine} - {None}
        after = kept + named if the_act.supposes == act.JOINS else kept
        zones = {one.availability_zone for one in after} - {None}
        state = self.cloud.states.get(node)
        has_servers = bool(state and state.instances)
        return len(zones) < 2 and (zones == before or not has_servers)

    def _is_being_evacuated(self, node: str) -> bool:
        """Return whether a host is forced down, and servers are leaving it."""
        state = self.cloud.states.get(node)
        if not (state and state.service.get('forced_down')):
            return False
        return any(
            state.host in hosts for hosts in self.cloud.under_way.values()
        )

    def list_amounts(
        self, node: str, lacking: Mapping[str, int]
    ) -> Iterator[act.Act]:
        """Yield acts on options of nova-compute that may give a host room.

        :param node: UUID of its compute node
        :param lacking: the amounts that it lacks
        """
        if len(lacking) != 1:
            return
        [(name, missing)] = lacking.items()
        stored = self.cloud.providers.get_stored(node).get(name)
        room = self.cloud.providers.get_room(node).get(name)
        if not stored or not room:
            return
        usable = stored['total'] - stored['reserved']
        for option, (its, field) in readers.AMOUNTS.items():
            if its != name:
                continue
            wanted = room['capacity'] + missing
            if field == 'reserved':
                kept = stored['total'] - wanted / stored['allocation_ratio']
                verb, value = 'lower', f'{math.floor(kept)}'
            elif usable > 0:
                verb = 'raise'
                value = f'{math.ceil(wanted / usable * 100) / 100:g}'
            else:
                continue
            if float(value) >= 0:
                yield act.Act(
                    act.POLICY,
                    f'{verb} {option} to {value} on {{hosts}}',
                    act.AMOUNT,
                    (option, value),
                    'more servers than there is room for now',
                    by_command=False,
                )

    def enlarge(self, future: fork.Fork, step: Step) -> None:
        """Note that hosts have more room."""
        for node in step.hosts:
            future.enlarge(node)

    def make_room(self, future: fork.Fork, step: Step) -> None:
        """Remove servers from the first host until it has room.

        The smallest server that is enough alone leaves; if there is none, the
        largest ones leave. Members of the request's group stay: moving one is
        the act AWAY. If the lacking amount is unknown, every server leaves
        that holds some of the resource class.

        :raises Untried: the host lacks room without these servers, too
        """
        [node, *_], lacking = step.hosts, dict(step.lacking)
        named = lacking or step.act.names
        held = self.cloud.providers.get_held(node)
        sizes = {
            stored.uuid: (stored, _count(held.get(stored.uuid, {}), named))
            for stored in self._read_on(node)
            if stored.uuid not in self._members
        }
        ranked = sorted(sizes, key=lambda one: (sizes[one][1].total(), one))
        if not lacking:
            holders = [one for one in ranked if sizes[one][1].total()]
            if not holders:
                raise Untried
            for uuid in holders:
                self._leave(future, node, sizes[uuid][0])
            return
        enough = [
            one
            for one in ranked
            if all(sizes[one][1][name] >= n for name, n in lacking.items())
        ]
        for uuid in enough[:1] or reversed(ranked):
            if all(number <= 0 for number in lacking.values()):
                break
            stored, has = sizes[uuid]
            self._leave(future, node, stored)
            lacking = {name: n - has[name] for name, n in lacking.items()}
        if any(number > 0 for number in lacking.values()):
            raise Untried

    def add_another(self, future: fork.Fork, step: Step) -> None:
        """Empty the first host, which then stands for a new one like it."""
        [node, *_] = step.hosts
        for stored in self._read_on(node):
            self._leave(future, node, stored)
        for consumer in self.cloud.providers.get_held(node):
            future.free(consumer, node)

    def free_unheld(self, future: fork.Fork, step: Step) -> None:
        """Remove allocations that belong to no server."""
        for node in step.hosts:
            for consumer in self.unheld[node]:
                future.free(consumer, node)

    def move_away(self, future: fork.Fork, step: Step) -> None:
        """Move a member of the group off one of the hosts.

        :raises Untried: no host that is searched has a member that can move
        """
        for node in step.hosts[:_MOST_AWAY]:
            state = self.cloud.states.get(node)
            for uuid in (
                sorted(self._members & state.instances.keys()) if state else ()
            ):
                if self._move(future, uuid, node):
                    self.moved[step] = uuid, node
                    return
        raise Untried

    def _move(self, future: fork.Fork, uuid: str, node: str) -> bool:
        """Migrate a server to its best host; return whether it has one."""
        stored = self._reader.find(uuid)
        if stored is None or stored.text is None:
            return False
        existing = server.Server(self._reader, uuid, stored)
        existing.migrate()
        spec_obj = existing.spec_obj
        _, targets = hosts_step.judge(
            self.cloud, spec_obj, with_scheduler_limit=True
        )
        home = self.cloud.nodes[node].host
        for target in targets:
            if target.host != home:
                taken = claims.read_taken(stored.instance)
                return future.move(uuid, spec_obj, target, node, taken)
        return False

    def _read_on(self, node: str) -> list[servers.Stored]:
        host = self.cloud.nodes[node]
        return [
            one
            for one in self._reader.read_on(host.cell_uuid, [host.host])
            if one.text is not None and one.instance.node == host.node
        ]

    def _leave(
        self, future: fork.Fork, node: str, stored: servers.Stored
    ) -> None:
        spec_obj = self._reader.load(stored)
        spec_obj.flavor = stored.instance.flavor
        taken = claims.read_taken(stored.instance)
        future.leave(stored.uuid, spec_obj, node, taken)


_IN_FORKS: dict[str, Callable[[Trials, fork.Fork, Step], None]] = {
    act.ROOM: Trials.make_room,
    act.ANOTHER: Trials.add_another,
    act.DOMAIN: Trials.add_another,
    act.AWAY: Trials.move_away,
    act.UNHELD: Trials.free_unheld,
    act.AMOUNT: Trials.enlarge,
}


def _count(
    body: Mapping[str, typing.Any], wanted: Iterable[str]
) -> collections.Counter[str]:
    """Sum the amounts of a consumer by resource class."""
    allocations = body.get('allocations', {}).values()
    return collections.Counter(
        {
            name: sum(one['resources'].get(name, 0) for one in allocations)
            for name in wanted
        }
    )


def change_request(spec_obj: typing.Any, acts: Iterable[act.Act]) -> None:
    """Change a nova RequestSpec as acts on requests say.

    :param acts: each names what it drops (``availability_zone``, ``host``, a
        hint such as ``group``, or a property of the image), or the flavor to
        use, or a rule of the server group and its limit
    """
    for the_act in acts:
        match the_act.supposes:
            case act.RULE:
                rule, limit = the_act.names
                spec_obj.instance_group._rules = {rule: limit}
            case act.FLAVOR:
                [name] = the_act.names
                spec_obj.flavor = objects.Flavor.get_by_name(
                    nova_context.get_admin_context(), name
                )
                spec_obj.numa_topology = hardware.numa_get_constraints(
                    spec_obj.flavor, spec_obj.image
                )
            case act.IMAGE:
                for name in the_act.names:
                    _leave_out_property(spec_obj.image, name)
            case act.REQUEST:
                for name in the_act.names:
                    _leave_out(spec_obj, name)


def _leave_out(spec_obj: typing.Any, name: str) -> None:
    if name == 'availability_zone':
        # nova-api sets this zone if a new server's request names none.
        is_boot = snapshot.is_boot(spec_obj)
        zone = nova.conf.CONF.default_schedule_zone if is_boot else None
        spec_obj.availability_zone = zone
    elif name == 'host':
        spec_obj.force_hosts = spec_obj.force_nodes = None
        if destination := spec_obj.requested_destination:
            for field in ('host', 'node'):
                if field in destination:
                    delattr(destination, field)
    else:
        spec_obj.scheduler_hints.pop(name, None)
        if name == 'group':
            spec_obj.instance_group = None


def _leave_out_property(image: typing.Any, name: str) -> None:
    """Remove a property from a nova ImageMeta, or its disk format."""
    if name == 'disk_format':
        # nova requires no trait for a disk format that it does not know.
        image.disk_format = 'another'
    elif name in image.properties:
        delattr(image.properties, name)
