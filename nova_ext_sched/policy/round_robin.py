# SPDX-License-Identifier: Apache-2.0

"""Round robin: which hosts the members of a server group prefer.

Schedulers that work at the same moment do not see each other's choices, but
all see the members of a group in one order, that of their creation. So the
members are dealt to slots, one after the other, and each scheduler deals all
of them anew, as far as it does not know where they stand.

**The slots.** Hosts and failure domains stand in an order that depends on
their names and the group alone. It is the same for every scheduler, and it is
another one for another group, so that groups do not all begin on the same
host. A host has a slot in each round in which it still takes a member. Of
three hosts that take 2, 4 and 3, the slots are a b c, a b c, b c, b. So are
those of three domains, and a domain's slots are dealt to its hosts likewise.

**The walk.** The living members, in their order:

==========================  =================================================
member                      claims
==========================  =================================================
stands on a host            the first slot of the host that is left
is under way                the first slot of all that is left: that of the
                            domain, then that of its host
moves                       the slot where it stands; after the walk, the
                            first slot of all that is left
is to be placed             as one that is under way, or that moves; it
                            prefers this host
is gone (deleted, refused)  nothing
==========================  =================================================

If those that follow in the order stand on a host and leave no slot to one that
was under way before them, that one is dealt again after the walk.

A scheduler that does not know where a member stands deals it to the slot that
another one dealt it to. So all agree, whatever each has heard so far.

**The order of the other hosts**, to which nova-compute sends a server that it
cannot take:

=============================  ==============================================
slot of the server             hosts that follow
=============================  ==============================================
the last one of its host: the  those of the next slots that are left. A
rule refuses the server where  server that stayed in the domain would take
another scheduler dealt the    the place of one that was dealt to it, and so
slot to another one            on, until the domain is above its limit
not the last one: the host is  those of the same domain, so that the numbers
what is wrong                  stay what was dealt
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
import itertools
import math
import typing
import zlib

#: The domains of a host where the request has no limit for domains.
ONE_DOMAIN = frozenset(('',))

# Slots that follow: nova tries three hosts, of one cell.
_MOST_SLOTS = 20

#: Where a member stands: names of hosts, and None for a host that nobody
#: knows yet.
Places = Collection[str | None]


class Host(typing.NamedTuple):
    """What the slots go by.

    :ivar domains: the names of the host's failure domains
    :ivar room: how many members of the group the host takes, in all
    """

    domains: frozenset[str]
    room: int


class Deal:
    """A server group as one request sees it.

    :ivar places: by the UUID of a living member; others are gone
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
        :param limit: how many members each domain takes
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
        # How many members claimed each host and domain, in one walk.
        self._claimed: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._slots: dict[str, Iterator[str]] = {}

    def order_hosts(self, members: Iterable[str], server: str) -> list[str]:
        """Return the hosts as a member prefers them, the best first.

        Hosts without a domain are not among them.

        :param members: of the group, in their order
        :param server: the member that is to be placed; if it is none of
            them, as the last one
        """
        self._claimed = dict.fromkeys(self._hosts, 0)
        self._held = dict.fromkeys(self._domains, 0)
        self._slots = {}
        best = self._walk(dict.fromkeys([*members, server]), server)
        first = self._hosts[best].domains if best is not None else ()
        others = [
            host
            for domain in sorted(
                self._domains,
                key=lambda domain: (
                    domain not in first,
                    self._is_full(domain),
                    self._held[domain],
                ),
            )
            for host in self._order_domain(domain)
        ]
        if best is None:
            return list(dict.fromkeys(others))
        following: Iterable[str] = ()
        if self._claimed[best] >= self._hosts[best].room:
            following = self._deal_next()
        return list(dict.fromkeys([best, *following, *others]))

    def _walk(self, members: Iterable[str], server: str) -> str | None:
        # Where the server is dealt to.
        dealt: dict[str, str | None] = {}
        for member in members:
            places = self.places.get(member, ())
            for place in places:
                if place is not None:
                    self._claim(place, 1)
            if member == server or None in places:
                moves = self._moves if member == server else len(places) > 1
                dealt[member] = None if moves else self._deal()
        for member, host in reversed(dealt.items()):
            if host is not None and self._is_overfull(host):
                self._claim(host, -1)
                dealt[member] = None
        self._slots.clear()
        for member, host in dealt.items():
            dealt[member] = host or self._deal()
        return dealt[server]

    def _deal_next(self) -> Iterator[str]:
        for _ in range(_MOST_SLOTS):
            host = self._deal()
            if host is None:
                return
            yield host

    def _order_domain(self, domain: str) -> list[str]:
        # Its hosts by the slots that are left, the full ones last.
        hosts, claimed = self._hosts, self._claimed
        names = sorted(self._domains[domain], key=claimed.__getitem__)
        return sorted(
            names, key=lambda name: claimed[name] >= hosts[name].room
        )

    def _claim(self, name: str, number: int) -> None:
        if name in self._hosts:
            self._claimed[name] += number
            for domain in self._hosts[name].domains:
                self._held[domain] += number

    def _deal(self) -> str | None:
        for domain in sorted(self._domains, key=self._held.__getitem__):
            slots = self._slots.get(domain)
            if slots is None:
                slots = self._slots[domain] = self._find_slots(domain)
            host = next(slots, None)
            if host is not None:
                self._claim(host, 1)
                return host
        return None

    def _find_slots(self, domain: str) -> Iterator[str]:
        # The hosts of the slots that are left, each for who asked to claim
        # it. Claims only grow meanwhile: what is full stays full.
        names = self._domains[domain]
        for number in itertools.count():
            for name in names:
                host = self._hosts[name]
                if self._claimed[name] == number < host.room and not any(
                    map(self._is_full, host.domains)
                ):
                    yield name
            names = [
                name for name in names if self._hosts[name].room > number + 1
            ]
            if not names:
                return

    def _is_overfull(self, name: str) -> bool:
        host = self._hosts[name]
        return self._claimed[name] > host.room or any(
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
