# SPDX-License-Identifier: Apache-2.0

"""make-room of ten servers of half a host, where hosts are 75 to 95 % full.

The cloud is that of mixed.py with larger servers, so that each host has other
ones, and another amount of memory in use.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are; of more than 300, ten
minutes and 1 GB are allowed.
"""

import json
import random
import sys

from tests.benchmarks import mixed
from tests.benchmarks import rows

COUNT = 10
# placement's number of the resource class.
MEMORY = 1
# What a host has for servers.
MEMORY_MB = 7680
# Half a host; none of its CPUs may be more.
HALF = {'vcpu': 10, 'memory_mb': MEMORY_MB // 2}
# What of it is in use.
LEAST, MOST = 0.75, 0.95


class MakeRoomBenchmark(mixed.MixedTestCase):
    most = 60

    def setUp(self):
        self._choose = random.Random(7)
        super().setUp()

    def size(self, number):
        return {
            'vcpu': 1 + number * 7 % 9,
            'memory_mb': 96 + 24 * number,
        }

    def take(self, host, names):
        """Yield servers until as much is in use as is drawn for a host."""
        # Not all are as large as the largest.
        part = self._choose.uniform(LEAST, MOST) - 0.03
        left = MEMORY_MB * part
        while left > 0:
            name = next(names)
            plain = name.removeprefix('plain')
            left -= self.size(int(plain))['memory_mb'] if plain != name else 64
            yield name

    def _start_processes(self):
        self.count_use()
        self.large = self.flavor(**HALF)
        return super()._start_processes()

    def test_room(self):
        room, used = self.read_room()
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        full = [
            used[providers[uuid], MEMORY] / room[providers[uuid], MEMORY]
            for uuid in self.uuids
        ]
        self.assertLess(LEAST - 0.05, min(full))
        self.assertLess(max(full), 1)
        seconds, mib = (60, 350) if self.hosts <= 300 else (600, 953)
        answer = self.processes.run(
            *('make-room', '--flavor', self.large, '--count', f'{COUNT}'),
            *('-f', 'json'),
        )
        self.assertEqual(0, answer.status, answer.err)
        plan = json.loads(answer.out)
        print(
            f'\n{plan["answer"]["sentence"]} {self.hosts} hosts, '
            f'{100 * min(full):.0f} to {100 * max(full):.0f} % full: '
            f'{answer}',
            file=sys.stderr,
        )
        self.assertEqual(0, plan['fit_now'])
        self.assertEqual(COUNT, len(plan['room_on']))
        self.assertLess(answer.cpu, seconds)
        self.assertLess(answer.memory, mib)
