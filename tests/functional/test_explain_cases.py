# SPDX-License-Identifier: Apache-2.0

"""The cases of the page "Why was there no valid host?", word by word.

NOVA_EXT_SCHED_TEST_WRITE=1 writes the page's files anew instead of comparing.
"""

import importlib.metadata
import os
import pathlib
import shlex

from tests.functional import explain

PAGE = pathlib.Path(__file__).parents[2] / 'doc/source/tools/explain'
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
NARROW = '-c Stage -c Constraint -c Refused -c Left'
OF_A_HOST = '-c Constraint -c Verdict -c Reason'


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
        web = [
            self.boot(hints=hints, az=f'nova:host{number}')
            for number in (1, 2)
        ]
        self.set_service('host9', forced_down=True)
        flavor = self._create_flavor(
            name='large', vcpu=4, memory_mb=7680, disk=0
        )
        for number in (3, 4):
            self.boot(az=f'nova:host{number}')

        server = self.assertNoValidHost(flavor=flavor)
        self._check('boot', f'--server {server["id"]} {NARROW}', 3)
        self._check(
            'host', f'--server {server["id"]} --host host6 {OF_A_HOST}', 3
        )
        for number in (3, 4):
            self.set_service(f'host{number}', forced_down=True)
        self._check(
            'migration',
            f'--server {web[0]["id"]} --operation live-migrate {NARROW}',
            3,
        )

    def _check(self, name, command, status):
        answer = explain.run(*shlex.split(command))
        self.assertEqual(status, answer.status, answer.err)
        server = command.split()[1]
        # As a page may show it: options of the format are not of interest.
        shown = ' '.join(command.split(' -c ')[0].split())
        text = '\n'.join(
            (
                f'$ nova-ext-sched explain {shown}',
                answer.out.rstrip(),
                answer.err.rstrip(),
                '$ echo $?',
                f'{answer.status}\n',
            )
        )
        for uuid, shown in (
            (server, '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'),
            (self.group['id'], '5b0e6a37-1f0c-4c0f-8a53-6de3b8f0d1c4'),
        ):
            text = text.replace(uuid, shown)
        path = PAGE / f'{name}.txt'
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            path.write_text(text)
        self.assertEqual(path.read_text(), text)
