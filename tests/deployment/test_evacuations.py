# SPDX-License-Identifier: Apache-2.0

"""Two hosts fail, and nova evacuates 64 servers at once to held hosts.

Half of the servers are in anti-affinity groups, one of each host. None is
refused by nova-scheduler: also where the database of the cell takes 20 or 40 s
for the question whether a request is an evacuation, and where it was silent
until a second ago. What the last check of nova-compute refuses is counted when
this module is run by hand, beside plain nova with the same hosts empty::

    python -m tests.deployment.test_evacuations --help
"""

import argparse
import collections
import contextlib
import csv
import sys
import time

import testtools

from tests.deployment import base
from tests.deployment import no_ports
from tests.deployment import slow_cell
from tests.deployment import test_group_race

FAILING = ('host1', 'host2')
HELD = ('host3', 'host4', 'host5')
#: Servers of each host that fails, groups with one of them, and servers that
#: each held host has room for.
SERVERS, GROUPS, ROOM = 32, 16, 24
#: Our question to a cell, a part of it (nova_ext_sched.queries.servers).
QUESTION = 'instances.task_state, migrations.migration_type'
SILENCE = 'silent until a second before'
#: By name, how long our question waits.
CASES = {'': 0, 'after 20 s': 20, 'after 40 s': 40, SILENCE: None}
FILTERS = 'ComputeFilter,ServerGroupAntiAffinityFilter'
HOLDING = {
    ('filter_scheduler', 'enabled_filters'): f'{FILTERS},FailoverHostsFilter',
    ('nova_ext_sched', 'enable_failover_hosts'): 'True',
}
#: By name: whether our filters are loaded, and options.
SETUPS = {
    'nova': (False, {('filter_scheduler', 'enabled_filters'): FILTERS}),
    'held': (True, test_group_race.SETUPS['weigher'][1] | HOLDING),
    'everything': (True, test_group_race.SETUPS['everything'][1] | HOLDING),
}


class Evacuations(base.Deployment):
    """nova-scheduler asks the cell through a server that can be slow."""

    def __init__(self):
        super().__init__(FAILING + HELD, options=no_ports.NoPorts().options())

    def _setUp(self):
        super()._setUp()
        self.cell = slow_cell.SlowCell(self.mariadb.port)
        # Services find it where their own database is.
        self.mariadb.execute(
            'UPDATE nova_api.cell_mappings SET database_connection = '
            "'mysql+pymysql://nova_cell1@{hostname}:{port}/nova_cell1' "
            "WHERE name = 'cell1'"
        )
        self.client(
            *(['limit_servers', host, ROOM] for host in HELD),
            ['aggregate', 'spares', HELD, {'failover': 'true'}],
        )

    def run(self, setup):
        """Run nova-scheduler for the length of a ``with`` statement."""
        ours, options = SETUPS[setup]
        through = f'127.0.0.1:{self.cell.port}'
        database = f'mysql+pymysql://nova_cell0@{through}/nova_cell0'
        return self.scheduler(
            options | {('database', 'connection'): database}, filters=ours
        )

    @contextlib.contextmanager
    def failed(self):
        """Let hosts with servers fail; yield the servers, and one more."""
        [groups] = self.client(['groups', 1, GROUPS])
        calls = [['start_alone', host, SERVERS, groups] for host in FAILING]
        *started, more = self.client(*calls, ['start_alone', FAILING[0], 1])
        servers = [server for on_host in started for server in on_host]
        with contextlib.ExitStack() as stack:
            for host in FAILING:
                process = self.nova.processes[host]
                stack.enter_context(self.processes.frozen(process))
            self.client(*(['force_down', host, True] for host in FAILING))
            yield servers, more
        self.client(
            *(['force_down', host, False] for host in FAILING),
            ['remove', servers + more],
            ['wait_for_room'],
        )

    def evacuate(self, case):
        """Evacuate servers of hosts that fail, in a case of ``CASES``.

        :returns: the end of each, as the client's ``evacuate`` says; and the
            seconds that they took together
        """
        with self.failed() as (servers, more), contextlib.ExitStack() as stack:
            seconds = CASES[case]
            if seconds is None:
                self.be_silent(more)
            elif seconds:
                stack.enter_context(self.cell.holding(QUESTION, seconds))
            begin = time.monotonic()
            [ends] = self.client(['evacuate', servers])
            return ends, time.monotonic() - begin

    def be_silent(self, servers):
        """Let the cell say nothing until one who asked has waited in vain."""
        with self.cell.holding():
            [ends] = self.client(['evacuate', servers])
        if [end for end, _ in ends] != ['error']:
            raise RuntimeError(f'no silence: {ends}')
        time.sleep(1)


class EvacuationsTestCase(testtools.TestCase):
    def test_none_is_refused(self):
        cloud = self.useFixture(Evacuations())
        with cloud.run('held'):
            for case, seconds in CASES.items():
                held = cloud.cell.held
                ends, _ = cloud.evacuate(case)
                self.assertEqual(2 * SERVERS, len(ends))
                faults = [fault for end, fault in ends if end == 'error']
                self.assertEqual([], faults, case)
                # Else nothing was slow.
                if seconds != 0:
                    self.assertGreater(cloud.cell.held, held, case)


def count(ends):
    """Return how many were done, refused by the scheduler and by a host."""
    counts = collections.Counter(end for end, _ in ends)
    for end, fault in ends:
        if end != 'done':
            print(end, fault, file=sys.stderr)
    return tuple(
        counts[end] for end in ('done', 'error', 'failed', 'timed out')
    )


def measure(cloud, arguments):
    """Yield a row for each run."""
    for setup in arguments.setups:
        with cloud.run(setup):
            for case in arguments.cases:
                for _ in range(arguments.runs):
                    ends, seconds = cloud.evacuate(case)
                    yield setup, case, *count(ends), f'{seconds:.0f}'


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.deployment.test_evacuations',
        description='Evacuate 64 servers at once to hosts that are held, or '
        'to the same hosts with plain nova, and print what became of them.',
    )
    parser.add_argument('--runs', type=int, default=3)
    for name, choices in (('--cases', CASES), ('--setups', SETUPS)):
        parser.add_argument(
            name, nargs='+', default=list(choices), choices=list(choices)
        )
    arguments = parser.parse_args()
    write = csv.writer(sys.stdout, lineterminator='\n').writerow
    write(
        (
            'setup',
            'the cell answers',
            'done',
            'refused by nova-scheduler',
            'refused by nova-compute',
            'timed out',
            'seconds',
        )
    )
    with Evacuations() as cloud:
        for row in measure(cloud, arguments):
            write(row)
            sys.stdout.flush()


if __name__ == '__main__':
    main()
