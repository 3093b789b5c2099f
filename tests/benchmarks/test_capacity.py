# SPDX-License-Identifier: Apache-2.0

"""capacity of 24 flavors on hosts that are 75 to 95 % full, each otherwise.

The cloud is that of mixed.py. On top of what its servers use, each host has
another amount of CPUs, memory and disk in use, in nova and in placement.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are. With
NOVA_EXT_SCHED_TEST_BEFORE, the folder of an older checkout, that one is
measured first, and must say the same.
"""

import collections
import json
import os
import random
import sys

import fixtures
import sqlalchemy as sa

from tests.benchmarks import mixed
from tests.benchmarks import rows

BEFORE = os.environ.get('NOVA_EXT_SCHED_TEST_BEFORE')
# What of a host's resource classes is in use.
LEAST, MOST = 0.75, 0.95
# placement's numbers of the resource classes, and what nova calls their use.
CLASSES = {
    0: ('vcpus', 'vcpus_used', None),
    1: ('memory_mb', 'memory_mb_used', 'free_ram_mb'),
    2: ('local_gb', 'local_gb_used', 'free_disk_gb'),
}


class CapacityTest(mixed.MixedTestCase):
    def _start_processes(self):
        self._fill()
        return super()._start_processes()

    def _fill(self):
        """Let each copy have another use, of consumers of their own."""
        choose = random.Random(7)
        inventories = collections.defaultdict(dict)
        for row in rows.read(*self.table('placement.inventories')):
            room = (row['total'] - row['reserved']) * row['allocation_ratio']
            provider = inventories[row['resource_provider_id']]
            provider[row['resource_class_id']] = int(room)
        used = collections.Counter()
        found = rows.read(*self.table('placement.allocations'))
        for row in found:
            key = row['resource_provider_id'], row['resource_class_id']
            used[key] += row['used']
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        engine, computes = self.table('nova_cell1.compute_nodes')
        [node] = rows.read(engine, computes, host='host0')
        added = []
        with engine.begin() as connection:
            for uuid in self.uuids:
                id_ = providers[uuid]
                values = {}
                for class_, (total, use, free) in CLASSES.items():
                    room = inventories[id_][class_]
                    taken = int(room * choose.uniform(LEAST, MOST))
                    more = max(taken - used[id_, class_], 0)
                    if more:
                        added.append(
                            found[0]
                            | {
                                'resource_provider_id': id_,
                                'resource_class_id': class_,
                                'used': more,
                            }
                        )
                    values[use] = used[id_, class_] + more
                    if free:
                        values[free] = node[total] - values[use]
                connection.execute(
                    sa.update(computes)
                    .where(computes.c.uuid == uuid)
                    .values(values)
                )
        rows.insert(*self.table('placement.allocations'), added)

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
