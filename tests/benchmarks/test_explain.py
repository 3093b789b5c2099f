# SPDX-License-Identifier: Apache-2.0

"""explain in a cloud of 10,000 hosts: time and peak memory.

The time of placement, and that of the databases, is told apart.
"""

import logging
import resource
import time

import fixtures
import sqlalchemy as sa

from nova_ext_sched.cmd.cloud import placement
from tests.benchmarks import many_hosts
from tests.functional import explain


class ExplainTest(many_hosts.ManyHostsTestCase):
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
    }

    def test_many_hosts(self):
        spent = {'placement': 0.0, 'databases': 0.0}
        get = placement.ReportClient.get

        def timed_get(client, *args, **kwargs):
            begin = time.monotonic()
            try:
                return get(client, *args, **kwargs)
            finally:
                spent['placement'] += time.monotonic() - begin

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.cloud.placement.ReportClient.get',
                timed_get,
            )
        )
        self._time_databases(spent)
        # As the command does in a process of its own.
        logging.getLogger('nova').setLevel(logging.ERROR)
        flavor = self.flavor()
        large = self._create_flavor(vcpu=99, memory_mb=64, disk=0)
        for kind, args in (
            ('every host is left', ['--flavor', flavor, '-f', 'csv']),
            ('no host is left', ['--flavor', large, '-f', 'csv']),
            ('of each host', ['--flavor', flavor, '--hosts', '-f', 'csv']),
            ('the document', ['--flavor', large, '-f', 'json']),
        ):
            spent.update(placement=0.0, databases=0.0)
            begin = time.monotonic()
            cpu = time.process_time()
            answer = explain.run(*args)
            total = time.monotonic() - begin
            print(
                f'EXPLAIN {self.hosts} hosts, {kind}: {total:.1f} s, of these '
                f'placement {spent["placement"]:.1f} s and databases '
                f'{spent["databases"]:.1f} s; '
                f'{time.process_time() - cpu:.1f} s of CPU; peak '
                f'{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}'
                f' MiB. {answer.err.strip()}'
            )
            self.assertIn(f'{self.hosts + 1} hosts', answer.err + answer.out)

    def _time_databases(self, spent):
        def before(conn, *_):
            conn.info['begin'] = time.monotonic()

        def after(conn, *_):
            spent['databases'] += time.monotonic() - conn.info['begin']

        # Those of nova; placement's is within the time of placement.
        for name, listener in (
            ('before_cursor_execute', before),
            ('after_cursor_execute', after),
        ):
            sa.event.listen(sa.engine.Engine, name, listener)
            self.addCleanup(sa.event.remove, sa.engine.Engine, name, listener)
