# SPDX-License-Identifier: Apache-2.0

"""The commands beside years of history, on MySQL or MariaDB and PostgreSQL.

300 hosts and 6,000 living servers; each has 10 deleted ones that nobody
archived, 20 migrations that have ended, and 20 actions, which makes 180,000
migrations and actions. NOVA_EXT_SCHED_TEST_HISTORY multiplies that: 7 make
400,000 deleted servers. Prints the rows that the server examined, its longest
statement, and how many connections and requests to placement there were.

Skipped where no server answers.
"""

import json
import os
import sys

from tests import examined
from tests.benchmarks import history
from tests.benchmarks import mixed
from tests.functional import saved
from tests.long.test_compare_databases import GROWS

TIMES = int(os.environ.get('NOVA_EXT_SCHED_TEST_HISTORY', '1'))
HISTORY = history.History(10 * TIMES, 20 * TIMES, 20 * TIMES)
#: Rows that a statement may examine in addition: the last migrations, of which
#: plans read how long moves take; pages that are read ahead.
SLACK = 2000
#: nova reads all members that a server group ever had, and which of them are
#: on hosts.
MEMBERS = (
    'instance_group_member',
    'ORDER BY instances.created_at DESC, instances.id DESC',
)
#: What nova reads with them, where a server tells tables, not statements.
OF_MEMBERS = 'nova_cell1', 'instance_system_metadata'
COMMANDS = (
    ('explain', '--operation', 'live-migrate', '--server'),
    ('drain', 'copy0'),
    ('audit',),
    ('capacity',),
    ('mend',),
    ('survive',),
    ('maintain', '--round', '1'),
)


class HistoryMixin:
    """Asks every command beside no history, and beside it.

    :cvar backend: the kind of server
    """

    backend = None

    def _start_processes(self):
        return super()._start_processes(self.backend)

    def measure(self, arguments):
        """Run a command; return its document and the rows examined."""
        with examined.count(self.engines) as rows:
            answer = self.processes.run(*arguments, '-f', 'json')
        self.assertIn(answer.status, (0, 3), answer.err)
        seconds, statement = rows.longest
        print(
            f'\n{arguments[0]}: {answer}; {rows.total()} rows examined, '
            f'{rows.connections} connections, {seconds:.3f} s at most: '
            f'{statement[:300]}',
            file=sys.stderr,
        )
        return saved.strip(json.loads(answer.out)), rows, answer.cpu

    def test_commands(self):
        self.engines = dict(self.processes.engines)
        # Placement has no history; but without statistics of all that was
        # written at once, MariaDB may take half a second for a request.
        history.analyze(self.engines.pop('placement'))
        server = next(
            uuid for uuid, kind in self.kinds.items() if kind == 'plain7'
        )
        large = 'make-room', '--flavor', self.plain[-1], '--count', '9'
        commands = [[*COMMANDS[0], server], *COMMANDS[1:], large]
        for engine in self.engines.values():
            history.analyze(engine)
        before = [self.measure(command) for command in commands]
        api, cell = (self.engines[f'nova_{name}'] for name in ('api', 'cell1'))
        history.add(api, cell, HISTORY)
        for command, (document, rows, cpu) in zip(
            commands, before, strict=True
        ):
            with self.subTest(command[0]):
                again, more, taken = self.measure(command)
                self.assertEqual(document, again)
                self.assertEqual({}, self.find_grown(rows, more))
                self.assertLess(taken, 1.2 * cpu + 1)

    def find_grown(self, rows, more):
        """Return what examined more rows, but for what nova itself asks.

        Beside deleted servers PostgreSQL reads the living ones by an index,
        which it used seldom or never when the table had no others: several
        times, but never as many as there are deleted ones.
        """
        known = ()
        is_postgresql = self.backend == 'postgresql'
        if is_postgresql:
            known = *GROWS, OF_MEMBERS
        deleted = HISTORY.deleted * sum(self.standing.values())
        grown = examined.find_grown(rows, more, SLACK)
        return {
            key: (before, after)
            for key, (before, after) in grown.items()
            if key not in known
            and not any(one in key[1] for one in MEMBERS)
            and (after - before > deleted or (before and not is_postgresql))
        }


class HistoryMysqlBenchmark(HistoryMixin, mixed.MixedTestCase):
    backend = 'mysql'


class HistoryPostgresqlBenchmark(HistoryMixin, mixed.MixedTestCase):
    backend = 'postgresql'
