# SPDX-License-Identifier: Apache-2.0

"""capacity of 24 flavors on hosts 75 to 95 % full, each used differently.

The cloud is that of mixed.py. On top of what its servers use, each host has
another amount of CPUs, memory and disk in use, in nova and in placement.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are. With
NOVA_EXT_SCHED_TEST_BEFORE, the folder of an older checkout, that one is
measured first, and must say the same.
"""

import json
import os
import random
import sys

import fixtures

from tests.benchmarks import mixed
from tests.benchmarks import rows

BEFORE = os.environ.get('NOVA_EXT_SCHED_TEST_BEFORE')
# What of a host's resource classes is in use.
LEAST, MOST = 0.75, 0.95
KEY = 'resource_provider_id', 'resource_class_id'


class CapacityTest(mixed.MixedTestCase):
    def _start_processes(self):
        self._fill()
        return super()._start_processes()

    def _fill(self):
        """Let each copy have another use, of consumers of their own."""
        choose = random.Random(7)
        room, used = self.read_room()
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        [row, *_] = rows.read(*self.table('placement.allocations'))
        added = []
        for uuid in self.uuids:
            for class_ in mixed.CLASSES:
                key = providers[uuid], class_
                taken = int(room[key] * choose.uniform(LEAST, MOST))
                own = dict(zip(KEY, key, strict=True))
                added.append(row | own | {'used': taken - used[key]})
        added = [one for one in added if one['used'] > 0]
        rows.insert(*self.table('placement.allocations'), added)
        self.count_use()

    def test_flavors(self):
        flavors = [*self.plain, *self.flavors.values()]
        arguments = [word for one in flavors for word in ('--flavor', one)]
        said = []
        for path in (BEFORE, '') if BEFORE else ('',):
            with fixtures.EnvironmentVariable('PYTHONPATH', path or None):
                answer = self.processes.run(
                    'capacity', *arguments, '--hosts', '-f', 'json'
                )
            self.assertIn(answer.status, (0, 3), answer.err)
            found = json.loads(answer.out)['flavors']
            servers = [one['servers'] for one in found]
            print(
                f'\nCAPACITY {path} {self.hosts} hosts, {len(found)} flavors, '
                f'{sum(servers)} servers: {answer.seconds:.1f} s, '
                f'{answer.cpu:.1f} s of CPU, {answer.memory:.0f} MiB, '
                f'{answer.gets} of placement',
                file=sys.stderr,
            )
            rooms = {room['servers'] for one in found for room in one['rooms']}
            self.assertLess(9, len(rooms))
            said.append(found)
        self.assertEqual(said[0], said[-1])
