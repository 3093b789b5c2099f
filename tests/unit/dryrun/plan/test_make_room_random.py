# SPDX-License-Identifier: Apache-2.0

"""make-room beside every order of moves, on random clouds of few hosts.

On paper a server takes CPUs, and its group or a hint may keep it from a host.
Without chains means that servers move only off hosts that take a new one.
"""

import collections
from collections.abc import Iterator
import itertools
import os
import random
import typing
from unittest import mock

import ddt
from nova import objects
from nova.scheduler.filters import affinity_filter
import testtools

from tests.unit.dryrun.plan import small
from tests.unit.dryrun.plan import test_make_room

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_EXAMPLES', '60')) // 10
ROOM = 10
#: A rule that is a hint; the others are policies of groups.
HINT = 'different_host'


class Cloud(typing.NamedTuple):
    """Servers on hosts, and those that are to come.

    :ivar servers: of each its host and CPUs
    :ivar rule: anti-affinity, affinity or different_host; empty for none
    :ivar named: servers of the group, or of the hint
    """

    hosts: str
    servers: list[tuple[str, int]]
    size: int
    count: int
    rule: str
    named: frozenset[int]

    def move(self, at, number, to):
        return (*at[:number], to, *at[number + 1 :])

    def find_moves(self, at) -> Iterator[tuple[str, ...]]:
        for number, (host, _) in enumerate(self.servers):
            if at[number] == host:
                for to in self.hosts:
                    if to != host and self.may_move(at, number, to):
                        yield self.move(at, number, to)

    def may_move(self, at, number, to):
        if self.count_free(at, to) < self.servers[number][1]:
            return False
        mates = {at[one] for one in self.named - {number}}
        if number not in self.named or not mates:
            return True
        if self.rule == 'anti-affinity':
            return to not in mates
        return self.rule != 'affinity' or to in mates

    def count_free(self, at, host):
        used = (
            size
            for (_, size), on in zip(self.servers, at, strict=True)
            if on == host
        )
        return ROOM - sum(used)

    def takes(self, at, new, host):
        """Return whether a host takes a new server beside other new ones."""
        mates = {at[one] for one in self.named}
        if self.rule == 'anti-affinity' and host in mates.union(new):
            return False
        if self.rule == HINT and host in mates:
            return False
        if self.rule == 'affinity' and mates.union(new) - {host}:
            return False
        free = self.count_free(at, host) - self.size * new.count(host)
        return free >= self.size

    def fill(self, at, now):
        """Return the hosts of as many new servers as there may be.

        :param now: those of servers that fit without a move
        """
        best, before = [], []
        for host in now:
            if not self.takes(at, before, host):
                return []
            before.append(host)
        for first in self.hosts:
            new = [*before]
            for host in (first, *self.hosts):
                while self.takes(at, new, host):
                    new.append(host)
            best = max(best, new, key=len)
        return best

    def find_most(self, now):
        """Return the most new servers, and the fewest moves for these."""
        at_first = tuple(host for host, _ in self.servers)
        level, seen, moves, most = {at_first}, {at_first}, 0, (0, 0)
        while level and most[0] < self.count:
            for at in level:
                new = self.fill(at, now)
                left = {
                    one
                    for one, to in zip(at_first, at, strict=True)
                    if one != to
                }
                made = collections.Counter(new) - collections.Counter(now)
                if left <= made.keys():
                    number = min(len(new), self.count)
                    if number > most[0]:
                        most = number, moves
            level = {
                after
                for at in level
                for after in self.find_moves(at)
                if after not in seen
            }
            seen |= level
            moves += 1
        return most


def draw(seed):
    """Return a random cloud."""
    choose = random.Random(seed)
    hosts = 'abcd'[: choose.choice([3, 4])]
    servers = []
    for _ in range(7):
        host, size = choose.choice(hosts), choose.choice([1, 2, 2, 3, 3, 4])
        if ROOM >= size + sum(one for at, one in servers if at == host):
            servers.append((host, size))
    rule = choose.choice(['', 'anti-affinity', 'affinity', HINT])
    # One member of a host at most, or all on one.
    at = {host: number for number, (host, _) in enumerate(servers)}
    some = choose.sample([*at], min(len(at), choose.choice([0, 1, 2])))
    if rule == 'affinity':
        some = some[:1]
    named = frozenset(at[host] for host in some)
    size, count = choose.choice([4, 5, 6, 7, 8]), choose.choice([1, 2, 3, 4])
    return Cloud(
        hosts, servers, size, count, rule, named if rule else frozenset()
    )


class Rooms(test_make_room.Rooms):
    """The same with new servers of a group, or with a hint."""

    def coming(self, *_):
        spec = super().coming()
        spec.scheduler_hints = {}
        spec.instance_group = None
        if self.drawn.rule in ('anti-affinity', 'affinity'):
            members = [f's{number}' for number in self.drawn.named]
            spec.instance_group = objects.InstanceGroup(
                uuid='True',
                name='g',
                policy=self.drawn.rule,
                policies=[self.drawn.rule],
                rules={},
                members=members,
                hosts=[self.drawn.servers[n][0] for n in self.drawn.named],
            )
        elif self.drawn.named:
            named = [f's{number}' for number in self.drawn.named]
            spec.scheduler_hints = {'different_host': named}
        return spec

    def plan(self, drawn, **more):
        self.drawn, self.size = drawn, (drawn.size, 1)
        self.policy = drawn.rule
        found = {
            f's{number}': small.Server(
                host,
                size,
                units=1,
                group=drawn.rule in ('anti-affinity', 'affinity')
                and number in drawn.named,
            )
            for number, (host, size) in enumerate(drawn.servers)
        }
        rooms = {host: small.Host(ROOM) for host in drawn.hosts}
        cloud = self.build((rooms, found))
        return small.read(
            test_make_room.make_room.make(
                cloud, test_make_room.request.Question(), drawn.count, **more
            )
        )


@ddt.ddt
class RandomRoomTestCase(testtools.TestCase):
    def test_progress(self):
        """Each host is tried on which a group may stand together."""
        rooms, told = self.useFixture(Rooms()), mock.Mock()
        servers = [('a', 3), ('b', 5)]
        drawn = Cloud('ab', servers, 5, 2, 'affinity', frozenset())
        self.assertEqual(2, len(rooms.plan(drawn, advance=told).on))
        self.assertIn(mock.call(total=4), told.mock_calls)
        self.assertEqual(4, told.mock_calls.count(mock.call()))

    @ddt.data(*range(CASES))
    def test_promises(self, seed):
        rooms = self.useFixture(Rooms())
        rooms.host_filters = (
            affinity_filter.ServerGroupAntiAffinityFilter(),
            affinity_filter.ServerGroupAffinityFilter(),
            affinity_filter.DifferentHostFilter(),
        )
        drawn = draw(seed)
        plan = rooms.plan(drawn)
        at = tuple(host for host, _ in drawn.servers)
        for move in plan.moves:
            number = int(move.uuid[1:])
            self.assertTrue(drawn.may_move(at, number, move.to), (drawn, plan))
            at = drawn.move(at, number, move.to)
        for order in {*itertools.permutations(plan.on)}:
            new = []
            for host in order:
                self.assertTrue(drawn.takes(at, new, host), (drawn, plan))
                new.append(host)
        most, fewest = drawn.find_most(plan.on[: plan.fit])
        self.assertLessEqual(most, len(plan.on), (drawn, plan))
        if most == len(plan.on):
            self.assertLessEqual(len(plan.moves), fewest + 2, (drawn, plan))
