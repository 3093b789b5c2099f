# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain: its views, and requests of servers."""

from nova.tests.fixtures import cinder as cinder_fixture

from nova_ext_sched.osc import explain_facts
from tests.functional import explain

VMX = 'HW_CPU_X86_VMX'
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
COMMAND = ('scheduler', 'explain')


class ViewsTestCase(explain.ThreeHostsTestCase):
    def test_story_of_one_host(self):
        self.isolate('windows', ['host1'], WINDOWS)
        flavor = self._create_flavor(memory_mb=9000, vcpu=1, disk=0)
        rows = self.explain('--flavor', flavor, '--host', 'host1')
        refused = {
            row['Constraint'].partition(':')[0]: row['Reason']
            for row in rows
            if row['Result'] == 'refuses'
        }
        # Not only the first: what else would have to change.
        self.assertEqual(
            [
                'MEMORY_MB',
                'isolated aggregates whose traits the request lacks',
                'all of the above together',
                'IsolatedAggregatesFilter',
            ],
            list(refused),
        )
        self.assertEqual(
            'its providers cannot allocate MEMORY_MB: 9000; MEMORY_MB: '
            '7680 of 7680 free on provider host1 (at least 1, at most 8192, '
            'in steps of 1)',
            refused['MEMORY_MB'],
        )

    def test_story_of_a_host_that_is_not(self):
        status, output = self.explain_text(
            *('--flavor', self.flavor(), '--host', 'nowhere')
        )
        self.assertEqual(1, status)
        self.assertIn(
            '--host: expected the name of a compute host or of its '
            "hypervisor, got 'nowhere'",
            output,
        )

    def test_sentence_does_not_spoil_what_programs_read(self):
        flavor = self.flavor()
        for form in ('json', 'yaml', 'csv', 'value'):
            status, output, errors = self.osc.run_apart(
                *COMMAND, '--flavor', flavor, '-f', form
            )
            self.assertEqual(0, status)
            self.assertNotIn('3 of 3 hosts', output)
            self.assertIn('3 of 3 hosts: no constraint removes any', errors)
        status, output, errors = self.osc.run_apart(
            *COMMAND, '--flavor', flavor
        )
        self.assertIn('3 of 3 hosts', output)
        self.assertEqual('', errors)

    def test_nova_conf(self):
        self.isolate('windows', ['host1'], WINDOWS)
        arguments = ('--flavor', self.flavor())
        off = self.nova_conf(
            nova_ext_sched={'enable_isolated_aggregate_filtering': False},
            filter_scheduler={'enabled_filters': ['FooFilter']},
        )
        status, output = self.explain_text(*arguments, '--nova-conf', off)
        self.assertEqual(0, status)
        self.assertIn('3 of 3 hosts', output)
        self.assertIn('not judged here: FooFilter', output)
        self.assertNotIn('without --nova-conf', output)
        self.assertEqual(
            1,
            sum(
                self.removed(
                    *arguments,
                    *('--nova-conf', off),
                    *('--option', 'enable_isolated_aggregate_filtering=True'),
                ).values()
            ),
        )


class ServerTestCase(explain.ThreeHostsTestCase):
    def test_server_that_found_no_host(self):
        self.isolate('windows', ['host1', 'host2'], WINDOWS)
        self.aggregate('az1', ['host2'], zone='az1')
        server = self.boot_or_fail(
            {
                'flavorRef': self.flavor(),
                'imageRef': self.image(),
                'availability_zone': 'az1',
            }
        )
        self.assertEqual('ERROR', server['status'])
        arguments = ('--server', server['id'])
        self.assertEqual(
            {
                'host1': 'aggregates',
                'host2': 'isolation',
                'host3': 'aggregates',
            },
            self.results(*arguments),
        )
        # An option takes precedence over what the server has.
        image = self.image(props={f'trait:{WINDOWS}': 'required'})
        self.assertEqual(
            '', self.results(*arguments, '--image', image)['host2']
        )

    def test_flavor_is_the_servers_own(self):
        """The flavor was changed since; the server keeps what it had."""
        flavor = self.flavor(specs={f'trait:{VMX}': 'required'})
        self.add_traits('host1', VMX)
        server = self.assertBootsOn('host1', flavor=flavor)
        self.admin_api.api_delete(f'/flavors/{flavor}')
        self.assertEqual(
            {f'trait {VMX} required (flavor)': 2},
            self.removed('--server', server['name']),
        )

    def test_hints_and_group(self):
        group = self.admin_api.post_server_groups(
            {'name': 'group', 'policy': 'anti-affinity'}
        )['id']
        body = {'flavorRef': self.flavor(), 'imageRef': self.image()}
        first = self.boot_or_fail(body, {'group': group})
        second = self.boot_or_fail(body, {'group': group})
        results = self.results('--server', second['id'])
        self.assertEqual('host filter', results[self.host_of(first)])
        self.assertEqual('', results[self.host_of(second)])

    def test_volume_backed(self):
        volume = cinder_fixture.CinderFixture.IMAGE_WITH_TRAITS_BACKED_VOL
        self.add_traits('host2', 'HW_CPU_X86_SGX')
        flavor = self._create_flavor(disk=5000, memory_mb=64, ephemeral=0)
        server = self.boot_or_fail(
            {
                'flavorRef': flavor,
                'block_device_mapping_v2': [
                    {
                        'source_type': 'volume',
                        'destination_type': 'volume',
                        'boot_index': 0,
                        'uuid': volume,
                    }
                ],
            }
        )
        self.assertEqual('host2', self.host_of(server))
        self.serve_volume(
            {
                'id': volume,
                'bootable': 'true',
                'attachments': [{'device': '/dev/vda'}],
                'volume_image_metadata': {'trait:HW_CPU_X86_SGX': 'required'},
            }
        )
        self.assertEqual(
            {'trait HW_CPU_X86_SGX required (image)': 2},
            self.removed('--server', server['id']),
        )
        self.assertIn(
            'not known: which trait: properties the volume had',
            self.explain_text('--server', server['id'])[1],
        )

    def serve_volume(self, volume):
        # nova's functional tests have no block storage API: the answer of
        # one stands in for it.
        read = explain_facts.read

        def reading(proxy, path, microversion=None):
            if path == f'/volumes/{volume["id"]}':
                return {'volume': volume}
            return read(proxy, path, microversion)

        self.stub_out('nova_ext_sched.osc.explain_facts.read', reading)
