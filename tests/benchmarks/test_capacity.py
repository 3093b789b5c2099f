# SPDX-License-Identifier: Apache-2.0

"""capacity of 20 flavors in a large cloud: time and memory of the process.

Every third host has another use, so that hosts are of many kinds.
"""

import random

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.benchmarks import rows

FLAVORS = 20


class CapacityTest(many_hosts.ManyHostsTestCase):
    def setUp(self):
        super().setUp()
        trait = 'CUSTOM_LICENSED_WINDOWS'
        self._create_trait(trait)
        for number in range(5):
            self.set_metadata(f'rack{number}', {f'trait:{trait}': 'required'})
        # Servers of others: of each host another number of MiB.
        choose = random.Random(7)
        allocations = self.table('placement.allocations')
        [one, *_] = rows.read(*allocations)
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        rows.insert(
            *allocations,
            [
                {
                    'resource_provider_id': id_,
                    'consumer_id': one['consumer_id'],
                    'resource_class_id': class_,
                    'used': choose.randint(1, most),
                }
                for id_ in [*providers.values()][1::3]
                for class_, most in ((0, 9), (1, 5000))
            ],
        )

    def test_many_hosts(self):
        names = [
            self._create_flavor(
                vcpu=1 + number % 4, memory_mb=256 * (1 + number), disk=1
            )
            for number in range(FLAVORS)
        ]
        args = [item for name in names for item in ('--flavor', name)]
        processes = self.useFixture(
            process.Processes(
                self,
                filters=(
                    'ComputeFilter',
                    'NUMATopologyFilter',
                    'IsolatedAggregatesFilter',
                    'AggregateInstanceTypeFilter',
                ),
                lines=(
                    'request_filters = '
                    'isolate_aggregates,reserved_aggregates\n'
                ),
            )
        )
        answer = processes.run('capacity', *args, '-f', 'csv')
        print(
            f'CAPACITY {self.hosts} hosts, {FLAVORS} flavors: '
            f'{answer.seconds:.1f} s, {answer.cpu:.1f} s of CPU; at most '
            f'{answer.memory:.0f} MiB'
        )
        print(answer.out, answer.err)
        self.assertEqual(0, answer.status)
