# SPDX-License-Identifier: Apache-2.0

"""Two jobs beside one, on hosts in 20 cells with a database each.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are. Nothing else may run:
the times are those of a clock.
"""

import json
import sys

import fixtures

from tests.benchmarks import mixed
from tests.benchmarks import split
from tests.benchmarks import test_mixed

CELLS = 20
#: Of one job's, on 3,000 hosts: the time, and the CPU.
TIME, CPU = 0.6, 1.05


class JobsBenchmark(mixed.MixedTestCase):
    def _start_processes(self):
        # As many of placement's as there are jobs: else they wait for it.
        self.useFixture(fixtures.EnvironmentVariable('WEB_CONCURRENCY', '2'))
        processes = super()._start_processes()
        split.split(processes.folder, CELLS)
        return processes

    def test_commands(self):
        """One cloud for all: to set it up takes longest."""
        mend = 'mend', '--policy', 'isolation', *test_mixed.ISOLATED
        for words in (
            ('survive',),
            ('audit', *test_mixed.ISOLATED),
            mend,
        ):
            with self.subTest(words[0]):
                self.compare(*words)

    def compare(self, *words):
        """Run a command with one job and with two."""
        one, two = self.measure(*words), self.measure(*words, '--jobs', '2')
        documents = [json.loads(answer.out) for answer in (one, two)]
        for document in documents:
            for name in ('time', 'command'):
                del document[name]
        self.assertEqual(*documents)
        times, cpu = two.seconds / one.seconds, two.cpu / one.cpu
        print(f'{times:.2f} of the time, {cpu:.2f} of CPU', file=sys.stderr)
        # Where there are fewer hosts, what is read once takes a larger part.
        if self.hosts >= 3_000:
            self.assertLess(times, TIME)
            self.assertLess(cpu, CPU)

    def measure(self, *words):
        answer = self.processes.run(*words, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        print(f'\n{words}: {self.hosts} hosts: {answer}', file=sys.stderr)
        return answer
