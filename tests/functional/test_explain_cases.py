# SPDX-License-Identifier: Apache-2.0

"""The cases of the page about explain: what the commands print, word by word.

Only UUIDs are replaced, by others of the same length.
NOVA_EXT_SCHED_TEST_WRITE=1 writes the page's files anew instead of comparing.
"""

import importlib.metadata
import os
import pathlib
import re
import shlex

import fixtures

from tests.functional import explain

PAGE = pathlib.Path(__file__).parents[2] / 'doc/source/tools/explain'
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

SHOWN = [f'{n}d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55' for n in range(1, 10)]
PROJECT = '6f70656e737461636b20342065766572'


class PageTestCase(explain.ExplainTestCase):
    maxDiff = None
    weights = {f'host{number}': 20 - number for number in range(1, 10)}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }

    def setUp(self):
        super().setUp()
        if not importlib.metadata.version('nova').startswith('34.'):
            self.skipTest('the page shows the request filters of nova 34')

    def test_the_page(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        self.isolate('windows', ['host5', 'host6', 'host7'], TRAIT)
        self.aggregate('gpu', ['host8'], metadata={'reservation:gpu': 'true'})
        self.group = self.api.post_server_groups(
            {'name': 'web', 'policy': 'anti-affinity'}
        )
        hints = {'group': self.group['id']}
        small = self._create_flavor(
            name='small', vcpu=1, memory_mb=64, disk=0, ephemeral=0
        )
        web = [
            self.boot(
                flavor=small,
                hints=hints,
                az=f'nova:host{number}',
                name='web',
            )
            for number in (1, 2)
        ]
        self.set_service('host9', forced_down=True)
        flavor = self._create_flavor(
            name='large', vcpu=4, memory_mb=7680, disk=0
        )
        for number in (3, 4):
            self.boot(az=f'nova:host{number}')

        server = self.assertNoValidHost(flavor=flavor, name='db-1')
        self._check('boot', f'--server {server["id"]}', 3)
        self._check('host', f'--server {server["id"]} --host host6', 3)
        self._check('all', f'--server {server["id"]} --all', 3)
        for number in (3, 4):
            self.set_service(f'host{number}', forced_down=True)
        self._check(
            'migration',
            f'--server {web[0]["id"]} --operation live-migrate',
            3,
        )

    def _check(self, name, command, status):
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '80'))
        answer = explain.run(*shlex.split(command))
        self.assertEqual(status, answer.status, answer.err)
        self.assertEqual('', answer.err)
        text = '\n'.join(
            (
                f'$ nova-ext-sched explain {command}',
                answer.out.rstrip(),
                '$ echo $?',
                f'{answer.status}\n',
            )
        )
        for line in text.splitlines():
            if not line.startswith('$'):
                self.assertLessEqual(len(line), 80, line)
        # A UUID that wraps would hide here; none does.
        seen = {}
        text = UUID.sub(
            lambda match: seen.setdefault(match[0], SHOWN[len(seen)]), text
        )
        text = text.replace(self.api.project_id, PROJECT)
        path = PAGE / f'{name}.txt'
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            path.write_text(text)
        self.assertEqual(path.read_text(), text)
