# SPDX-License-Identifier: Apache-2.0

"""The cases of the page about explain: what the commands print."""

import shlex

import fixtures

from tests import samples
from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class PageTestCase(base.CloudTestCase):
    maxDiff = None
    weights = {f'host{number}': 20 - number for number in range(1, 10)}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    def setUp(self):
        super().setUp()
        samples.skip_other_releases(self)

    @samples.compares(
        'cli/explain/boot.txt',
        'cli/explain/host.txt',
        'cli/explain/all.txt',
        'cli/explain/migration.txt',
    )
    def test_the_page(self):
        self.flags(initial_cpu_allocation_ratio=1.0)
        self.isolate('windows', ['host5', 'host6', 'host7'], TRAIT)
        self.aggregate('gpu', ['host8'], metadata={'reservation:gpu': 'true'})
        hints = {'group': self.create_group(name='web')}
        small = self.flavor(name='small')
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
        samples.check(
            self, f'cli/explain/{name}.txt', text, self.api.project_id
        )
