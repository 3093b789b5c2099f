# SPDX-License-Identifier: Apache-2.0

"""How servers that wait for a host at the same moment share free slots.

Several schedulers may place members of one server group at once. None sees
what the others choose, and nova's weights send all of them to the same host.
But each sees the same waiting servers and the same free slots. A fixed rule
therefore gives each server its slots, and no two servers take the same one.

The rule is greedy. Every pair of a slot and a server has a number, a hash of
both, and pairs are matched from the greatest number down. If the views of two
schedulers differ in one slot or one server, only few pairs change.

==========================  ===============================================
slots and waiting servers   a server may take
==========================  ===============================================
only this server waits      every slot
at least as many slots as   its slot, and the remaining slots for which it has
servers                     the greatest number
more servers than slots     its slot; every slot, if it has none
==========================  ===============================================
"""

from collections.abc import Collection
from collections.abc import Mapping
import hashlib
import zlib

# Number of pairs up to which matching them takes a few milliseconds.
_MOST_PAIRS = 10_000


def share(
    free_slots: Mapping[str, int], waiting: Collection[str], server: str
) -> set[str]:
    """Return the hosts that one of several waiting servers may take.

    :param free_slots: for each host, the number of further members that it may
        hold, 1 or more
    :param waiting: UUIDs; ``server``, which is to be placed, among them or not
    :returns: keys of ``free_slots``, at least one if it has any
    """
    servers = {server, *waiting}
    if len(servers) == 1:
        return set(free_slots)
    slots = [
        (host, number)
        for host, count in free_slots.items()
        for number in range(min(count, len(servers)))
    ]
    if len(slots) * len(servers) > _MOST_PAIRS:
        # So many slots that it does not matter who takes which: a part of
        # the hosts for each server.
        rank = sorted(servers).index(server)
        return {
            host
            for host in free_slots
            if zlib.crc32(host.encode()) % len(servers) == rank
        } or set(free_slots)

    pairs = sorted(
        (
            (_number(*slot, one), slot, one)
            for slot in slots
            for one in servers
        ),
        reverse=True,
    )
    matched: dict[str, tuple[str, int]] = {}
    for _, slot, one in pairs:
        if one not in matched and slot not in matched.values():
            matched[one] = slot
    if server not in matched:
        return set(free_slots)
    taken = set(matched.values())
    left: dict[tuple[str, int], str] = {}
    for _, slot, one in pairs:
        if slot not in taken:
            left.setdefault(slot, one)
    return {matched[server][0]} | {
        host for (host, _), one in left.items() if one == server
    }


def _number(host: str, slot: int, server: str) -> bytes:
    return hashlib.blake2b(
        f'{host} {slot} {server}'.encode(), digest_size=8
    ).digest()
