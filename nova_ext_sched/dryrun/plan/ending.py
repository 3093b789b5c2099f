# SPDX-License-Identifier: Apache-2.0

"""Finishes every plan: servers that left, deletions, redundancy."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import batches
from nova_ext_sched.dryrun.plan import durations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

_Plan = typing.TypeVar('_Plan', bound=plans.Plan)

# Policies of server groups whose members are to be together.
_TOGETHER = ('affinity', 'soft-affinity')


class Settled(typing.NamedTuple):
    """The moves of a plan, or of a round, in their final form.

    :ivar moves: each with those that it needs
    :ivar groups: server groups that are closer together after them
    """

    moves: list[plans.Move]
    groups: list[plans.Group]


def settle(
    cloud: snapshot.Snapshot,
    before: Mapping[str, typing.Any],
    moves: Sequence[plans.Move],
    movables: movable.Movables,
) -> Settled:
    """Put the moves of a plan, or of a round, into their final form.

    In the fork in which they are made.

    :param before: the nova HostStates before them, by UUID
    :param moves: with the numbers of their batches
    """
    return Settled(
        batches.link(moves, movables),
        _compare_groups(cloud, before, movables, moves),
    )


def finish(
    cloud: snapshot.Snapshot,
    plan: _Plan,
    softly: bool = True,
    standing: Set[str] = frozenset(),
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

    :param softly: see :func:`.gone.look`
    :param standing: UUIDs of servers on the hosts that they are to leave
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

    kept = dataclasses.replace(
        plan,
        moves=keep(plan.moves),
        without_place=[*keep(plan.without_place), *deleting.values()],
        mended_by_others=keep(plan.mended_by_others),
        deleted_meanwhile=name(changed.gone),
        moved_meanwhile=name(moved),
    )
    return dataclasses.replace(
        kept,
        services=cloud.services_of(kept.hosts),
        seconds=durations.estimate(cloud, kept.moves),
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
