# SPDX-License-Identifier: Apache-2.0

"""Round robin: which hosts the members of a server group prefer.

Schedulers that work at the same moment do not see each other's choices, but
all see the members of a group in one order, that of their creation. So the
members are assigned to slots, one after the other, and each scheduler assigns
all of them anew, as far as it does not know where they stand.

**The slots.** Hosts and failure domains stand in an order that depends on
their names and the group alone. It is the same for every scheduler, and it is
another one for another group, so that groups do not all begin on the same
host. A host has a slot in each round in which it still takes a member. Of
three hosts that take 2, 4 and 3, the slots are a b c, a b c, b c, b. So are
those of three domains, and a domain's slots are those of its hosts in turn.

**The members.** Those that live, in their order:

==========================  =================================================
member                      takes
==========================  =================================================
stands on a host            the first slot of the host that is left
is not yet claimed by       the first slot of all that is left: that of the
nova-compute                domain, then that of its host
moves                       the slot where it stands; after all others, the
                            first slot of all that is left
is to be placed             as one that is not yet claimed, or that moves; it
                            prefers this host
was deleted, or failed and  nothing
has no host
==========================  =================================================

If those that follow in the order stand on a host and leave no slot to one that
was not claimed before them, that one is assigned again after all others.

A scheduler that does not know where a member stands assigns it the slot that
the scheduler that placed it did. So all agree, whatever each has heard so far.

**The order of the other hosts**, to which nova-compute sends a server that it
cannot take:

=============================  ==============================================
slot of the server             hosts that follow
=============================  ==============================================
the last one of its host: the  those of the next slots that are left. A
rule refuses the server where  server that stayed in the domain would take
another scheduler assigned     the place of another one there, and so on,
the slot to another one        until the domain is above its limit
not the last one: the host is  those of the same domain, so that the numbers
what is wrong                  stay what was assigned
=============================  ==============================================

Then come the hosts of the same domain, and those of the domain with the next
slot, each in the order of the slots that are left.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import functools
import heapq
import itertools
import math
import typing
import zlib

from nova_ext_sched.policy import declaration

DECLARATION = declaration.Policy(
    name='round-robin',
    summary='Servers of a group take hosts and failure domains in turn.',
    weigher='ServerGroupRoundRobinWeigher',
    prefers='the host whose turn it is in the server group',
)

#: The domains of a host where the request has no limit for domains.
ONE_DOMAIN = frozenset(('',))

# Slots that follow: nova tries three hosts, of one cell.
_MOST_SLOTS = 20

#: Where a member stands: names of hosts, and None for a host that nobody
#: knows yet.
Places = Collection[str | None]


class Host(typing.NamedTuple):
    """A host, as the order of slots sees it.

    :ivar domains: the names of the host's failure domains
    :ivar room: how many members of the group the host takes, in all; infinite
        where neither a rule nor its size sets a bound
    """

    domains: frozenset[str]
    room: float


def count_rounds(living: int) -> int:
    """Return how many rounds a group can need, whatever its rule allows.

    One for each living member, where all stand on one host, one for the
    server that is to be placed, and one more, so that none has the last slot
    of a host. That a host takes more than these changes no order.

    :param living: number of living members, without the server
    """
    return living + 2


class Assignment:
    """The order of hosts for one request of a server group.

    :ivar places: by the UUID of a living member; others take no slot. It
        changes by :meth:`pick` alone
    """

    def __init__(
        self,
        group: str,
        hosts: Mapping[str, Host],
        places: Mapping[str, Places],
        limit: float = math.inf,
        moves: bool = False,
    ) -> None:
        """Put the hosts into the order of the group.

        :param group: the UUID of the server group
        :param hosts: by name; also those that are full
        :param limit: number of members that each domain takes
        :param moves: whether the server that is to be placed stood before
        """
        self.places = dict(places)
        self._moves = moves
        ordered = _order(group, frozenset(hosts))
        self._hosts = {name: hosts[name] for name in ordered}
        by_domain: dict[str, list[str]] = collections.defaultdict(list)
        for name, host in self._hosts.items():
            for domain in host.domains:
                by_domain[domain].append(name)
        self._domains = {
            domain: by_domain[domain]
            for domain in _order(group, frozenset(by_domain))
        }
        self._limits = {
            domain: min(limit, sum(hosts[name].room for name in names))
            for domain, names in self._domains.items()
            if limit < math.inf
        }
        # The members that were last assigned, which of them to where, and how
        # many each host and domain then holds.
        self._members: list[str] | None = None
        self._assigned: dict[str, str | None] = {}
        self._taken: dict[str, int] = {}
        self._held: dict[str, int] = {}
        # The domains that may have a slot left, as a heap: how many members
        # each held when it was last looked at, and its place in the order of
        # the group.
        self._turns: list[tuple[int, int, str]] = []
        self._slots: dict[str, Iterator[str]] = {}

    def order_hosts(self, members: Iterable[str], server: str) -> list[str]:
        """Return the hosts as a member prefers them, the best first.

        Hosts without a domain are not among them.

        :param members: of the group, in their order
        :param server: the member that is to be placed; if it is none of
            them, as the last one
        """
        in_order = list(dict.fromkeys([*members, server]))
        if not self._is_right(in_order, server):
            self._assign_all(in_order, server)
        best = self._assigned[server]
        first = self._hosts[best].domains if best is not None else ()
        others = [
            host
            for domain in self._order_domains(first)
            for host in self._order_domain(domain)
        ]
        if best is None:
            return list(dict.fromkeys(others))
        following: list[str] = []
        if self._taken[best] >= self._hosts[best].room:
            following = self._find_following()
        return list(dict.fromkeys([best, *following, *others]))

    def pick(self, server: str, host: str) -> None:
        """Count a server of the request on the host where it was placed."""
        before = self.places.get(server, ())
        if before != (host,):
            self.places[server] = (host,)
            if self._assigned.pop(server, None) != host or any(before):
                self._members = None

    def _is_right(self, members: list[str], server: str) -> bool:
        # Whether the last assignment is still right: so it is for the next
        # server of a request, if those before were picked as assigned. Else a
        # request for many servers would assign all members as many times.
        return (
            members == self._members
            and server in self._assigned
            and all(
                member == server or [*self.places.get(member, ())] == [None]
                for member in self._assigned
            )
        )

    def _assign_all(self, members: list[str], server: str) -> None:
        self._members = members
        self._taken = dict.fromkeys(self._hosts, 0)
        self._held = dict.fromkeys(self._domains, 0)
        assigned: dict[str, str | None] = {}
        self._assigned = assigned
        follows = False
        self._begin_turns()
        for member in members:
            places = self.places.get(member, ())
            for place in places:
                if place is not None:
                    self._count(place, 1)
                    follows = follows or bool(assigned)
            if member == server or None in places:
                moves = self._moves if member == server else len(places) > 1
                assigned[member] = None if moves else self._assign_next()
        # Only a member that stands takes a slot that is not left.
        for member, host in reversed(assigned.items()) if follows else ():
            if host is not None and self._is_overfull(host):
                self._count(host, -1)
                assigned[member] = None
        if None in assigned.values():
            self._members = None
            self._begin_turns()
            for member, host in assigned.items():
                assigned[member] = host or self._assign_next()

    def _find_following(self) -> list[str]:
        # The hosts of the next slots. Nobody takes them.
        self._begin_turns()
        slots = (self._assign_next() for _ in range(_MOST_SLOTS))
        following = [host for host in slots if host is not None]
        for host in following:
            self._count(host, -1)
        return following

    def _order_domains(self, first: Collection[str]) -> list[str]:
        # By the slots that are left, the full ones last, and before all some.
        domains = sorted(self._domains, key=self._held.__getitem__)
        if self._limits:
            domains.sort(key=self._is_full)
        return sorted(domains, key=first.__contains__, reverse=True)

    def _order_domain(self, domain: str) -> list[str]:
        # Its hosts by the slots that are left, the full ones last.
        taken = self._taken
        names = sorted(self._domains[domain], key=taken.__getitem__)
        full = {n for n in names if taken[n] >= self._hosts[n].room}
        return sorted(names, key=full.__contains__)

    def _count(self, name: str, number: int) -> None:
        if name in self._hosts:
            self._taken[name] += number
            for domain in self._hosts[name].domains:
                self._held[domain] += number

    def _begin_turns(self) -> None:
        held = self._held
        self._turns = list(
            zip(held.values(), range(len(held)), held, strict=True)
        )
        heapq.heapify(self._turns)
        self._slots = {}

    def _assign_next(self) -> str | None:
        # What domains hold only grows from one beginning of the turns to the
        # next. So what the heap has is never too much, and a domain without a
        # slot stays so.
        turns = self._turns
        while turns:
            held, place, domain = turns[0]
            if held != self._held[domain]:
                turn = self._held[domain], place, domain
                heapq.heapreplace(turns, turn)
                continue
            slots = self._slots.get(domain)
            if slots is None:
                slots = self._slots[domain] = self._find_slots(domain)
            host = next(slots, None)
            if host is not None:
                self._count(host, 1)
                return host
            heapq.heappop(turns)
        return None

    def _find_slots(self, domain: str) -> Iterator[str]:
        # The hosts of the slots that are left, each for who asked to take it.
        names = self._domains[domain]
        for number in itertools.count():
            for name in names:
                host = self._hosts[name]
                if self._taken[name] == number < host.room and not any(
                    map(self._is_full, host.domains)
                ):
                    yield name
            # A host that nobody took is in a full domain. Without those, no
            # round is beyond what the members took, whatever the rule.
            names = [name for name in names if self._taken[name] > number]
            if not names:
                return

    def _is_overfull(self, name: str) -> bool:
        host = self._hosts[name]
        return self._taken[name] > host.room or any(
            self._held[domain] > self._limits.get(domain, math.inf)
            for domain in host.domains
        )

    def _is_full(self, domain: str) -> bool:
        return self._held[domain] >= self._limits.get(domain, math.inf)


@functools.lru_cache(maxsize=16)
def _order(group: str, names: frozenset[str]) -> tuple[str, ...]:
    # Not hash(), which differs between processes. The servers of a burst find
    # the same hosts, often thousands.
    seed = zlib.crc32(group.encode())
    ordered = sorted((zlib.crc32(name.encode(), seed), name) for name in names)
    return tuple(name for _, name in ordered)
