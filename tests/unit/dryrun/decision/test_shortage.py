# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import shortage
from tests.unit.dryrun.cloud import clouds

FULL, SMALL, WITHOUT = 'are full ({})', 'are too small ({})', 'have no {}'
UNITS = 'cannot give one server such an amount ({})'
METAL = (
    'have {} reserved, as bare metal in maintenance, cleaning or not '
    'available has'
)
MEMORY = 'are too small by what reserved_host_memory_mb keeps back'

RATIO = {'reserved': 1, 'allocation_ratio': 1.5, 'max_unit': 99}

# Of a host the resource class, its total, what is used and what else its
# inventory has; the amount; why it lacks that, and what one server could get.
ROWS = (
    ('DISK_GB', 100, 60, {}, 50, FULL, 40),
    ('DISK_GB', 20, 0, {}, 50, SMALL, 20),
    ('VCPU', 100, 0, {}, 5, WITHOUT, None),
    # It gives one server no more than max_unit, however much it is.
    ('DISK_GB', 160, 155, {'max_unit': 10}, 10, FULL, 5),
    ('DISK_GB', 160, 155, {'max_unit': 10}, 11, SMALL, 5),
    ('DISK_GB', 160, 0, {'max_unit': 10}, 11, SMALL, 10),
    ('DISK_GB', 20, 12, {'step_size': 3}, 1, UNITS, 6),
    ('DISK_GB', 20, 12, {'step_size': 3}, 4, UNITS, 6),
    ('DISK_GB', 20, 12, {'min_unit': 3}, 2, UNITS, 8),
    ('DISK_GB', 20, 18, {'min_unit': 3}, 3, FULL, 0),
    ('DISK_GB', 20, 12, {'max_unit': 9, 'step_size': 3}, 9, FULL, 6),
    ('DISK_GB', 20, 12, {'max_unit': 9, 'step_size': 3}, 12, SMALL, 6),
    # It has not one unit free.
    ('DISK_GB', 9, 9, {}, 5, FULL, 0),
    ('DISK_GB', 9, 12, RATIO, 12, FULL, 0),
    ('DISK_GB', 9, 12, RATIO, 14, SMALL, 0),
    # What is reserved, and who reserves it.
    ('CUSTOM_METAL', 1, 0, {'reserved': 1}, 1, f'{METAL} (1 of 1)', 0),
    ('MEMORY_MB', 8192, 7680, {'reserved': 512}, 8000,
     f'{MEMORY} (512 of 8,192 MB)', 0),
    ('PCPU', 8, 0, {'reserved': 8}, 4, 'have {} reserved (8 of 8)', 0),
    # What is not reserved would do; less would be too small all the same.
    ('MEMORY_MB', 8192, 7680, {'reserved': 512}, 7680, FULL, 0),
    ('MEMORY_MB', 8192, 7680, {'reserved': 512}, 8193, SMALL, 0),
    ('MEMORY_MB', 8192, 7680, {'reserved': 512, 'max_unit': 4096}, 8000,
     SMALL, 0),
)  # fmt: skip


