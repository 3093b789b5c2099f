# SPDX-License-Identifier: Apache-2.0

"""Draws the hosts of a plan."""

import collections
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import typing

from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.dryrun.plan import plans

# The signs of a host that will be empty, and of one that servers leave.
_EMPTY = topology.Sign('e', style=terminal.GOOD)
_LEFT = topology.Sign('m', style=terminal.GOOD)
# The sign of a host that fails, each of whose servers is restarted elsewhere.
_FAILS = topology.Sign('f', style=terminal.GOOD)


def draw_moves(
    plan: plans.Plan,
    emptied: Set[str],
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts that servers leave, and of those that get them.

    :param emptied: the names of hosts that will be empty and whose servers
        are known
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
                stuck, 'servers that cannot be moved'
            ),
            _EMPTY.shown: 'will be empty',
            _LEFT.shown: 'servers move away',
            topology.LEVELLED: f'gets {topology.say_levels(most, "server")}',
            topology.NOTHING.shown: 'unchanged',
        },
        by,
        terminal.GOOD,
    )


def draw_failure(
    failure: plans.Failure,
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of where the servers of a failure are restarted."""
    drawn = draw_moves(
        plans.Plan(moves=failure.moves, without_place=failure.without_place),
        frozenset(),
        hosts,
        by,
    )
    failing = {
        host: _FAILS
        for host in failure.hosts
        if drawn.signs.get(host, _LEFT) == _LEFT
    }
    return dataclasses.replace(
        drawn,
        signs={**drawn.signs, **failing},
        legend={_FAILS.shown: 'fails', **drawn.legend},
    )
