# SPDX-License-Identifier: Apache-2.0

"""Hosts to keep free, on small clouds; nova evacuates in tests/long."""

import dataclasses
import itertools
import os
import random

import ddt
from nova import objects

from tests.unit.dryrun.plan import small

# Random clouds that are filled.
CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_FULL', '8'))


def fill(rng, hosts, servers, most):
    """Add servers of random sizes and groups until none fits, or so many."""
    for _ in range(most):
        left = {}
        for host, one in hosts.items():
            mine = [s for s in servers.values() if s.host == host]
            cpus = one.cpus - sum(s.cpus for s in mine)
            units = one.units - sum(s.units for s in mine)
            if cpus and units:
                left[host] = cpus, units
        if not left:
            return
        host = rng.choice([*left])
        cpus, units = (rng.randint(1, min(3, free)) for free in left[host])
        group = rng.choice([0, 0, 0, 1, 2])
        if any(s.group == group and s.host == host for s in servers.values()):
            group = 0
        name = f'{host}{len(servers)}'
        servers[name] = small.Server(host, cpus, units=units, group=group)


@ddt.ddt
class HoldTestCase(small.TestCase):
    def mark(self, *hosts, name='spares', **metadata):
        """Let an aggregate have hosts."""

        def change(cloud):
            before(cloud)
            number = len(cloud.aggs_by_id) + 1
            one = objects.Aggregate(
                id=number, uuid=name, name=name, hosts=[*hosts],
                metadata=metadata or {'failover': 'true'},
            )  # fmt: skip
            cloud.aggs_by_id[number] = one
            for state in cloud.states.values():
                if state.host in hosts:
                    state.aggregates = [*state.aggregates, one]

        before = self.small.change
        self.small.change = change

    def hold(self, cloud, *args, **more):
        """Return what is to be marked, the moves, and who has no other."""
        found = self.small.hold(cloud, *args, **more)
        return (
            ' '.join(one.on for one in found.mark),
            small.say(found.moves),
            ' '.join(one.on for one in found.alone),
        )

    @ddt.data(
        # Of equal ones that with the fewest servers; the first of these.
        ('a=4 x=1 w=1; b=4 y=1; c=4 z=1', ('b', 'y:a', '')),
        ('a=4 x=3; b=4 y=1; c=4', ('c', '', '')),
        # A larger one replaces smaller ones, whatever it costs.
        ('a=4 x=1; b=2; c=2', ('a', 'x:b', '')),
        # The largest replaces nobody whom no other does.
        ('a=4; b=2; c=2', ('a', '', '')),
        # Alone.
        ('a=4 x=1', ('', '', 'a')),
        # It cannot be emptied: another one is.
        ('a=4 x=1:shelved; b=4 y=2; c=4 z=3', ('b', 'y:a', '')),
        # Nor can any.
        ('a=4 x=4; b=4 y=4', ('', '', 'a b')),
    )
    @ddt.unpack
    def test_full(self, cloud, expected):
        self.assertEqual(expected, self.hold(cloud))

    def test_amounts_of_all_kinds(self):
        """One with more CPUs and less memory replaces no other."""
        hosts = {
            'a': small.Host(8, units=8),
            'b': small.Host(4, units=16),
            'c': small.Host(4, units=16),
            'd': small.Host(8, units=8),
        }
        found = self.small.hold((hosts, {}))
        self.assertEqual(
            [('a', 1), ('b', 1)],
            [(one.on, one.replaces) for one in found.mark],
        )
        del hosts['d']
        found = self.small.hold((hosts, {}))
        self.assertEqual(['b'], [one.on for one in found.mark])
        [alone] = found.alone
        self.assertEqual('a', alone.on)
        self.assertEqual('the nearest, b, has less VCPU', alone.said)

    @ddt.data(*range(40))
    def test_no_choice_is_smaller(self, seed):
        """Each other host has one that is as large, where there is any."""
        rng = random.Random(seed)
        sizes = {
            host: (rng.randint(1, 3), rng.randint(1, 3))
            for host in 'abcdef'[: rng.randint(2, 6)]
        }
        found = self.small.hold(
            ({h: small.Host(c, units=u) for h, (c, u) in sizes.items()}, {})
        )

        def find_alone(held):
            return [
                host
                for host, (cpus, units) in sizes.items()
                if host not in held
                and not any(
                    sizes[one][0] >= cpus and sizes[one][1] >= units
                    for one in held
                )
            ]

        marked = {one.on for one in found.mark}
        alone = find_alone(marked)
        self.assertEqual(alone, [one.on for one in found.alone])
        for number in range(len(marked) + 1):
            for other in itertools.combinations(sizes, number):
                left = find_alone(other)
                # Nobody has to have a host that replaces only itself.
                saved = len(alone) - len(left)
                self.assertLessEqual(saved, number - len(marked), other)

    @ddt.data(*range(CASES))
    def test_any_other_can_fail_when_all_are_full(self, seed):
        """Random servers fill the others; then each that has another fails.

        NOVA_EXT_SCHED_TEST_FULL is the number of clouds, 8 by default.
        """
        rng = random.Random(seed)
        kinds = [
            small.Host(rng.randint(3, 8), units=rng.randint(3, 8))
            for _ in range(rng.randint(1, 3))
        ]
        hosts = {host: rng.choice(kinds) for host in 'abcdefg'}
        servers = {}
        fill(rng, hosts, servers, 6)
        found = self.small.hold((hosts, servers))
        for move in found.moves:
            at = servers[move.uuid]
            servers[move.uuid] = dataclasses.replace(at, host=move.expected)
        marked = {one.on for one in found.mark}
        open_ = {host: hosts[host] for host in hosts if host not in marked}
        fill(rng, open_, servers, 999)
        alone = {one.on for one in found.alone}
        failed = self.small.survive((hosts, servers)).failed
        self.assertEqual({*open_}, {one.name for one in failed})
        self.assertEqual(
            [],
            [
                (one.name, small.say(one.stuck))
                for one in failed
                if one.stuck and one.name not in alone
            ],
        )
        # Some could not: the others are full.
        barred = {*marked}
        without = self.small.survive(
            ({host: hosts[host] for host in open_},
             {uuid: one for uuid, one in servers.items()
              if one.host not in barred})
        ).failed  # fmt: skip
        self.assertTrue(any(one.stuck for one in without))

    def test_what_is_kept_counts(self):
        """As long as it is empty; else it is emptied, and no other kept."""
        self.mark('c')
        found = self.small.hold('a=4 x=3; b=4; c=4')
        self.assertEqual((['c'], [], []), (found.held, found.mark,
                                           found.commands))  # fmt: skip
        found = self.small.hold('a=4 x=3; b=4; c=4 y=1')
        [one] = found.mark
        self.assertEqual(
            ('c', 1, True, []), (one.on, one.servers, one.marked,
                                 found.commands)
        )  # fmt: skip
        self.assertEqual('y:a', small.say(found.moves))

    def test_commands(self):
        self.small.change = lambda cloud: None
        cloud = 'a=4; b=2; c=2'
        self.assertEqual(
            [
                'openstack aggregate create --property failover=true failover',
                'openstack aggregate add host failover a',
            ],
            self.small.hold(cloud).commands,
        )
        # One that means more is left alone.
        self.mark(name='rack', failover='true', rack='1')
        self.mark(name='my spares', failover='1')
        self.assertEqual(
            ["openstack aggregate add host 'my spares' a"],
            self.small.hold(cloud).commands,
        )

    @ddt.data('--help', '7', 'a\nb', '')
    def test_aggregates_that_no_command_can_name(self, name):
        """Another is made; a name is an option, or the ID of another."""
        self.mark(name=name, failover='true')
        self.assertEqual(
            [
                'openstack aggregate create --property failover=true failover',
                'openstack aggregate add host failover a',
            ],
            self.small.hold('a=4; b=2; c=2').commands,
        )

    def test_a_name_that_is_taken(self):
        self.mark(name='failover', rack='1')
        self.mark(name='failover-2', rack='2')
        first, second = self.small.hold('a=4; b=2; c=2').commands
        self.assertEqual('failover-3', first.split()[-1])
        self.assertEqual('openstack aggregate add host failover-3 a', second)

    def test_a_host_that_no_command_can_name(self):
        sizes = {'-a': 4, 'b': 2, 'c': 2}
        hosts = {name: small.Host(size) for name, size in sizes.items()}
        found = self.small.hold((hosts, {}))
        self.assertEqual(['-a'], [one.on for one in found.mark])
        self.assertEqual([], found.commands)

    def test_each_aggregate_by_itself(self):
        self.mark('a', 'b', 'c', name='windows', os='windows')
        self.assertEqual(('a d', '', ''), self.hold('a=4; b=4; c=4; d=4; e=4'))
        self.assertEqual(('a', '', 'd'), self.hold('a=4; b=4; c=4; d=4'))

    @ddt.data(
        ('failover', 'false', 'a'),
        ('failure_domain', 'r1', 'a'),
        ('zone', 'z', 'a c'),
    )
    @ddt.unpack
    def test_metadata(self, key, value, expected):
        """Marks and failure domains tell no host from another."""
        self.mark('a', 'b', name='one', **{key: value})
        found = self.small.hold('a=4; b=4; c=4; d=4')
        self.assertEqual(expected, ' '.join(one.on for one in found.mark))

    def test_domains(self):
        """Each of its hosts has another outside of it."""
        self.mark('a', 'b', name='1', failure_domain='r1')
        self.mark('c', 'd', name='2', failure_domain='r2')
        self.mark('e', name='3', failure_domain='r3')
        cloud = 'a=4; b=4; c=4; d=4; e=4'
        self.assertEqual(('a', '', ''), self.hold(cloud))
        # c is there for b, and a for d; one host would do for neither rack.
        self.assertEqual(('a c', '', ''), self.hold(cloud, by='domain'))

    def test_a_choice_that_later_ones_make_needless(self):
        """First a, for d and its like; then b is needed, and takes these."""
        sizes = {'a': (1, 2), 'b': (3, 3), 'e': (2, 1), 'c': (2, 1),
                 'd': (1, 2)}  # fmt: skip
        for rack in ('a', 'be', 'cd'):
            self.mark(*rack, name=rack, failure_domain=rack)
        hosts = {h: small.Host(c, units=u) for h, (c, u) in sizes.items()}
        self.assertEqual(('b c', '', ''), self.hold((hosts, {}), by='domain'))

    def test_down(self):
        """What is not open is chosen by nobody."""

        def change(cloud):
            for state in cloud.states.values():
                state.service['disabled'] = state.host == 'a'

        self.small.change = change
        self.assertEqual(('b', '', ''), self.hold('a=4; b=4; c=4'))
        # It may hold servers all the same, and so may the other.
        self.assertEqual(('', '', 'a b'), self.hold('a=9; b=4'))

    @ddt.data(
        # Two small ones are as good.
        ('a=9 x=2 y=1; b=2; c=1; d=9 z=9', ('b c', '', '')),
    )
    @ddt.unpack
    def test_now(self, cloud, expected):
        self.assertEqual(expected, self.hold(cloud, 'now'))

    def test_price(self):
        found = self.small.hold('a=9 x=1; b=9; c=9', flavors=['2'])
        self.assertEqual(
            [('2', 4)], [(p.name, p.servers) for p in found.price]
        )

    def test_who_is_lost_all_the_same(self):
        found = self.small.hold('a=4 x=1:shelved y=2; b=4; c=4')
        self.assertEqual('x:state', small.say(found.lost))
        # Of a host without another it is said of all that it may have.
        found = self.small.hold('a=4 x=1:shelved y=2; b=2; c=2')
        self.assertEqual(('a', ''), (found.alone[0].on, small.say(found.lost)))
