# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib
import subprocess
import sys

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import completion

NAMES = {
    'HOST': ['cmp-1', 'cmp-2', 'gpu-1'],
    'AGGREGATE': ['windows', 'gpu $(id)', 'a\nb'],
    'FLAVOR': ['m1.small', 'm1.large'],
    'POLICY': ['isolation', 'reservation'],
    'VALUE': ['rack:1', 'rack:2'],
}
# bash, as it asks at a Tab.
ASK = r"""
source /dev/stdin <<< "$SCRIPT"
if [ "$OTHER" ]; then _openstack() { COMPREPLY=(theirs); }; fi
COMP_LINE=$LINE COMP_POINT=${#LINE}
%s
printf '%%s\n' "${COMPREPLY[@]}"
"""


class CompletionTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.home = self.useFixture(fixtures.TempDir()).path
        self.set('XDG_CACHE_HOME', self.home)
        self.set('OS_CLOUD', 'lab')
        completion.keep(NAMES)
        completion.keep({'<aggregate>': ['fast', 'slow']}, 'lab')

    def set(self, name, value):
        self.useFixture(fixtures.EnvironmentVariable(name, value))


@ddt.ddt
class CompleteTestCase(CompletionTestCase):
    @ddt.data(
        # Commands, options, and their values.
        ('nova-ext-sched dr', 'drain'),
        ('/usr/bin/nova-ext-sched dr', 'drain'),
        ('nova-ext-sched drain --dom', '--domain'),
        ('nova-ext-sched drain --color ', 'always auto never'),
        ('nova-ext-sched drain --color=al', 'always'),
        ('nova-ext-sched explain --operation ev', 'evacuate'),
        # Hosts as arguments, once more, and as values.
        ('nova-ext-sched drain ', 'cmp-1 cmp-2 gpu-1'),
        ('nova-ext-sched drain cmp-1 --all g', 'gpu-1'),
        ('nova-ext-sched drain --host cm', 'cmp-1 cmp-2'),
        ('nova-ext-sched mend --host=cmp-2', 'cmp-2'),
        ('nova-ext-sched drain --not-to w', 'windows'),
        # A name is typed as the shell takes it; one that no line can hold is
        # left out.
        ('nova-ext-sched mend --aggregate ', "'gpu $(id)' windows"),
        # The first of two values, and the second.
        ('nova-ext-sched audit --aggregate-host win', 'windows'),
        ('nova-ext-sched audit --aggregate-host windows cmp-2', 'cmp-2'),
        ('nova-ext-sched capacity --flavor m1.s', 'm1.small'),
        ('nova-ext-sched capacity m1.small m1.l', 'm1.large'),
        ('nova-ext-sched audit --policy ', 'isolation reservation'),
        # bash completes what is behind the colon.
        ('nova-ext-sched drain --domain rack:', '1 2'),
        ('nova-ext-sched simulate windows', 'windows_licensing'),
        # Files, and what nobody knows.
        ('nova-ext-sched drain --output ', ''),
        ('nova-ext-sched explain --server ', ''),
        ("nova-ext-sched drain 'cm", ''),
        ('nova-ext-sched nosuch ', ''),
        ('ls ', ''),
        ('', ''),
        # The OpenStackClient's.
        ('openstack aggregate isolation sync f', 'fast'),
        ('openstack --os-cloud lab aggregate isolation sync fast s', 'slow'),
        ('openstack aggregate isolation list --forb', '--forbid-by-trait'),
        ('openstack server list ', ''),
        ('openstack ', ''),
    )  # fmt: skip
    @ddt.unpack
    def test_line(self, line, expected):
        self.assertEqual(expected, ' '.join(completion.complete(line)))

    def test_servers_of_a_plan(self):
        path = pathlib.Path(self.home, 'p.json')
        line = f'openstack move plan apply {path} --skip '
        self.assertEqual([], completion.complete(line))
        uuid = '2b4d0e0a-5a2c-4d7e-9f57-0d6c9a1f0001'
        move = {'server': uuid, 'name': 'web', 'host': 'a', 'to': 'b'}
        move |= {'expected': 'b', 'method': 'live', 'why_cold': ''}
        move |= {'batch': 1, 'needs': []}
        plan = {'format': 3, 'time': '2026-11-01T00:00:00Z', 'services': {}}
        plan |= {'moves': [move], 'to_be_empty': []}
        path.write_text(json.dumps(plan))
        self.assertEqual(['web'], completion.complete(line))

    def test_without_names(self):
        self.set('XDG_CACHE_HOME', self.home + '/nothing')
        self.assertEqual([], completion.complete('nova-ext-sched drain '))


class BashTestCase(CompletionTestCase):
    def ask(self, line, function='_nova_ext_sched', other=''):
        path = f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}'
        done = subprocess.run(
            ['bash', '-c', ASK % function],
            env={
                **os.environ,
                'PATH': path,
                'SCRIPT': completion.SCRIPT,
                'LINE': line,
                'OTHER': other,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual('', done.stderr)
        return done.stdout.splitlines()

    def test_bash(self):
        # Neither a word is split, nor a pattern expanded.
        completion.keep({'HOST': ['a b', '*']})
        found = self.ask('nova-ext-sched drain ')
        self.assertEqual(["'*'", "'a b'"], sorted(found))

    def test_openstack(self):
        """Ours are completed by us, others as before."""
        line = 'openstack aggregate isolation sync s'
        openstack = '_nova_ext_sched_openstack'
        self.assertEqual(['slow'], self.ask(line, openstack))
        line = 'openstack server list '
        self.assertEqual(['theirs'], self.ask(line, openstack, 'yes'))
        self.assertEqual([''], self.ask(line, openstack))
