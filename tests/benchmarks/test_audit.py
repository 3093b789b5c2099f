# SPDX-License-Identifier: Apache-2.0

"""The audit of 10,000 servers on 200 hosts: time, and what memory it keeps.

Servers are booted on a real nova once for each kind, and their rows copied.
Every policy is on; one server in five belongs to one of 40 anti-affinity
groups. The databases are SQLite, in memory.
"""

import gc
import itertools
import random
import sys
import time
import tracemalloc
from unittest import mock

from nova.scheduler.client import report

from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.cloud import snapshot
from tests.benchmarks import many_hosts
from tests.benchmarks import standing
from tests.functional import audits

GROUPS = 40

# Megabytes that thousands of servers may add to what is alive.
GROWTH = 1
SECONDS = 60


class AuditBenchmark(many_hosts.ManyHostsTestCase, audits.AuditTestCase):
    hosts = 200
    number = 10_000
    weights = {'host0': 1}

    def setUp(self):
        super().setUp()
        self.flags(server_groups=-1, group='quota')
        chooser = random.Random(7)
        self._create_trait('CUSTOM_A')
        self.add_traits('host0', 'CUSTOM_A')
        groups = [self.create_group(2) for _ in range(GROUPS)]
        kinds = [
            self.boot(**kind)['id']
            for kind in (
                {},
                {'flavor': self.flavor(specs={'trait:CUSTOM_A': 'required'})},
                {'flavor': self.flavor(ssd='~')},
                {},
                {'hints': {'group': groups[0]}},
            )
        ]
        for number in range(40):
            metadata = ({}, {'trait:CUSTOM_A': 'required'}, {'ssd': 'true'})
            self.many(
                f'aggregate{number}',
                chooser.sample(range(self.hosts), 10),
                **metadata[number % 3],
            )
        standing.copy(
            self,
            kinds,
            # One more is of ManyHostsTestCase.
            [
                standing.Place(
                    number % len(kinds),
                    chooser.randrange(self.hosts),
                    (groups[0], chooser.choice(groups)),
                )
                for number in range(self.number - len(kinds) - 1)
            ],
        )

    def audit_hosts(self, hosts=None, advance=lambda: None):
        """Audit, keep no finding, and return the auditor and the seconds."""
        start = time.monotonic()
        auditing = auditor.Auditor(snapshot.Snapshot(), hosts=hosts)
        auditing.count()
        for _ in auditing.judge(advance):
            pass
        auditing.judge_hold()
        return auditing, time.monotonic() - start

    def trace_memory(self, hosts):
        """Return megabytes alive after each 500 servers, garbage collected.

        Python leaves circular garbage until it is a quarter of the heap; that
        share does not grow with the servers.
        """
        alive = []

        def advance():
            if next(steps) % 500 == 0:
                gc.collect()
                alive.append(tracemalloc.get_traced_memory()[0] / 2**20)

        steps = itertools.count(1)
        gc.collect()
        tracemalloc.start()
        try:
            self.audit_hosts(hosts, advance)
        finally:
            tracemalloc.stop()
        return alive

    def test_ten_thousand(self):
        cpu = time.process_time()
        whole, seconds = self.audit_hosts()
        cpu = time.process_time() - cpu
        alive = self.trace_memory({f'copy{number}' for number in range(80)})
        print(
            f'\n{whole.totals.servers} servers: {cpu:.1f} s of the processor '
            f'({seconds:.1f} s on the clock), {whole.totals.violating} found. '
            f'Alive after each 500 servers: '
            + ', '.join(f'{megabytes:.1f}' for megabytes in alive)
            + ' MB',
            file=sys.stderr,
        )
        self.assertEqual(self.number, whole.totals.servers)
        self.assertGreater(whole.totals.violating, self.number / 20)
        self.assertLess(alive[-1], alive[0] + GROWTH)
        # The databases are in this process. What other processes take of the
        # machine is no matter of the audit.
        self.assertLess(cpu, SECONDS)


class FailoverAuditBenchmark(AuditBenchmark):
    """What the policy of failover hosts adds: 300 hosts, 20 servers each."""

    hosts = 300
    number = 6_000
    host_filters = (
        *audits.AuditTestCase.host_filters,
        'FailoverHostsFilter',
    )
    # Of the base.
    test_ten_thousand = None

    def count_requests(self):
        """Audit all; return requests to placement and seconds of CPU."""
        get, asked = report.SchedulerReportClient.get, []

        def count(client, url, *args, **kwargs):
            asked.append(url)
            return get(client, url, *args, **kwargs)

        cpu = time.process_time()
        with mock.patch.object(report.SchedulerReportClient, 'get', count):
            self.audit_hosts()
        return len(asked), time.process_time() - cpu

    def test_policy(self):
        self.many('spares', range(10), failover='true')
        # What is read once, and kept.
        self.audit_hosts({'copy0'})
        without = self.count_requests()
        self.flags(enable_failover_hosts=True, group='nova_ext_sched')
        asked, cpu = self.count_requests()
        print(
            f'\n{self.hosts} hosts: {without[0]} requests to placement and '
            f'{without[1]:.1f} s of CPU; with the policy {asked} and '
            f'{cpu:.1f} s',
            file=sys.stderr,
        )
        self.assertEqual(0, without[0])
        # Inventories and traits of each host, and few of all.
        self.assertLess(asked, 2 * self.hosts + 20)
