# SPDX-License-Identifier: Apache-2.0

"""The cases of the page "Why was there no valid host?", run and compared.

The page includes the files of ``doc/source/tools/explain``. To write them
anew after a change of the output, set NOVA_EXT_SCHED_TEST_WRITE_DOCS=1.
"""

import os
import pathlib
import re

from tests.functional import explain

FOLDER = pathlib.Path(__file__).parents[2] / 'doc/source/tools/explain'
WRITE = bool(os.environ.get('NOVA_EXT_SCHED_TEST_WRITE_DOCS'))
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
HOSTS = tuple(f'compute{i:02}' for i in range(1, 13))
WIDTH = ('--max-width', '110')


class CasesTestCase(explain.ExplainTestCase):
    weights = {host: 1 for host in HOSTS}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def assertIsInDocs(self, name, *commands):
        """Run commands; their output must be the file's.

        :param commands: words of each command, and what stands for them in
            the file where they hold a UUID
        """
        found = ''
        for words, shown in commands:
            status, output = self.osc.run(
                'scheduler', 'explain', *words, *WIDTH
            )
            self.assertEqual(0, status)
            found += f'$ openstack scheduler explain {shown}\n{output}\n'
        found = re.sub(' +$', '', found, flags=re.MULTILINE)
        path = FOLDER / f'{name}.txt'
        if WRITE:
            path.write_text(found)
        self.assertEqual(path.read_text(), found)

    def full(self, host):
        """Leave no VCPU of a host."""
        provider = self._get_provider_uuid_by_host(host)
        for number in range(4):
            consumer = f'{number:08}-0000-4000-8000-0000000{host[-5:]}'
            consumer = re.sub('[a-z]', '0', consumer)
            self.allocate(consumer, provider, {'VCPU': 10})

    def named_flavor(self, name, **extra_specs):
        return self._create_flavor(
            name=name,
            vcpu=4,
            memory_mb=1024,
            disk=20,
            ephemeral=0,
            extra_spec=extra_specs.get('specs'),
        )

    def test_full_isolated_and_down(self):
        self.named_flavor('web.medium')
        for host in HOSTS[:4]:
            self.full(host)
        self.isolate('windows', HOSTS[4:10], WINDOWS)
        for host in HOSTS[10:]:
            self.admin_api.put_service(
                self.computes[host].service_ref.uuid, {'forced_down': True}
            )
        self.assertIsInDocs(
            'isolated',
            (['--flavor', 'web.medium'], '--flavor web.medium'),
            (
                ['--flavor', 'web.medium', '--host', 'compute05'],
                '--flavor web.medium --host compute05',
            ),
        )

    def test_zone_that_placement_does_not_know(self):
        flavor = self.named_flavor('web.medium')
        self.aggregate('rack7', HOSTS[:3], zone='az7')
        for host in HOSTS[:2]:
            self.set_provider_aggregates(
                self._get_provider_uuid_by_host(host), []
            )
        self.full(HOSTS[2])
        server = self.boot_or_fail(
            {
                'name': 'web-3',
                'flavorRef': flavor,
                'imageRef': self.image(),
                'availability_zone': 'az7',
            }
        )
        self.assertEqual('ERROR', server['status'])
        self.assertIsInDocs('zone', (['--server', 'web-3'], '--server web-3'))

    def test_server_group_is_full(self):
        flavor = self.named_flavor('db.large', specs={'disk': 'ssd'})
        self.aggregate('ssd', HOSTS[:3], disk='ssd')
        self.aggregate('hdd', HOSTS[3:6], disk='hdd')
        group = self.admin_api.post_server_groups(
            {'name': 'db', 'policy': 'anti-affinity'}
        )['id']
        for host in HOSTS[:3]:
            self.boot_or_fail(
                {
                    'flavorRef': flavor,
                    'imageRef': self.image(),
                    'host': host,
                },
                {'group': group},
            )
        arguments = ['--flavor', 'db.large', '--server-group', 'db']
        shown = ' '.join(arguments)
        self.assertIsInDocs(
            'group',
            (arguments, shown),
            (
                [*arguments, '--hosts', '-c', 'Host', '-c', 'Reason'],
                f'{shown} --hosts -c Host -c Reason',
            ),
        )
