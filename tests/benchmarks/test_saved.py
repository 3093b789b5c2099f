# SPDX-License-Identifier: Apache-2.0

"""A cloud of 300 hosts and 6,000 servers in a file, and asked again.

Every look and plan command is asked live and from the file. On SQLite and,
where a server answers, on MySQL or MariaDB.

NOVA_EXT_SCHED_TEST_HOSTS sets how many hosts there are.
"""

import json
import pathlib
import sys

import fixtures

from tests.benchmarks import mixed
from tests.benchmarks import process
from tests.benchmarks import test_mixed
from tests.functional import saved


class SavedMixin:
    """Asks a file of a cloud what the cloud itself is asked.

    :cvar backend: the kind of server that the cloud's databases are on
    """

    backend = None

    def _start_processes(self):
        return super()._start_processes(self.backend)

    def test_save_and_ask(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = folder / 'cloud.json.gz'
        answer = self.processes.run('save', str(path))
        self.assertEqual(0, answer.status, answer.err)
        size = path.stat().st_size / 1e6
        print(
            f'\nsave: {self.hosts} hosts, {size:.1f} MB: {answer}\n'
            f'{answer.out}',
            file=sys.stderr,
        )
        self.assertLess(answer.cpu, 20 * self.hosts / 300)
        self.assertLess(size, 5 * self.hosts / 300)
        server = next(
            uuid for uuid, name in self.kinds.items() if name == 'plain7'
        )
        for argv in (
            ['explain', '--server', server, '--operation', 'live-migrate'],
            ['drain', 'copy0'],
            ['audit'],
            ['capacity'],
            ['mend', '--policy', 'isolation', *test_mixed.ISOLATED],
            ['survive'],
            ['maintain', '--round', '1'],
            ['make-room', '--flavor', self.plain[-1], '--count', '9'],
        ):
            argv += ['-f', 'json']
            live = self.processes.run(*argv)
            again = process.run(*argv, '--from', str(path))
            print(
                f'\n{argv[0]}: {live}\nfrom the file: {again}',
                file=sys.stderr,
            )
            with self.subTest(argv[0]):
                self.assertIn(live.status, (0, 3), live.err)
                self.assertEqual(live.status, again.status, again.err)
                self.assertEqual(
                    *(
                        saved.strip(json.loads(one.out))
                        for one in (live, again)
                    )
                )
            if argv[0] == 'explain':
                self.assertLess(again.cpu, live.cpu + 5 * self.hosts / 300)


class SavedSqliteBenchmark(SavedMixin, mixed.MixedTestCase):
    backend = 'sqlite'


class SavedMysqlBenchmark(SavedMixin, mixed.MixedTestCase):
    backend = 'mysql'
