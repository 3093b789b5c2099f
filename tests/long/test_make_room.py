# SPDX-License-Identifier: Apache-2.0

"""make-room's moves beside the fewest there are, in random small clouds.

nova makes all of them, and then each new server on the host that is named.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import random

from tests.functional import test_make_room

CLOUDS = 6
# CPUs of each host.
ROOM = 10

#: The sizes of the servers of each host, in CPUs.
Sizes = Mapping[str, Sequence[int]]
# The host of each server.
_Places = tuple[str, ...]


def draw(choose: random.Random, hosts: Sequence[str]) -> tuple[Sizes, int]:
    """Return at most ten servers, and the size of those that are to come."""
    sizes = {host: [] for host in hosts}
    for _ in range(10):
        host, size = choose.choice(hosts), choose.choice([1, 2, 2, 3, 3, 4])
        if sum(sizes[host]) + size <= ROOM:
            sizes[host].append(size)
    return sizes, choose.choice([5, 6, 7, 8])


def count_fewest(sizes: Sizes, size: int, count: int) -> int:
    """Return the least number of moves after which so many servers fit.

    Every order of moves is tried, of which each fits when its turn comes and
    no server moves twice.

    :param count: how many of that size; there is a way
    """
    servers = [(host, one) for host in sizes for one in sizes[host]]
    level = {tuple(host for host, _ in servers)}
    seen = {*level}
    number = 0
    while not any(_fit(sizes, servers, one, size) >= count for one in level):
        level = {
            after
            for one in level
            for after in _move_one(sizes, servers, one)
            if after not in seen
        }
        seen |= level
        number += 1
    return number


def _count_free(
    sizes: Sizes, servers: Sequence[tuple[str, int]], places: _Places
) -> dict[str, int]:
    free = dict.fromkeys(sizes, ROOM)
    for host, (_, one) in zip(places, servers, strict=True):
        free[host] -= one
    return free


def _fit(
    sizes: Sizes,
    servers: Sequence[tuple[str, int]],
    places: _Places,
    size: int,
) -> int:
    free = _count_free(sizes, servers, places)
    return sum(one // size for one in free.values())


def _move_one(
    sizes: Sizes, servers: Sequence[tuple[str, int]], places: _Places
) -> Iterator[_Places]:
    free = _count_free(sizes, servers, places)
    for number, (host, one) in enumerate(servers):
        if places[number] == host:
            for other in sizes:
                if other != host and free[other] >= one:
                    yield (*places[:number], other, *places[number + 1 :])


class FewestTestCase(test_make_room.RoomTestCase):
    def test_random_clouds(self):
        more = []
        for seed in range(CLOUDS):
            choose = random.Random(seed)
            sizes, size = draw(choose, sorted(self.weights))
            now = sum((ROOM - sum(one)) // size for one in sizes.values())
            stood = self.stand(**sizes)
            count = now + choose.choice([1, 2, 3])
            flavor = self.flavor(vcpu=size)
            plan = self.ask(flavor, count, status=None)
            self.assertEqual(now, plan['fit_now'], (seed, sizes))
            came = len(plan['room_on'])
            if came > now:
                fewest = count_fewest(sizes, size, came)
                more.append(len(plan['moves']) - fewest)
                print('ROOM', seed, sizes, size, came, fewest, more[-1])
            made = self.take_room(flavor, plan)
            for server in itertools.chain(made, *stood.values()):
                self._delete_server(server)
        self.assertLess(CLOUDS // 2, len(more))
        self.assertLessEqual(0.8 * len(more), more.count(0), more)
        self.assertLessEqual(max(more), 2)
