# SPDX-License-Identifier: Apache-2.0

"""explain of a new server on 10,000 hosts in 70 cells, a database each.

Beside it, what nova-scheduler itself takes for such a server.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.benchmarks import split

CELLS = 70
_SCHEDULER = pathlib.Path(__file__).with_name('scheduled.py')


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
        start, cpu, memory, host = self.schedule()
        print(
            f'nova-scheduler: {start:.1f} s of CPU to start, {cpu:.1f} s for '
            f'the request, {memory:.0f} MiB',
            file=sys.stderr,
        )
        # nova draws one of those that weigh the same.
        best = [
            one['host']
            for one in document['order']
            if one['weight'] == document['order'][0]['weight']
        ]
        self.assertIn(host, best)

    def schedule(self):
        """Let nova-scheduler choose a host; return what that took."""
        with tempfile.NamedTemporaryFile() as taken:
            subprocess.run(
                [
                    sys.executable,
                    *('-W', 'ignore'),
                    _SCHEDULER,
                    taken.name,
                    self.processes.folder / 'nova.conf',
                    self.first,
                ],
                check=True,
            )
            return json.load(taken)
