# SPDX-License-Identifier: Apache-2.0

"""survive and drain on 300 hosts, each with 20 servers of 20 flavors.

host copy0 has 60. NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are, and
with that how much time and memory they may take.
"""

import json
import logging
import os
import sys
import time

from nova_ext_sched.cmd.moves import command
from tests.benchmarks import many_hosts
from tests.benchmarks import memory
from tests.benchmarks import standing
from tests.functional import audits
from tests.functional import explain

HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '300'))
FLAVORS = 20
#: Seconds of CPU: of drain, and of survive.
SECONDS = (10, 60) if HOSTS <= 300 else (60, 720)
MOST_MIB = 1024


class SurviveBenchmark(many_hosts.ManyHostsTestCase, audits.AuditTestCase):
    hosts = HOSTS
    weights = {'host0': 1}

    def setUp(self):
        self.flags(initial_cpu_allocation_ratio=16.0)
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        logging.getLogger('nova').setLevel(logging.ERROR)
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

    def measure(self, by, *argv):
        """Run a command; return its document, seconds of CPU, and MiB."""
        before = memory.resident()
        start, cpu = time.monotonic(), time.process_time()
        out, err, _ = explain.call(by, 'x', *argv, '-f', 'json')
        cpu = time.process_time() - cpu
        document = json.loads(out)
        print(
            f'\n{by.__name__}: {document["answer"]["sentence"]} {err} '
            f'{HOSTS} hosts: {time.monotonic() - start:.1f} s, {cpu:.1f} s of '
            f'CPU, {memory.peak():.0f} MiB, {before:.0f} before',
            file=sys.stderr,
        )
        self.assertLess(memory.peak(), MOST_MIB)
        return document, cpu

    def test_drain(self):
        document, cpu = self.measure(command.Drain, 'copy0')
        self.assertEqual(60, len(document['moves']))
        self.assertLess(cpu, SECONDS[0])

    def test_survive(self):
        document, cpu = self.measure(command.Survive)
        # host0 has one server.
        self.assertEqual(HOSTS + 1, len(document['failures']))
        self.assertEqual(
            [], [one for one in document['failures'] if one['without_place']]
        )
        self.assertLess(cpu, SECONDS[1])

    def test_flavor(self):
        """More servers of a flavor, of which fewer fit than are counted."""
        document, cpu = self.measure(command.Survive, '--flavor', self.new)
        print(document['flavors'], file=sys.stderr)
        [flavor] = document['flavors']
        self.assertLess(0, flavor['spare'])
        self.assertLess(flavor['spare'], flavor['fit'])
        self.assertLess(cpu, 2 * SECONDS[1])
