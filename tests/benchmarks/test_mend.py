# SPDX-License-Identifier: Apache-2.0

"""mend on 300 hosts, 200 servers of which violate a policy.

192 hosts are in 64 isolated aggregates, 36 in 12 reserved ones. The servers
stand in the isolated ones, one in five of them in one of eight anti-affinity
groups. The other 72 hosts have room for 216 of them.
"""

import json
import logging
import sys
import time

from tests.benchmarks import many_hosts
from tests.benchmarks import standing
from tests.functional import plans

HOSTS = 300
VIOLATIONS = 200
GROUPS = 8
SECONDS = 60


class MendBenchmark(many_hosts.ManyHostsTestCase, plans.PlanTestCase):
    hosts = HOSTS
    weights = {'host0': 1}

    def setUp(self):
        super().setUp()
        logging.getLogger('nova').setLevel(logging.ERROR)
        self.flags(server_groups=-1, group='quota')
        groups = [self.create_group() for _ in range(GROUPS)]
        flavor = self.flavor(vcpu=3)
        kinds = [
            self.boot(flavor=flavor, az='nova:host0')['id'],
            self.boot(
                flavor=flavor, hints={'group': groups[0]}, az='nova:host0'
            )['id'],
        ]
        standing.copy(
            self,
            kinds,
            # 64 of each 100 hosts are isolated.
            [
                standing.Place(
                    int(number % 5 == 0),
                    number % 64 + 100 * (number // 64 % 3),
                    (groups[0], groups[number // 5 % GROUPS]),
                )
                for number in range(VIOLATIONS)
            ],
        )
        for kind in kinds:
            self._delete_server({'id': kind})
        for number in range(76):
            self.many(f'isolated{number}', range(number, HOSTS, 100))
            key = 'reservation:a' if number > 63 else 'trait:CUSTOM_A'
            self.set_metadata(f'isolated{number}', {key: 'required'})

    def test_mend(self):
        self.flags(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=True,
            placement_req_default_forbidden_member_prefix=['reservation:'],
        )
        start, cpu = time.monotonic(), time.process_time()
        # Other copies have a row in one table alone.
        _, text = self.run_mend('--policy', 'isolation', '-f', 'json')
        plan = json.loads(text)
        print(
            f'\n{plan["answer"]["sentence"]} {HOSTS} hosts: '
            f'{time.monotonic() - start:.1f} s, '
            f'{time.process_time() - cpu:.1f} s of CPU',
            file=sys.stderr,
        )
        self.assertEqual(VIOLATIONS, len(plan['moves']))
        self.assertLess(time.process_time() - cpu, SECONDS)
