# SPDX-License-Identifier: Apache-2.0

"""What acts that help take of a command's time, on 300 hosts without room.

Each command runs with acts and without, in turn, and with another revision
where NOVA_EXT_SCHED_TEST_BESIDE is the Python of an environment that has one.
Seconds are of CPU, user and system, the least of NOVA_EXT_SCHED_TEST_ROUNDS
runs (2 by default).
"""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import sqlalchemy as sa

from tests.benchmarks import counted
from tests.benchmarks import many_hosts
from tests.benchmarks import mixed
from tests.benchmarks import rows

BESIDE = os.environ.get('NOVA_EXT_SCHED_TEST_BESIDE')
ROUNDS = int(os.environ.get('NOVA_EXT_SCHED_TEST_ROUNDS', '2'))
ONLY = os.environ.get('NOVA_EXT_SCHED_TEST_ONLY', '').split()
#: placement's number of the resource class.
MEMORY = 1
#: One host of so many has room for one server.
ROOMY = 25
#: MiB of the servers that nova refuses.
WANTED_MB = 200
# After these, hosts of 50 racks are isolated and full; others are full alone.
CLOSED = [
    word
    for number in range(0, many_hosts.RACKS, 2)
    for word in (
        '--aggregate-property',
        f'rack{number}',
        f'trait:CUSTOM_R{number}=required',
    )
]
SPECS = {
    'pci': {'pci_passthrough:alias': 'nic:1'},
    'numa2': {'hw:numa_nodes': 2},
    'dedicated': {'hw:cpu_policy': 'dedicated'},
}
#: What acts may take of explain, and of a refusal that watch records.
EXPLAIN, WATCH = 1.0, 0.2
#: How much longer a command may take for them.
PART = 1.1


