# SPDX-License-Identifier: Apache-2.0

"""The cases of the page about capacity: what the command prints."""

import shlex

import fixtures

from tests import samples
from tests.functional import capacity
from tests.functional import explain

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
LICENSED = {f'trait:{TRAIT}': 'required'}
RESERVED = {'reservation:gpu': 'true'}
# Names and CPUs, MiB and extra specs.
FLAVORS = (
    ('small', 1, 512, {}),
    ('medium', 2, 2048, {}),
    ('large', 4, 4096, {}),
    ('huge', 16, 2048, {}),
    ('windows', 4, 2048, LICENSED),
    ('gpu', 8, 4096, RESERVED),
)


class PageTestCase(capacity.CapacityTestCase):
    maxDiff = None
    weights = {f'host{number}': 20 - number for number in range(1, 10)}
    host_filters = ('IsolatedAggregatesFilter',)
    options = explain.OPTIONS

    def setUp(self):
        super().setUp()
        samples.skip_other_releases(self)

    @samples.compares(
        'cli/capacity/flavors.txt',
        'cli/capacity/hosts.txt',
        'cli/capacity/aggregates.txt',
    )
    def test_the_page(self):
        for host, vcpu in (('host1', 8), ('host2', 5), ('host6', 9)):
            self.boot(az=f'nova:{host}', flavor=self.large(vcpu=vcpu))
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        self.isolate('windows', ['host5', 'host6', 'host7'], TRAIT)
        self.aggregate('gpu', ['host8'], metadata=RESERVED)
        for name, vcpu, memory_mb, specs in FLAVORS:
            self.flavor(name=name, vcpu=vcpu, memory_mb=memory_mb, specs=specs)
        self.set_service('host9', forced_down=True)
        self._check('flavors', '')
        self._check('hosts', ' --flavor medium --hosts')
        self.aggregate('rack1', [f'host{n}' for n in (1, 2, 3, 5)])
        self.aggregate('ssd', ['host2'])
        self._check('aggregates', ' --flavor medium --by aggregate')

    def _check(self, name, command):
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '80'))
        answer = capacity.run(*shlex.split(command))
        self.assertEqual(0, answer.status, answer.err)
        self.assertEqual('', answer.err)
        text = f'$ nova-ext-sched capacity{command}\n{answer.out}'
        samples.check(
            self, f'cli/capacity/{name}.txt', text, self.api.project_id
        )
