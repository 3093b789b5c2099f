# SPDX-License-Identifier: Apache-2.0

"""The hosts of a plan, drawn."""

import collections
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import typing

from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.dryrun.plan import plans

# The signs of a host that is to be empty, of one that servers leave, and of
# one where there is room then.
_EMPTY = topology.Sign('e', style=terminal.GOOD)
_LEFT = topology.Sign('m', style=terminal.GOOD)
_ROOM = topology.Sign('n', style=terminal.GOOD)


def draw_room(
    room: plans.Room,
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts with room for new servers, and of the moves."""
    drawn = draw_moves(room, frozenset(), hosts, by)
    taking = dict.fromkeys(filter(None, room.room_on[room.fit_now :]), _ROOM)
    return dataclasses.replace(
        drawn,
        signs={**drawn.signs, **taking},
        legend={_ROOM.shown: 'room for new servers then', **drawn.legend},
    )


def draw_moves(
    plan: plans.Plan,
    emptied: Set[str],
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts that servers leave, and of those that fill.

    :param emptied: the names of those that are to be empty and of which it is
        known what stands there
    """
    signs = dict.fromkeys((one.host for one in plan.moves), _LEFT)
    signs |= dict.fromkeys(emptied, _EMPTY)
    gets = collections.Counter(one.expected for one in plan.moves)
    most = max(gets.values(), default=1)
    signs |= {host: topology.level(n, most) for host, n in gets.items()}
    stuck = collections.Counter(one.host for one in plan.without_place)
    signs |= topology.count_all(stuck)
    return topology.Map(
        hosts,
        signs,
        gets,
        'Gets',
        {
            topology.COUNTED: topology.say_counted(
                stuck, 'servers without a place'
            ),
            _EMPTY.shown: 'empty then',
            _LEFT.shown: 'servers move away',
            topology.LEVELLED: f'gets 1 to {most} servers',
            topology.NOTHING.shown: 'as it is',
        },
        by,
        terminal.GOOD,
    )


def draw_rounds(
    found: plans.Rounds,
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts by the round in which they are empty."""
    last = len(found.rounds)
    signs = {
        host: topology.level(turn, last)
        for turn, one in enumerate(found.rounds, 1)
        for host in one.hosts
    }
    stuck = {one.host: len(one.without_place) for one in found.not_emptied}
    signs |= topology.count_all(stuck)
    moves = (move.host for one in found.rounds for move in one.moves)
    return topology.Map(
        hosts,
        signs,
        collections.Counter(moves),
        'Moves',
        {
            topology.COUNTED: topology.say_counted(
                stuck, 'servers without a place'
            ),
            topology.LEVELLED: f'empty in round 1 to {last}',
            topology.NOTHING.shown: 'not asked about',
        },
        by,
        terminal.GOOD,
    )


def draw_survival(
    outcome: plans.Outcome, by: str | None, of_all: bool
) -> topology.Map:
    """Return the map of servers that find no host, and of what is left.

    :param of_all: whether each host of the cloud was to fail
    """
    failures = outcome.failures
    most = max((one.room_for_last or 0 for one in failures), default=0)
    signs = {
        host: topology.level(one.room_for_last, most)
        for one in failures
        for host in one.hosts
        if one.room_for_last
    }
    stuck = collections.Counter(one.host for one in outcome.lost.values())
    signs |= topology.count_all(stuck)
    return topology.Map(
        outcome.topology,
        signs,
        stuck,
        'No host',
        {
            topology.COUNTED: topology.say_counted(
                stuck, 'servers that find no host'
            ),
            topology.LEVELLED: f'1 to {most} hosts for the last server',
            topology.NOTHING.shown: (
                'holds no server' if of_all else 'not asked about'
            ),
        },
        by,
    )
