# SPDX-License-Identifier: Apache-2.0

"""What explain says would help of a cloud that is full, and of hostile names.

Further requests that fail are in :mod:`tests.long.test_promises_advice`.
"""

import html
import pathlib
import re

import fixtures

from tests import shell
from tests.functional import advice
from tests.functional import base
from tests.functional import explain
from tests.functional import test_watch

HOSTILE = '$(touch x); touch y'


class FullTestCase(advice.AdviceMixin, base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    allocation_ratio = 1.0

    def test_full(self):
        """VCPU and memory are both used up, on every host."""
        large = self.flavor(vcpu=9, memory_mb=7000)
        small = self.flavor(vcpu=1, memory_mb=500)
        for host in self.weights:
            for _ in range(2):
                self.boot(az=f'nova:{host}', flavor=small)
        free = 'free 320 MEMORY_MB, 1 VCPU on one of host1, host2, host3'
        answer = self.ask(flavor=large)
        [room, another, *_] = answer['advice']
        self.assertEqual(
            (free, 1, 'add a host like host1', 1),
            (room['act'], room['hosts'], another['act'], another['hosts']),
        )
        self.assertNoValidHost(flavor=large)
        # It looks for moves, and nova makes them.
        self.run_commands(room['commands'])
        self._delete_server(self.boot(flavor=large))
        # A further host is one like that.
        self.boot(flavor=large)
        self.assertNoValidHost(flavor=large)
        self._start_compute('host4')
        self.assertEqual('host4', self.host_of(self.boot(flavor=large)))


class HostileNamesTestCase(advice.AdviceMixin, test_watch.WatchTestCase):
    """Operators and members may write any name; a shell reads it as a word.

    nova takes such names for anything but hosts.
    """

    weights = {'host1': 2, 'host2': 1}
    allocation_ratio = 1.0

    def setUp(self):
        super().setUp()
        self.paste = self.useFixture(shell.Shell()).paste

    def list_everywhere(self, *args):
        """Return the commands of the document; text and page have the same."""
        document = explain.read(*args).document['answer']['advice']
        commands = [line for one in document for line in one['commands']]
        page = self.useFixture(fixtures.TempDir()).join('page.html')
        text = explain.run(*args, '--html', page).out
        self.assertEqual(
            commands,
            list_commands(text),
        )
        found = re.findall(
            '<code>(.*?)</code>', pathlib.Path(page).read_text(), re.DOTALL
        )
        self.assertEqual(
            commands,
            [
                html.unescape(one)
                for one in found
                if html.unescape(one).startswith(shell.PROGRAMS)
            ],
        )
        return commands

    def test_what_operators_write(self):
        for number, name in enumerate((HOSTILE, '--help', 'x; rm -rf ~')):
            self.isolate(name, self.weights, f'CUSTOM_{number}')
        commands = self.list_everywhere('--flavor', self.plain_flavor, '--all')
        self.assertEqual(
            [
                ['aggregate', 'remove', 'host', f'{id_}', host]
                for id_ in self.aggregate_ids.values()
                for host in self.weights
            ],
            [*map(self.paste, commands)],
        )
        # Nobody runs these unread.
        self.assertNoValidHost()
        [record] = self.recorded()
        self.assertEqual(
            [[]],
            [
                one['commands']
                for one in record['explanation']['answer']['advice']
            ],
        )

    def test_what_members_write(self):
        for host in self.weights:
            self.boot(az=f'nova:{host}', flavor=self.flavor(vcpu=10))
        words = [
            f'--flavor={self.plain_flavor}',
            '--count=1',
            f'--image-property=os_distro={HOSTILE}',
            f'--hint={HOSTILE}=--help',
        ]
        args = [one.replace('--count', '--num-instances') for one in words]
        [line] = self.list_everywhere(*args)
        self.assertEqual(['make-room', *words], self.paste(line))
        self.assertNoValidHost(hints={HOSTILE: '--help'})
        # What a member wrote is in no command of a record.
        [record] = self.recorded()
        advised = record['explanation']['answer']['advice']
        self.assertNotEqual([], advised)
        self.assertEqual(
            [], [line for one in advised for line in one['commands']]
        )

    def test_what_a_record_has(self):
        """A repair has its command there, beside what anybody wrote."""
        self.isolate(HOSTILE, [], 'CUSTOM_0')
        for host in self.weights:
            reason = f'AUTO: {HOSTILE}'
            self.set_service(host, status='disabled', disabled_reason=reason)
        server = self.assertNoValidHost(
            flavor=self.flavor(name='--help', hostile=HOSTILE),
            hints={HOSTILE: '--help'},
            image=self.image(os_distro=HOSTILE),
        )
        [record] = self.recorded()
        answer = record['explanation']['answer']
        commands = [one for row in answer['advice'] for one in row['commands']]
        self.assertEqual(
            [
                ['compute', 'service', 'set', '--enable', one, 'nova-compute']
                for one in self.weights
            ],
            [*map(self.paste, commands)],
        )
        shown = explain.run(
            *('--recorded', server['id'], '--records', str(self.records))
        ).out
        self.assertEqual(commands, list_commands(shown))
        # No other sentence has a command beside words of theirs.
        for said in list_texts(answer):
            if HOSTILE in said:
                self.assertNotRegex(said, '|'.join(shell.PROGRAMS))


def list_commands(text):
    lines = map(str.strip, text.splitlines())
    return [one for one in lines if one.startswith(shell.PROGRAMS)]


def list_texts(value):
    """Yield all texts of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from list_texts(one)
