# SPDX-License-Identifier: Apache-2.0

"""make-room's moves beside the fewest there are, in random small clouds.

nova makes all of them, and then each new server on the host that is named.
Clouds with groups and hints are those of the unit tests, where every order of
moves is tried on paper; NOVA_EXT_SCHED_TEST_PLANS says how many, 3 by default.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import os
import random

import ddt

from tests.functional import promises
from tests.functional import test_make_room
from tests.long import devices
from tests.long import test_promises_devices
from tests.unit.dryrun.plan import test_make_room_random as on_paper

CLOUDS = 6
GROUPED = int(os.environ.get('NOVA_EXT_SCHED_TEST_PLANS', '3'))
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


@ddt.ddt
class AnyOrderTestCase(test_make_room.RoomTestCase):
    """Members of groups, and servers that hints name, move, too."""

    @ddt.data(*range(GROUPED))
    def test_random_clouds(self, seed):
        choose = random.Random(f'{seed} of nova')
        while not (drawn := on_paper.draw(choose.random())).rule:
            pass
        hosts = {host: f'host{n}' for n, host in enumerate(drawn.hosts, 1)}
        members = {}
        if drawn.rule != on_paper.HINT:
            members = {'group': self.create_group(policy=drawn.rule)}
        servers = [
            self.boot(
                flavor=self.flavor(vcpu=size),
                az=f'nova:{hosts[host]}',
                hints=members if number in drawn.named else {},
            )
            for number, (host, size) in enumerate(drawn.servers)
        ]
        hints = members
        if drawn.rule == on_paper.HINT:
            named = [servers[number]['id'] for number in drawn.named]
            hints = {'different_host': named} if named else {}
        for host in {*self.weights} - {*hosts.values()}:
            self.set_service(host, status='disabled')
        flavor = self.flavor(vcpu=drawn.size)
        found = promises.explain.call(
            promises.make_room.MakeRoom,
            'make-room',
            *('--flavor', flavor, '--count', f'{drawn.count}', '-f', 'json'),
            *(
                f'--hint={key}={one}'
                for key, value in hints.items()
                for one in ([value] if key == 'group' else value)
            ),
        )
        plan = found.plan
        letters = {host: letter for letter, host in hosts.items()}
        now = [letters[host] for host in plan['room_on'][: plan['fit_now']]]
        most, _ = drawn.find_most(now)
        self.assertLessEqual(most, len(plan['room_on']), (seed, drawn, plan))
        print('ROOM', seed, drawn.rule, plan['answer']['sentence'])
        choose.shuffle(plan['room_on'])
        self.take_room(flavor, plan, hints=hints)


class CellsTestCase(test_promises_devices.DevicesMixin, devices.DevicesBase):
    """Each of two cells has six pinned CPUs."""

    dedicated = '0-11'
    test_promises = None
    hosts = ('host1', 'host2')

    def test_who_is_in_the_cell(self):
        """One is alone in its cell; host2 has room for it, or for another."""
        for host, size, memory in (
            *(('host1', 3, 3000), ('host1', 3, 2900), ('host1', 4, 256)),
            *(('host2', 5, 256), ('host2', 2, 256)),
        ):
            flavor = self.large(size, memory, **devices.PINNED)
            self.boot_stopped(flavor=flavor, host=host)
        plan, _ = self.assertRoom(1, flavor=self.large(6, **devices.PINNED))
        self.assertEqual(['host1'], plan['room_on'])
        self.assertEqual(1, len(plan['moves']))


class DevicesInPlacementTestCase(
    test_promises_devices.DevicesMixin, devices.DevicesBase
):
    """A device is free on each host, and memory is not."""

    in_placement = True
    test_promises = None
    hosts = ('host1', 'host2')

    def test_a_device_that_is_free(self):
        provider = self._get_provider_uuid_by_host('host1')
        memory = self._get_provider_inventory(provider)['MEMORY_MB']
        room = (memory['total'] - memory['reserved']) * memory[
            'allocation_ratio'
        ]
        for host, part in (('host1', 0.5), ('host1', 0.33), ('host2', 0.55)):
            flavor = self.large(1, int(room * part))
            self.boot_stopped(flavor=flavor, host=host)
        nic = self.large(1, int(room * 0.48), **test_promises_devices.NIC)
        plan, _ = self.assertRoom(1, flavor=nic)
        found = len(plan['moves']), plan['fit_now']
        self.assertEqual((1, 0), found)
