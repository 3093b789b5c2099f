# SPDX-License-Identifier: Apache-2.0

"""survive and drain on 300 hosts, each with 20 servers of 20 flavors.

Host copy0 has 60. NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are, and
with that how much time the commands may take.
"""

import json
import os
import sys

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.benchmarks import standing

HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '300'))
FLAVORS = 20
#: Seconds of CPU: of drain, and of survive.
SECONDS = (10, 60) if HOSTS <= 300 else (60, 720)
#: 1 GB.
MOST_MIB = 953


class SurviveBenchmark(many_hosts.ManyHostsTestCase):
    hosts = HOSTS

    def setUp(self):
        self.flags(initial_cpu_allocation_ratio=16.0)
        super().setUp()
        image = self.image()
        kinds = [
            self.boot(flavor=flavor, image=image, az='nova:host0')['id']
            for flavor in (
                self._create_flavor(
                    vcpu=1, memory_mb=64 + number, disk=0, ephemeral=0
                )
                for number in range(FLAVORS)
            )
        ]
        standing.copy(
            self,
            kinds,
            [
                standing.Place(number % FLAVORS, index)
                for index in range(HOSTS)
                for number in range(60 if index == 0 else FLAVORS)
            ],
        )
        for kind in kinds:
            self._delete_server({'id': kind})
        self.new = self._create_flavor(
            vcpu=1,
            memory_mb=int(os.environ.get('FLAVOR_MB', 2048)),
            disk=0,
            ephemeral=0,
        )
        self.processes = self.useFixture(
            process.Processes(
                self,
                lines=(
                    'placement_req_required_member_prefix = reservation:\n'
                    'placement_req_default_forbidden_member_prefix = '
                    'reservation:\n'
                ),
            )
        )

    def measure(self, name, *arguments):
        """Run a command; return its document, and seconds of CPU."""
        answer = self.processes.run(name, *arguments, '-f', 'json')
        self.assertEqual(0, answer.status, answer.err)
        document = json.loads(answer.out)
        print(
            f'\n{name}: {document["answer"]["sentence"]} '
            f'{HOSTS} hosts: {answer}',
            file=sys.stderr,
        )
        self.assertLess(answer.memory, MOST_MIB)
        return document, answer.cpu

    def test_drain(self):
        document, cpu = self.measure('drain', 'copy0')
        self.assertEqual(60, len(document['moves']))
        self.assertLess(cpu, SECONDS[0])

    def test_survive(self):
        document, cpu = self.measure('survive')
        # host0 has one server.
        self.assertEqual(HOSTS + 1, len(document['failures']))
        self.assertEqual(
            [], [one for one in document['failures'] if one['without_place']]
        )
        self.assertLess(cpu, SECONDS[1])

    def test_flavor(self):
        """More servers of a flavor, of which fewer fit than are counted."""
        document, cpu = self.measure('survive', '--flavor', self.new)
        print(document['flavors'], file=sys.stderr)
        [flavor] = document['flavors']
        self.assertLess(0, flavor['spare'])
        if not flavor['or_more']:
            self.assertLess(flavor['spare'], flavor['fit'])
        self.assertLess(cpu, 2 * SECONDS[1])
