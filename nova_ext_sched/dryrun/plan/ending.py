# SPDX-License-Identifier: Apache-2.0

"""Finishes every plan: batches, needs, redundancy, servers that left."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import itertools
import typing

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import durations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

_Plan = typing.TypeVar('_Plan', bound=plans.Plan)

# Policies of server groups whose members are to be together.
_TOGETHER = ('affinity', 'soft-affinity')
# Hints that name no other server. The group does; it is looked at by itself.
_HINTS = {'group', fields.CHECK_TYPE}


def settle(
    cloud: snapshot.Snapshot,
    before: Mapping[str, typing.Any],
    moves: Sequence[plans.Move],
    movables: movable.Movables,
) -> tuple[list[plans.Move], list[plans.Group]]:
    """Put the moves of a plan, or of a round, into their final form.

    In the fork in which they are made.

    :param before: the nova HostStates before them, by UUID
    :param moves: with the numbers of their batches
    :returns: the moves, each with those that it needs, and the server groups
        that are closer together after them
    """
    closer = _compare_groups(cloud, before, movables, moves)
    return _link(moves, movables), closer


def finish(
    cloud: snapshot.Snapshot,
    plan: _Plan,
    before: Mapping[str, typing.Any],
    movables: movable.Movables,
    softly: bool = True,
    standing: Set[str] = frozenset(),
) -> _Plan:
    """Finish a plan, in the fork in which its moves are made.

    :param plan: its moves have no batches yet
    :param before: as of :func:`settle`
    :param softly: see :func:`.gone.look`
    :param standing: UUIDs of servers on the hosts that they are to leave
    """
    numbered = number(plan.moves, movables)
    moves, groups = settle(cloud, before, numbered, movables)
    settled = dataclasses.replace(plan, moves=moves, groups=groups)
    kept = _remove_left(cloud, settled, softly, standing)
    return dataclasses.replace(
        kept,
        services=cloud.services_of(kept.hosts),
        seconds=durations.estimate(cloud, kept.moves),
    )


def _remove_left(
    cloud: snapshot.Snapshot, plan: _Plan, softly: bool, standing: Set[str]
) -> _Plan:
    """Remove servers that have left meanwhile from a plan.

    Its other moves are as valid: a server that is gone has left its host too,
    and comes to none.

    ====================================  ==============================
    a server                              is of the plan
    ====================================  ==============================
    that is gone                          deleted_meanwhile
    whose deletion has not ended, in a    without_place: nova does not
    migration or without a place          move it
    that was to leave a host, and is on   moved_meanwhile
    another that is not to be empty
    any other                             what it was
    ====================================  ==============================

    Parameters are those of :func:`finish`.
    """
    there = (*plan.moves, *plan.without_place, *plan.mended_by_others)
    by_uuid = {one.server: one for one in there}
    changed = gone.look(cloud, by_uuid.keys(), softly)
    deleting = {
        one.server: make_deleting(one, changed.deleting[one.server])
        for one in (*plan.moves, *plan.without_place)
        if one.server in changed.deleting
        and getattr(one, 'method', '') != movable.EVACUATE
    }
    moved = {
        uuid
        for uuid in standing & changed.hosts.keys() & by_uuid.keys()
        if changed.hosts[uuid] not in (by_uuid[uuid].host, *plan.to_be_empty)
    } - deleting.keys()
    left = changed.gone | moved | deleting.keys()

    def keep(among: Iterable[typing.Any]) -> list[typing.Any]:
        return [one for one in among if one.server not in left]

    def name(uuids: Iterable[str]) -> list[plans.Leaving]:
        return [plans.take_leaving(by_uuid[uuid]) for uuid in sorted(uuids)]

    return dataclasses.replace(
        plan,
        moves=keep(plan.moves),
        without_place=[*keep(plan.without_place), *deleting.values()],
        mended_by_others=keep(plan.mended_by_others),
        deleted_meanwhile=name(changed.gone),
        moved_meanwhile=name(moved),
    )


def finish_rounds(
    cloud: snapshot.Snapshot, rounds: plans.Rounds
) -> plans.Rounds:
    """Remove servers that have left meanwhile from rounds.

    As of :func:`finish`; one whose deletion has not ended for long keeps its
    host from being emptied.
    """
    there = (
        *(move for round_ in rounds.rounds for move in round_.moves),
        *(one for kept in rounds.not_emptied for one in kept.without_place),
        *rounds.being_built,
    )
    by_uuid = {server.server: server for server in there}
    changed = gone.look(cloud, by_uuid.keys(), softly=False)
    stuck = {uuid for uuid, is_long in changed.deleting.items() if is_long}
    deleted = changed.gone | (changed.deleting.keys() - stuck)

    def keep(among: Sequence[typing.Any]) -> list[typing.Any]:
        return [one for one in among if one.server not in deleted]

    def name(held: Sequence[plans.Stuck]) -> list[plans.Stuck]:
        return [
            make_deleting(one, True) if one.server in stuck else one
            for one in keep(held)
        ]

    whole = [
        dataclasses.replace(round_, moves=keep(round_.moves))
        for round_ in rounds.rounds
    ]
    return plans.Rounds(
        whole,
        [
            dataclasses.replace(kept, without_place=name(kept.without_place))
            for kept in rounds.not_emptied
        ],
        [plans.take_leaving(by_uuid[uuid]) for uuid in sorted(deleted)],
        cloud.services_of(plans.name_hosts(whole)),
        keep(rounds.being_built),
        durations.estimate(
            cloud, [move for round_ in whole for move in round_.moves]
        ),
        rounds.remarks,
    )


def make_deleting(server: plans.Leaving, is_stuck: bool) -> plans.Stuck:
    """Describe a server that holds its host until its deletion ends.

    :param is_stuck: whether nova has done nothing for long
    """
    return plans.Stuck(
        **vars(plans.take_leaving(server)),
        reason='its deletion has not ended for an hour'
        if is_stuck
        else 'it is being deleted',
        cause=plans.STATE,
        would_help=admission.say_how_to_delete(server.server, is_stuck),
    )


def _compare_groups(
    cloud: snapshot.Snapshot,
    before: Mapping[str, typing.Any],
    movables: movable.Movables,
    moves: Iterable[plans.Move],
) -> list[plans.Group]:
    """Return the server groups of moved servers that lost redundancy.

    :param before: see :func:`settle`
    """
    groups = {}
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        group = prepared.spec_obj.instance_group
        if group and group.policy not in _TOGETHER:
            groups[group.uuid] = group
    closer = []
    for uuid, group in groups.items():
        members = group.members
        nodes = cloud.future.find_nodes(members)
        hosts, hosts_before = (
            {
                state.host: selection.domains_of(state.aggregates)
                for state in map(states.__getitem__, nodes)
                if not state.instances.keys().isdisjoint(members)
            }
            for states in (cloud.states, before)
        )
        numbers = (
            len(hosts),
            len(hosts_before),
            len(frozenset().union(*hosts.values())),
            len(frozenset().union(*hosts_before.values())),
        )
        if numbers[0] < numbers[1] or numbers[2] < numbers[3]:
            name = messages.clean(group.name)
            closer.append(plans.Group(uuid, name, *numbers))
    return closer


@dataclasses.dataclass
class _Batch:
    """Consecutive moves that do not need each other.

    All that a filter reads of servers is which are on the host that it is
    asked about, the server group and hints that name servers. So a move goes
    to the host of its turn whether or not those of its batch have been made:

    ====================================  =================================
    a move                                begins a batch
    ====================================  =================================
    to a host that one of the batch left  yes: it may need that room
    to a host to which one of the batch   yes: the one that comes first may
    goes; both have a NUMA topology or    take the cell, or the device, that
    PCI devices                           the other needs
    of a server group of the batch        yes: its rules count the others
    with hints of its owner               yes, and the next one does: they
                                          may name a server
    for which nova chooses the host       yes, and the next one does: it may
                                          go elsewhere
    any other                             no
    ====================================  =================================

    :ivar vacated: names of hosts that its servers left
    :ivar fitted: names of hosts that give of their cells or devices
    :ivar groups: UUIDs
    :ivar is_full: whether no other move may be of it
    """

    number: int = 1
    vacated: set[str] = dataclasses.field(default_factory=set)
    fitted: set[str] = dataclasses.field(default_factory=set)
    groups: set[str] = dataclasses.field(default_factory=set)
    is_full: bool = False

    def add(
        self, spec_obj: typing.Any, host: str, target: str, is_named: bool
    ) -> '_Batch':
        """Add a move to the batch, or to a new one; return that.

        :param spec_obj: the nova RequestSpec
        :param host: where the server is
        :param is_named: whether nova is told where it goes
        """
        groups, is_alone = _read(spec_obj, is_named)
        fitted = {target} if _is_fitted(spec_obj) else set()
        batch = self
        if self.vacated and (
            self.is_full
            or is_alone
            or target in self.vacated
            or not self.fitted.isdisjoint(fitted)
            or not self.groups.isdisjoint(groups)
        ):
            batch = _Batch(self.number + 1)
        batch.vacated.add(host)
        batch.fitted |= fitted
        batch.groups |= groups
        batch.is_full = is_alone
        return batch


def number(
    moves: Iterable[plans.Move], movables: movable.Movables
) -> list[plans.Move]:
    """Give each move of an order the number of its batch.

    :param movables: every server that moves is a Movable there
    """
    batch, numbered = _Batch(), []
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        batch = batch.add(
            prepared.spec_obj, move.host, move.expected, move.to is not None
        )
        numbered.append(dataclasses.replace(move, batch=batch.number))
    return numbered


def _link(
    moves: Iterable[plans.Move], movables: movable.Movables
) -> list[plans.Move]:
    """Give each move of an order the moves that it needs.

    Of the moves before it:

    =======================================  ==============================
    a move                                   needs
    =======================================  ==============================
    to a host                                those that left it: it may
                                             need that room
    of a server group                        those of the group
    with hints of its owner                  all: they may name a server
    for which nova chooses the host          all
    any, after one for which nova chooses    that one: it may go elsewhere
    =======================================  ==============================

    :param movables: every server that moves is a Movable there
    """
    linked: list[plans.Move] = []
    chosen: list[str] = []
    # Servers that moved, by the host that they left, and by their group.
    vacated: dict[str, list[str]] = {}
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        groups, is_alone = _read(prepared.spec_obj, move.to is not None)
        needs = (
            [other.server for other in linked]
            if is_alone
            else itertools.chain(
                chosen,
                *(vacated.get(key, ()) for key in (move.expected, *groups)),
            )
        )
        needed = [*dict.fromkeys(needs)]
        linked.append(dataclasses.replace(move, needs=needed))
        for key in (move.host, *groups):
            vacated.setdefault(key, []).append(move.server)
        if move.to is None:
            chosen.append(move.server)
    return linked


def _read(spec_obj: typing.Any, is_named: bool) -> tuple[set[str], bool]:
    """Return a request's group, and whether it may depend on other moves."""
    group = fields.get_field(spec_obj, 'instance_group')
    hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
    is_alone = not is_named or bool(hints.keys() - _HINTS)
    return {group.uuid} if group else set(), is_alone


def _is_fitted(spec_obj: typing.Any) -> bool:
    """Return whether NUMA cells or devices decide if a host takes a server."""
    devices = fields.get_field(spec_obj, 'pci_requests')
    return bool(
        fields.get_field(spec_obj, 'numa_topology')
        or (devices and devices.requests)
    )
