# SPDX-License-Identifier: Apache-2.0

"""The pages' commands on MySQL or MariaDB, and on PostgreSQL.

A cloud of nova's and placement's real services is copied to a server of each
kind. Every look-only command of the pages is typed there, and answers as on
SQLite. Then nova's tables get years of history: the answers stay, and the
server examines no more rows than before, by its own counters.

Skipped where no server answers.
"""

import json
import re
import shlex

from tests import documentation
from tests import examined
from tests.benchmarks import history
from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.cloud import console
from tests.functional import base
from tests.functional import saved

#: What pages call things, and their name here.
NAMES = {
    # A page takes the name from a variable.
    '$SERVER': 'web',
    'SERVER': 'web',
    '--image linux': '',
}
#: The pages' flavors; nova's fixtures have some.
FLAVORS = 'm1.small m1.large small medium large big windows'.split()
#: Words of commands that are tried elsewhere, or ask no database.
NOT_HERE = ('compare', 'simulate', 'watch', 'complete', 'save')
#: Another file, records, or what a shell does.
_NOT_HERE = re.compile(r'--(from|recorded|done done|config-file)\b|[|>&$]')
_UUID = re.compile(r'\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')
# What differs between two runs.
_TIME = re.compile(r'"(time|command|origin)": .*')

#: Of each of the few servers here; more migrations in all than those last ones
#: of a cell that plans read to say how long moves take.
HISTORY = history.History(deleted=200, moves=200, actions=50)
LONGER = history.History(*(4 * number for number in HISTORY))
#: Rows that a statement may examine in addition: pages that are read ahead,
#: rows of one server. The longer history has thousands.
SLACK = 150
#: What grows on PostgreSQL, which counts by table. nova's schema there has no
#: index of what two tables are asked by: the group of its members, of which
#: the deleted stay until they are archived, and the action of its events. And
#: nova's own statement for the migrations of a host that is to be emptied, a
#: statement of every nova-compute each minute, reads all that ended on it.
GROWS = (
    ('nova_api', 'instance_group_member'),
    ('nova_cell1', 'instance_actions_events'),
    ('nova_cell1', 'migrations'),
    ('nova_cell1', 'migrations_by_dest_host_nodes_and_status_idx'),
    ('nova_cell1', 'migrations_by_host_nodes_and_status_idx'),
)


def find_commands():
    """Return the look-only commands of all pages, as lists of words.

    Of those with the same options the first.
    """
    found = {}
    for path in documentation.pages():
        for _, line in console.lines(path):
            if not line.startswith('nova-ext-sched ') or _NOT_HERE.search(
                line
            ):
                continue
            line = _UUID.sub('web', line)
            for old, new in NAMES.items():
                line = line.replace(old, new)
            words = shlex.split(line)[1:]
            for option in ('--output', '--html'):
                if option in words:
                    place = words.index(option)
                    del words[place : place + 2]
            words = [one for one in words if one != '--map']
            options = [one for one in words if one.startswith('-')]
            if words[0] not in NOT_HERE:
                key = words[0], *options, len(words)
                found.setdefault(key, [*words, '-f', 'json'])
    return [*found.values()]


class PagesMixin:
    """Small cloud with the names of the pages."""

    backend = None
    weights = {
        f'{name}': 100 - number
        for number, name in enumerate(
            (
                *('host1', 'host2', 'host3', 'host4', 'host6'),
                *('compute-71', 'compute-72'),
            )
        )
    }
    hosts = len(weights)
    engine = many_hosts.ManyHostsTestCase.engine

    def setUp(self):
        super().setUp()
        self.flags(service_down_time=86400)
        there = {one['name'] for one in self.admin_api.get_flavors()}
        for name in {*FLAVORS} - there:
            self.flavor(name=name, memory_mb=1024)
        large = self.flavor(memory_mb=1024)
        self.isolate('windows', ['host1', 'host2'], 'CUSTOM_WINDOWS')
        self.aggregate('gpus', ['host3', 'host4'], failure_domain='rack1')
        group = {'group': self.create_group()}
        self.boot(host='host1', name='web', hints=group)
        self.boot(host='host2', hints=group)
        self.boot(host='host3', flavor=large)
        moved = self.boot(host='host4')
        # It waits for its owner: a migration that is under way.
        self.admin_api.post_server_action(
            moved['id'], {'migrate': {'host': 'compute-71'}}
        )
        self._wait_for_state_change(moved, 'VERIFY_RESIZE')
        self.moved = moved['id']
        self.assertNoValidHost(flavor=self.flavor(vcpu=1000))

    def copy(self, backend):
        return self.useFixture(process.Processes(self, backend=backend))

    def ask(self, processes, commands):
        """Return what commands answer, by their words, and check each."""
        conf = ['--config-file', f'{processes.folder / "nova.conf"}']
        answers = saved.ask([[one[0], *conf, *one[1:]] for one in commands])
        found = {}
        for words, answer in zip(commands, answers, strict=True):
            line = ' '.join(words)
            self.assertIn(answer.status, (0, 3), f'{line}\n{answer.err}')
            found[line] = _TIME.sub('', answer.out)
            self.assertEqual([], json.loads(answer.out).get('faults', []))
        return found

    def count(self, past, commands, expected):
        """Return the rows examined for commands beside a history."""
        there = self.copy(self.backend)
        engines = {
            name: engine
            for name, engine in there.engines.items()
            if name != 'placement'
        }
        history.add(engines['nova_api'], engines['nova_cell1'], past)
        with examined.count(engines) as rows:
            self.assertEqual(expected, self.ask(there, commands))
        return rows

    def test_pages(self):
        commands = find_commands()
        expected = self.ask(self.copy('sqlite'), commands)
        before = self.count(HISTORY, commands, expected)
        after = self.count(LONGER, commands, expected)
        self.assertLess(10 * len(commands), before.total())
        grown = examined.find_grown(before, after, SLACK * len(commands))
        if self.backend == 'postgresql':
            grown = {key: grown[key] for key in grown.keys() - {*GROWS}}
        self.assertEqual({}, grown)


class MysqlTestCase(PagesMixin, base.CloudTestCase):
    backend = 'mysql'


class PostgresqlTestCase(PagesMixin, base.CloudTestCase):
    backend = 'postgresql'
