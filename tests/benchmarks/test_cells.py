# SPDX-License-Identifier: Apache-2.0

"""explain of a new server on 10,000 hosts in 70 cells, a database each.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are.
"""

import json
import sys

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.benchmarks import split

CELLS = 70


class CellsBenchmark(many_hosts.ManyHostsTestCase):
    servers_of_a_host = 20

    def setUp(self):
        super().setUp()
        self.processes = self.useFixture(process.Processes(self))
        split.split(self.processes.folder, CELLS)

    def test_explain(self):
        answer = self.processes.run(
            *('explain', '--flavor', self.plain_flavor, '-f', 'json')
        )
        self.assertEqual(0, answer.status, answer.err)
        document = json.loads(answer.out)
        print(
            f'\nexplain: {document["answer"]["sentence"]} {self.hosts} hosts '
            f'in {CELLS} cells, {len(self.servers)} servers: {answer}',
            file=sys.stderr,
        )
        self.assertEqual([], document['faults'])
        self.assertEqual(self.hosts + 1, len(document['order']))
