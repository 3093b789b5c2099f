# SPDX-License-Identifier: Apache-2.0

"""Round robin: which hosts the members of a server group prefer.

Schedulers that work at the same moment do not see each other's choices, but
all see the members of a group in one order, that of their creation. So the
members are dealt to the hosts in turn: each prefers a host of its own, and
the other hosts follow in a circle. Nothing is looked up.

**The circle.** Hosts and failure domains stand in an order that depends on
their names and the group alone. It is the same for every scheduler, and it
is another one for another group, so that groups do not all begin on the same
host.

**The turns.** Members are numbered from 0. A host has as many turns as members
that it takes, and so has a failure domain:

====================  ====================  =================================
the request asks for  member k's domain     its host
====================  ====================  =================================
no limit for domains  none                  of the k-th turn of all hosts
a limit               of the k-th turn of   of the next turn of the domain's
                      all domains           hosts
====================  ====================  =================================

Of three hosts that take 2, 4 and 3, the turns are a b c, a b c, b c, b; then
they begin anew. So are those of three domains.

**The order of the other hosts.** First those of the same domain, onwards in
the circle, then those of the next domain. A server that nova-compute cannot
take goes on to the next hosts, and stays in its domain while they are in it.

A full host keeps its place in the circle and its turns, and is passed over: so
the turns of the others stay what they are while the group fills.
"""

import bisect
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import typing
import zlib


class Host(typing.NamedTuple):
    """What the turns go by.

    :ivar domains: the names of the host's failure domains
    :ivar room: how many members of the group the host takes, in all
    """

    domains: frozenset[str]
    room: int


def order_hosts(group: str, number: int, room: Mapping[str, int]) -> list[str]:
    """Return the hosts as a member of a group prefers them, the best first.

    :param group: the UUID of the server group
    :param number: the member's place in the group, 0 or more
    :param room: how many members each host takes, in all; also of hosts that
        are full
    """
    return _order_by_turn(group, number, room)[0]


def order_hosts_by_domain(
    group: str,
    number: int,
    domains: Mapping[str, Mapping[str, int]],
    room: Mapping[str, int],
) -> list[str]:
    """Return the hosts as :func:`order_hosts`, the domains in turn.

    :param domains: the hosts of each failure domain, also of full ones, and
        how many members each takes; a domain whose hosts are not known has
        none
    :param room: how many members each domain takes, in all
    """
    names, turn = _order_by_turn(group, number, room)
    ordered: dict[str, None] = {}
    for name in names:
        # A host in several domains stands where it comes first.
        ordered.update(dict.fromkeys(order_hosts(group, turn, domains[name])))
    return list(ordered)


def find_turn(number: int, room: Sequence[int]) -> tuple[int, int]:
    """Return whose turn has this number, and its own turn.

    :param room: how many members each host or domain takes, in the circle's
        order
    :returns: the index, and how many turns it had before; both 0 if none
        takes a member
    """
    left = number % (sum(room) or 1)
    turn = 0
    sizes = sorted(room)
    for level in sorted(set(room)):
        # These have turns until each has had as many as the level says.
        taking = len(sizes) - bisect.bisect_left(sizes, level)
        rounds, place = divmod(left, taking)
        if turn + rounds < level:
            those = (index for index, n in enumerate(room) if n >= level)
            return next(itertools.islice(those, place, None)), turn + rounds
        left -= (level - turn) * taking
        turn = level
    return 0, 0


def _order_by_turn(
    group: str, number: int, room: Mapping[str, int]
) -> tuple[list[str], int]:
    # The names, first the one whose turn it is, and how many turns it had.
    names = _order(group, room)
    index, turn = find_turn(number, [room[name] for name in names])
    return names[index:] + names[:index], turn


def _order(group: str, names: Iterable[str]) -> list[str]:
    # Not hash(), which differs between processes. Fast, for 10,000 names.
    seed = zlib.crc32(group.encode())
    return sorted(
        names, key=lambda name: (zlib.crc32(name.encode(), seed), name)
    )