class ShortagesTestCase(testtools.TestCase):
    """Hosts, and a pool of disks that ``host`` alone shares with another."""

    def setUp(self):
        super().setUp()
        self.build()

    def build(self):
        self.cloud = clouds.Cloud('')
        self.server = self.cloud.server

    def add(self, uuid, name, total, used=0, limits=None, root=None):
        self.server.add(uuid, root, **{name: total})
        self.server.providers[uuid].limits = limits or {}
        if used:
            self.server.hold(f'on {uuid}', **{uuid: {name: used}})

    def explain(self, amount, refused, name='DISK_GB', classes=(), hosts=4):
        """Return why hosts lack an amount, the numbers, what one gets."""
        part = query.Part('resources', f'{name}:{amount}')
        asked = self.cloud.providers, part, [name, *classes], refused, hosts
        found, numbers, free = shortage.explain(*asked)
        self.assertEqual({name}, {one.cause for one in found.values()})
        phrases = {}
        for uuid, one in found.items():
            detail = f' ({one.detail})' if one.detail else ''
            phrases[uuid] = one.phrase + detail
            # An empty host could take it, a small one never.
            lifts = one.phrase == FULL.format(name)
            self.assertIs(lifts, one.lifts, one)
        return phrases, numbers, free

    def test_one_host(self):
        for has, total, used, limits, amount, phrase, most in ROWS:
            name = 'DISK_GB' if phrase == WITHOUT else has
            self.build()
            self.add('host', has, total, used, limits)
            found, numbers, free = self.explain(amount, ['host'], name, [has])
            self.assertEqual({'host': phrase.format(name)}, found)
            self.assertEqual({} if most is None else {'host': most}, free)
            counts = dataclasses.asdict(numbers)
            kind = {FULL: 'full', WITHOUT: 'without'}.get(phrase, 'too_small')
            self.assertEqual(1, counts[kind])

    def test_several_hosts(self):
        """One that passes is large enough, as one that is full."""
        self.add('big', 'DISK_GB', 100, 60)
        self.add('small', 'DISK_GB', 20)
        self.add('none', 'VCPU', 1)
        found, numbers, _ = self.explain(50, ['big', 'small', 'none'])
        self.assertEqual(3, len({*found.values()}))
        expected = conclusion.Capacity('DISK_GB', 50, 2, 1, 1, 1, 0)
        self.assertEqual(expected, numbers)

    def test_equal_capacity_and_other_limits(self):
        for small, large in ('ab', 'ba'):
            self.build()
            self.add(small, 'DISK_GB', 64, 60, {'max_unit': 4})
            self.add(large, 'DISK_GB', 64, 60)
            found, _, free = self.explain(16, ['a', 'b'])
            kinds = {small: SMALL, large: FULL}
            expected = {u: kinds[u].format('DISK_GB') for u in kinds}
            self.assertEqual((expected, {'a': 4, 'b': 4}), (found, free))

    def test_of_many_some_are_asked(self):
        hosts = [f'h{n:02}' for n in range(40)]
        for small, said, unknown in (
            # How many give less; what is said of the last host.
            (0, FULL, 0),
            (1, 'lack {}', 8),
            (39, SMALL, 0),
        ):
            self.build()
            for number, uuid in enumerate(hosts):
                limits = {'max_unit': 4} if number < small else {}
                self.add(uuid, 'DISK_GB', 64, 60, limits)
            self.server.asked.clear()
            found, numbers, _ = self.explain(16, hosts)
            self.assertEqual(said.format('DISK_GB'), found['h39'])
            self.assertEqual(unknown, numbers.unknown)
            asked = '\n'.join(self.server.asked)
            self.assertEqual(32, asked.count('/inventories'))

    def test_of_many_such_hosts_the_first_are_asked(self):
        hosts = [f'h{number:02}' for number in range(33)]
        for uuid in hosts:
            self.add(uuid, 'VCPU', 1)
        for classes, asked, last in (
            ((), 32, 'lack DISK_GB'),
            # They are in the candidates for another class.
            (['VCPU'], 33, 'have no DISK_GB'),
        ):
            part = query.Part('resources', 'DISK_GB:1')
            known = self.cloud.providers, part, classes, hosts, 33
            found, numbers, _ = shortage.explain(*known)
            self.assertEqual(last, found.pop('h32').phrase)
            found = {one.phrase for one in found.values()}
            self.assertEqual({'have no DISK_GB'}, found)
            counts = numbers.without, numbers.unknown
            self.assertEqual((asked, 33 - asked), counts)

    def test_a_disk_that_hosts_share(self):
        """Whether it is in a summary, or full."""
        for used, free in ((455, 45), (500, 0)):
            self.build()
            self.add('host', 'VCPU', 9)
            self.add('pool', 'DISK_GB', 500, used)
            self.server.providers['pool'].traits = {clouds.SHARES}
            found = self.explain(50, ['host'], classes=['VCPU'])
            said = {'host': FULL.format('DISK_GB')}
            self.assertEqual((said, {'host': free}), found[::2])

    def test_what_is_not_shared(self):
        """All CPUs of a host are in use, and its pool has none."""
        self.add('host', 'VCPU', 4, 4)
        self.add('pool', 'DISK_GB', 500)
        self.server.providers['pool'].traits = {clouds.SHARES}
        found = self.explain(2, ['host'], 'VCPU', ['DISK_GB'])
        self.assertEqual({'host': FULL.format('VCPU')}, found[0])
        self.assertEqual({'host': 0}, found[2])

    def test_providers_below_the_host(self):
        self.add('host', 'VCPU', 1)
        self.add('gpu', 'VGPU', 8, 8, root='host')
        found, _, _ = self.explain(2, ['host'], 'VGPU')
        self.assertEqual({'host': FULL.format('VGPU')}, found)
