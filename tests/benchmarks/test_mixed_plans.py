# SPDX-License-Identifier: Apache-2.0

"""What is asked each morning, on the cloud of test_mixed.

A round of maintenance, and how many more servers of a flavor may come beside
what survive alone takes. NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there
are.
"""

import json
import sys

from tests.benchmarks import mixed

#: Seconds of CPU of a round on 300 hosts.
ROUND = 10
#: Hosts of a larger round, and seconds for it.
MANY, MANY_SECONDS = 10, 15


class MixedPlansBenchmark(mixed.MixedTestCase):
    def test_plans(self):
        """One cloud for both: to set it up takes longest."""
        for name in ('ask_rounds', 'ask_flavor'):
            with self.subTest(name):
                getattr(self, name)()

    def ask(self, *arguments):
        """Run a command; return its document, and seconds of CPU."""
        answer = self.processes.run(*arguments, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        print(
            f'\n{" ".join(arguments)}: {self.hosts} hosts: {answer}',
            file=sys.stderr,
        )
        return json.loads(answer.out), answer.cpu

    def ask_rounds(self):
        for number, most in ((1, ROUND), (MANY, MANY_SECONDS)):
            document, cpu = self.ask(
                'maintain', '--round-size', f'{number}', '--round', '1'
            )
            self.assertEqual(number, len(document['to_be_empty']))
            self.assertLess(cpu, most * max(1, self.hosts / 300))

    def ask_flavor(self):
        alone, before = self.ask('survive')
        document, cpu = self.ask('survive', '--flavor', self.plain[0])
        self.assertEqual(alone['failures'], document['failures'])
        [flavor] = document['flavors']
        self.assertLess(0, flavor['spare'])
        # Twice is the goal, and what it takes.
        self.assertLess(cpu, 2.2 * before)