class ActsBenchmark(mixed.MixedTestCase):
    def _start_processes(self):
        self._fill()
        self.refused = self.flavor(memory_mb=WANTED_MB)
        server = self.boot(flavor=self.refused, expected_state='ERROR')
        self.original = rows.read_refused(self.table, server['id'])
        return super()._start_processes()

    def _fill(self):
        """Leave memory on few hosts, in placement and in nova's records."""
        _, used = self.read_room()
        engine, inventories = self.table('placement.inventories')
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        hosts = [providers[uuid] for uuid in self.uuids]
        real = (set(providers.values()) - set(hosts)).pop()
        with engine.begin() as connection:
            for number, provider in enumerate([real, *hosts]):
                room = 0 if number % ROOMY else 80
                connection.execute(
                    sa.update(inventories)
                    .where(
                        inventories.c.resource_provider_id == provider,
                        inventories.c.resource_class_id == MEMORY,
                    )
                    .values(
                        total=used[provider, MEMORY] + room,
                        max_unit=used[provider, MEMORY] + room,
                        reserved=0,
                        allocation_ratio=1.0,
                    )
                )
        self.count_use()

    def test_commands(self):
        """One cloud for all: to set it up takes longest."""
        of_group = next(
            uuid
            for uuid, name in self.kinds.items()
            if name == 'anti-affinity'
        )
        flavors = {'full': self.refused} | {
            kind: self.flavor(
                vcpu=1 + (kind == 'numa2'), memory_mb=WANTED_MB, specs=specs
            )
            for kind, specs in SPECS.items()
        }
        questions = {
            f'explain {kind}': ('explain', '--flavor', flavor)
            for kind, flavor in flavors.items()
        } | {
            'explain closed': ('explain', '--flavor', self.refused, *CLOSED),
            'explain group': (
                *('explain', '--server', of_group),
                *('--operation', 'live-migrate'),
            ),
        }
        plans = {
            'drain': ('drain', 'copy0'),
            'mend': (
                *('mend', '--policy', 'isolation'),
                *('--aggregate-property', 'rack1', 'trait:CUSTOM_A=required'),
            ),
            # All hosts would take minutes: nothing there has a place.
            'make-room': (
                *('make-room', '--flavor', self.refused, '--host', 'copy1'),
            ),
            'survive': ('survive',),
            'maintain': ('maintain',),
        }
        self.over = []
        for name, words in (questions | plans).items():
            if not ONLY or name.split()[0] in ONLY:
                taken = self.measure(name, words)
                most = taken['without'] + EXPLAIN
                if name in plans:
                    most = PART * taken['without']
                self.check(name, taken['with'], most)
        if not ONLY or 'watch' in ONLY:
            self.watch()
        self.assertEqual([], self.over)

    def check(self, name, seconds, most):
        """Note what takes too long; the others are measured all the same."""
        if seconds > most:
            self.over.append(f'{name}: {seconds:.2f} s, at most {most:.2f}')

    def measure(self, name, words):
        """Run a command in each way; return the seconds by the ways."""
        ways = {'with': {}, 'without': {'without_acts': True}}
        if BESIDE:
            ways['beside'] = {'python': BESIDE}
        taken = {way: [] for way in ways}
        sentence = ''
        for _ in range(ROUNDS):
            for way, how in ways.items():
                answer = self.processes.run(*words, '-f', 'json', **how)
                self.assertIn(answer.status, (0, 3), answer.err)
                taken[way].append(answer.cpu)
                if way == 'with':
                    sentence = json.loads(answer.out)['answer']['sentence']
                    self._say_acts(json.loads(answer.out))
        least = {way: min(seconds) for way, seconds in taken.items()}
        say(f'{name}: {sentence} {taken}')
        return least

    def _say_acts(self, document):
        advice = document['answer'].get('advice', [])
        stuck = [*document.get('without_place', [])]
        for one in document.get('failures', []):
            stuck += one['without_place']
        for one in document.get('not_emptied', []):
            stuck += one['without_place']
        helped = sum(bool(one['would_help']) for one in stuck)
        tried = sum(one['hosts'] is not None for one in advice)
        say(
            f'  {len(advice)} acts, {tried} tried; {len(stuck)} servers '
            f'without a place, {helped} with acts'
        )
        for one in advice:
            say(f'    {one["act"][:100]}: {one["hosts"]}')

    def watch(self):
        """Refuse one server after the other, and then several at once."""
        self._tables = {}
        taken = {}
        for number, way in enumerate(('with', 'without') * ROUNDS):
            watcher = Watcher(self.processes.folder, number, way)
            self.addCleanup(watcher.end)
            amounts = iter(range(WANTED_MB + 1 + 100 * number, 100_000))
            watcher.wait(0)
            for count in (1, 1, 1, 1, 1, 10):
                before, records = watcher.spent(), watcher.count()
                self._refuse([next(amounts) for _ in range(count)])
                watcher.wait(records + count)
                # It ends a record before it goes on.
                seconds = watcher.spent() - before
                key = way, 'alone' if count == 1 else 'waiting'
                taken.setdefault(key, []).append(seconds / count)
            tried = [
                [
                    act['hosts'] is not None
                    for act in record['explanation']['answer']['advice']
                ]
                for record in watcher.read()
            ]
            say(f'watch {way}: {tried}')
            watcher.end()
        for key, seconds in taken.items():
            say(f'watch {key}: {[round(one, 3) for one in seconds]}')
        middle = {
            key: sorted(one)[len(one) // 2] for key, one in taken.items()
        }
        # Of those that wait, the last one waits for none.
        for how, most in (('alone', WATCH), ('waiting', WATCH / 4)):
            self.check(
                f'watch {how}',
                middle['with', how],
                middle['without', how] + most,
            )

    def _refuse(self, amounts):
        old = f'"memory_mb": {WANTED_MB}'
        rows.copy_refused(
            self._find,
            self.original,
            [(old, f'"memory_mb": {amount}') for amount in amounts],
        )

    def _find(self, name):
        """Return the engine and the table in the copies of databases."""
        database, short = name.split('.')
        if database not in self._tables:
            path = self.processes.folder / f'{database}.db'
            engine = sa.create_engine(
                f'sqlite:///{path}', connect_args={'timeout': 60}
            )
            self.addCleanup(engine.dispose)
            self._tables[database] = engine
        return self._tables[database], many_hosts.TABLES[database][short]


class Watcher:
    """``nova-ext-sched watch`` as a process.

    :param folder: has nova.conf
    :param number: of the watcher; each has records of its own
    :param way: ``with`` acts or ``without``
    """

    def __init__(self, folder, number, way):
        self._records = folder / f'records{number}'
        self._asked = folder / f'asked{number}'
        self._log = folder / f'log{number}'
        environment = {counted.WITHOUT_ACTS: '1'} if way != 'with' else {}
        with open(self._log, 'w') as log:
            self._child = subprocess.Popen(
                [
                    *(sys.executable, counted.__file__, self._asked),
                    *('watch', '--config-file', folder / 'nova.conf'),
                    *('--records', self._records, '--interval', '1'),
                    *('--explanations-per-minute', '1000'),
                ],
                env=os.environ | environment,
                stdout=log,
                stderr=log,
            )
        self._process = psutil.Process(self._child.pid)

    def count(self):
        return len(self.read())

    def read(self):
        if not self._records.exists():
            return []
        text = self._records.read_text()
        return [json.loads(line) for line in text.splitlines()]

    def spent(self):
        times = self._process.cpu_times()
        return times.user + times.system

    def wait(self, count):
        """Wait until it has written so many records, and a turn is over."""
        state = self._records.with_name(f'{self._records.name}.state')
        while self.count() < count or not state.exists():
            if self._child.poll() is not None:
                raise RuntimeError(self._log.read_text()[-2000:])
            time.sleep(0.1)
        time.sleep(1)

    def end(self):
        self._child.send_signal(signal.SIGTERM)
        self._child.wait()


def say(text):
    print(text, file=sys.stderr, flush=True)
