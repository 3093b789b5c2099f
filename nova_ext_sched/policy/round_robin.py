# SPDX-License-Identifier: Apache-2.0

"""Round robin: which hosts the members of a server group prefer.

Schedulers that work at the same moment do not see each other's choices, but
all see the members of a group in one order, that of their creation. So the
members are dealt to the hosts in turn: each prefers a host of its own, and
the other hosts follow in a circle. Nothing is looked up or kept.

**The circle.** Hosts and failure domains stand in an order that depends on
their names and the group alone. It is the same for every scheduler, and it
is another one for another group, so that groups do not all begin on the same
host.

**The turns.** Members are numbered from 0. *Hosts* is the number of hosts, *d*
a failure domain:

====================  ====================  =================================
the request asks for  member k's domain     its host
====================  ====================  =================================
no limit for domains  none                  k mod hosts
a limit               of the k-th turn; a   in d, the one after that of d's
                      domain takes part     last turn; the first after the
                      while it has turns    last
                      left
====================  ====================  =================================

With a limit, a domain has as many turns as it takes members. Of three domains
that take 2, 4 and 3, the turns are a b c, a b c, b c, b; then they begin anew.

**The order of the other hosts.** First those of the same domain, onwards in
the circle, then those of the next domain. A server that nova-compute cannot
take goes on to the next hosts, and stays in its domain while they are in it.

A host that is full for the group keeps its place in the circle and is passed
over: then the turns of the others stay what they are while the group fills.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import zlib


def order_hosts(group: str, number: int, hosts: Iterable[str]) -> list[str]:
    """Return the hosts as a member of a group prefers them, the best first.

    :param group: the UUID of the server group
    :param number: the member's place in the group, 0 or more
    :param hosts: the names of all hosts that a member may get, also of those
        that are full for the group
    """
    return _rotate(_order(group, hosts), number)


def order_hosts_by_domain(
    group: str,
    number: int,
    domains: Mapping[str, Collection[str]],
    room: Mapping[str, int],
) -> list[str]:
    """Return the hosts as :func:`order_hosts`, the domains in turn.

    :param domains: the hosts of each failure domain, also of full ones; a
        domain whose hosts are not known has none
    :param room: how many members each domain takes, in all
    """
    names = _order(group, domains)
    index, turn = find_turn(number, [room[name] for name in names])
    ordered: dict[str, None] = {}
    for name in _rotate(names, index):
        # A host in several domains stands where it comes first.
        ordered.update(dict.fromkeys(order_hosts(group, turn, domains[name])))
    return list(ordered)


def find_turn(number: int, room: Sequence[int]) -> tuple[int, int]:
    """Return the domain of the turn with this number, and its own turn.

    :param room: how many members each domain takes, in the circle's order
    :returns: the index of the domain, and how many turns it had before; both
        0 if no domain takes a member
    """
    left = number % (sum(room) or 1)
    turn = 0
    for level in sorted(set(room)):
        # These have turns until each has had as many as the level says.
        taking = [index for index, size in enumerate(room) if size >= level]
        rounds, place = divmod(left, len(taking))
        if turn + rounds < level:
            return taking[place], turn + rounds
        left -= (level - turn) * len(taking)
        turn = level
    return 0, 0


def _order(group: str, names: Iterable[str]) -> list[str]:
    # Not hash(), which differs between processes. Fast, for 10,000 names.
    seed = zlib.crc32(group.encode())
    return sorted(
        names, key=lambda name: (zlib.crc32(name.encode(), seed), name)
    )


def _rotate(names: list[str], start: int) -> list[str]:
    start %= len(names) or 1
    return names[start:] + names[:start]
