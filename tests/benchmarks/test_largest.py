# SPDX-License-Identifier: Apache-2.0

"""The commands on a cloud as the largest are: hosts in 40 cells.

Set NOVA_EXT_SCHED_TEST_HOSTS to 10000, which have 200,000 servers. It checks
that each command answers of all hosts, and prints what it took.
"""

import json
import sys

import fixtures

from tests.benchmarks import mixed
from tests.benchmarks import split
from tests.benchmarks import test_mixed

CELLS = 40
COUNT = 10
# Nearly a whole host: none has as much left.
LARGE = {'vcpu': 10, 'memory_mb': 7000}


class LargestBenchmark(mixed.MixedTestCase):
    def _start_processes(self):
        # What a command waits for is not what it takes.
        self.useFixture(fixtures.EnvironmentVariable('WEB_CONCURRENCY', '2'))
        self.count_use()
        self.large = self.flavor(**LARGE)
        processes = super()._start_processes()
        split.split(processes.folder, CELLS)
        return processes

    def test_commands(self):
        """One cloud for all: to set it up takes longest."""
        for name in (
            'explain',
            'capacity',
            'audit',
            'make_room',
            'maintain',
            'survive',
        ):
            with self.subTest(name):
                getattr(self, name)()

    def measure(self, *arguments):
        """Run a command, and return its document."""
        answer = self.processes.run(*arguments, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        document = json.loads(answer.out)
        sentence = document.get('answer', {}).get('sentence', '')
        print(
            f'\n{arguments[0]}: {sentence} {self.hosts} hosts in {CELLS} '
            f'cells: {answer}',
            file=sys.stderr,
        )
        self.assertEqual([], document.get('faults', []))
        return document

    def explain(self):
        server = next(
            uuid for uuid, kind in self.kinds.items() if kind == 'plain7'
        )
        document = self.measure(
            'explain', '--server', server, '--operation', 'live-migrate'
        )
        # A server stays in its cell.
        self.assertLess(self.hosts // CELLS // 2, len(document['order']))

    def capacity(self):
        document = self.measure('capacity', '--flavor', self.plain[7])
        self.assertLess(0, document['flavors'][0]['servers'])

    def audit(self):
        document = self.measure('audit', *test_mixed.ISOLATED)
        self.assertEqual(self.isolated, len(document['findings']))

    def make_room(self):
        plan = self.measure(
            *('make-room', '--flavor', self.large, '--count', f'{COUNT}')
        )
        self.assertEqual(0, plan['fit_now'])
        self.assertEqual(COUNT, len(plan['room_on']))

    def maintain(self):
        document = self.measure('maintain', '--round', '1')
        self.assertEqual(1, len(document['to_be_empty']))

    def survive(self):
        document = self.measure('survive')
        self.assertEqual(self.hosts + 1, len(document['failures']))
