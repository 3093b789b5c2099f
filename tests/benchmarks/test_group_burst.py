# SPDX-License-Identifier: Apache-2.0

"""Bursts of servers into groups that lost members before, simulated.

Schedulers place the servers of a burst one after the other, and each knows any
earlier server of the burst with a probability of 0.2. nova tries three hosts
of the list that a scheduler returned; a host takes no more members than the
rule.
"""

import collections
import random
import typing

import ddt
import testtools

from nova_ext_sched.policy import round_robin

BURSTS = 300
KNOWN = 0.2
TRIES = 3


class Case(typing.NamedTuple):
    hosts: int
    rule: int
    placed: int
    deleted: int
    new: int


class Burst:
    """One group, from its creation to the end of the burst."""

    def __init__(self, case, seed):
        self.random = random.Random(seed)
        self.group = str(seed)
        self.hosts = {
            f'host{number}': round_robin.Host(
                round_robin.ONE_DOMAIN, case.rule
            )
            for number in range(case.hosts)
        }
        # nova keeps deleted members in the list.
        self.members = []
        self.places = {}
        self.held = collections.Counter()
        self.fill(case.placed, known=1.0)
        for member in self.random.sample(sorted(self.places), case.deleted):
            (host,) = self.places.pop(member)
            self.held[host] -= 1
        self.attempts = self.fill(case.new, known=KNOWN)

    def fill(self, count, known):
        """Place servers; return the attempts of each, None if it is lost."""
        before = dict(self.places)
        attempts = []
        for _ in range(count):
            server = f'server{len(self.members)}'
            self.members.append(server)
            seen = {
                member: places
                if member in before or self.random.random() < known
                else (None,)
                for member, places in self.places.items()
            }
            attempts.append(self.place(server, seen))
        return attempts

    def place(self, server, seen):
        assignment = round_robin.Assignment(self.group, self.hosts, seen)
        full = collections.Counter(
            host for places in seen.values() for host in places
        )
        left = [
            host
            for host in assignment.order_hosts(self.members, server)
            # The filter refuses those that it knows to be full.
            if full[host] < self.hosts[host].room
        ]
        for attempt, host in enumerate(left[:TRIES], 1):
            if self.held[host] < self.hosts[host].room:
                self.held[host] += 1
                self.places[server] = (host,)
                return attempt
        return None


@ddt.ddt
class GroupBurstTest(testtools.TestCase):
    @ddt.data(
        # 8 hosts: 0.68 lost and 2.04 not at the first host when members were
        # dealt by their place in the list, 1.31 and 3.63 by chance.
        Case(hosts=8, rule=3, placed=20, deleted=10, new=14),
        # 1.93 and 6.09; 4.46 and 10.14.
        Case(hosts=20, rule=3, placed=40, deleted=20, new=40),
        # 1.73 and 4.23; 1.37 and 3.01.
        Case(hosts=20, rule=1, placed=18, deleted=9, new=11),
    )
    def test_burst(self, case):
        attempts = [
            number
            for seed in range(BURSTS)
            for number in Burst(case, seed).attempts
        ]
        lost = attempts.count(None) / BURSTS
        late = sum(number != 1 for number in attempts) / BURSTS
        print(f'\nBURST {case}: {lost:.2f} lost, {late:.2f} not at the first')
        self.assertEqual((0, 0), (lost, late))
