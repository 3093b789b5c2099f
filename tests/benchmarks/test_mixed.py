# SPDX-License-Identifier: Apache-2.0

"""The commands on a cloud as clouds are: 300 hosts and 6,000 servers.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are, and with that how much
time drain, survive and maintain may take, and how much memory each command.
"""

import json
import sys

from tests.benchmarks import mixed

# After it, all servers of the rack's hosts violate a policy.
ISOLATED = ('--aggregate-property', 'rack1', 'trait:CUSTOM_A=required')


class MixedBenchmark(mixed.MixedTestCase):
    def test_commands(self):
        """One cloud for all: to set it up takes longest."""
        for name in (
            'explain',
            'drain',
            'mend',
            'audit',
            'capacity',
            'survive',
            'maintain',
        ):
            with self.subTest(name):
                getattr(self, name)()

    def measure(self, name, *arguments, most=None):
        """Run a command, and return its document.

        :param most: seconds of CPU
        """
        answer = self.processes.run(name, *arguments, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        document = json.loads(answer.out)
        sentence = document.get('answer', {}).get('sentence', '')
        print(
            f'\n{name}: {sentence} {self.hosts} hosts: {answer}',
            file=sys.stderr,
        )
        self.assertEqual([], document.get('faults', []))
        self.assertLess(answer.memory, self.mib[name != 'maintain'])
        if most is not None:
            self.assertLess(answer.cpu, most)
        return document

    def assertPlan(self, number, plan):
        """Check that each of a number of servers has a move, or a reason."""
        stuck = plan['without_place']
        moved = {one['server'] for one in plan['moves']}
        self.assertEqual(number, len(moved | {one['server'] for one in stuck}))
        self.assertEqual(number, len(plan['moves']) + len(stuck))
        for one in stuck:
            # nova moves no server of an affinity group, and all others.
            self.assertEqual('affinity', self.kinds[one['server']], one)
            self.assertIn('ServerGroupAffinityFilter', one['reason'])

    def explain(self):
        for kind in ('plain7', 'numa', 'anti-affinity'):
            server = next(
                uuid for uuid, name in self.kinds.items() if name == kind
            )
            document = self.measure(
                'explain', '--server', server, '--operation', 'live-migrate'
            )
            # All hosts but its own, and those that its group fills.
            self.assertLess(self.hosts // 2, len(document['order']))
            self.assertGreaterEqual(self.hosts, len(document['order']))

    def drain(self):
        plan = self.measure('drain', 'copy0', most=self.seconds[0])
        self.assertPlan(mixed.SERVERS_OF_COPY0, plan)

    def survive(self):
        document = self.measure('survive', most=self.seconds[1])
        self.assertEqual(self.hosts + 1, len(document['failures']))
        for failure in document['failures']:
            number = self.standing[failure['failure']]
            self.assertPlan(number, failure)

    def maintain(self):
        document = self.measure('maintain', most=self.seconds[2])
        empty = [h for one in document['rounds'] for h in one['hosts']]
        kept = [one['host'] for one in document['not_emptied']]
        self.assertEqual(self.hosts + 1, len({*empty, *kept}))
        self.assertEqual(self.hosts + 1, len(empty) + len(kept))

    def audit(self):
        document = self.measure('audit', *ISOLATED)
        self.assertEqual(self.isolated, len(document['findings']))

    def mend(self):
        plan = self.measure('mend', '--policy', 'isolation', *ISOLATED)
        self.assertPlan(self.isolated, plan)

    def capacity(self):
        flavors = [*self.plain, *self.flavors.values()]
        document = self.measure(
            'capacity',
            *(word for one in flavors for word in ('--flavor', one)),
        )
        self.assertEqual(len(flavors), len(document['flavors']))
        for one in document['flavors']:
            self.assertLess(0, one['servers'], one)
