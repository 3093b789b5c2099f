# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain against a real nova and placement."""

import requests

from tests.functional import explain

VMX = 'HW_CPU_X86_VMX'
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
STATUS = 'trait COMPUTE_STATUS_DISABLED forbidden (nova, for disabled '


class FunnelTestCase(explain.ThreeHostsTestCase):
    def test_isolated_aggregate(self):
        self.isolate('windows', ['host1', 'host2'], WINDOWS)
        flavor = self.flavor()
        rows = self.explain('--flavor', flavor)
        (isolation,) = [row for row in rows if row['Stage'] == 'isolation']
        self.assertEqual(
            {
                'Stage': 'isolation',
                'Constraint': 'isolated aggregates whose traits the request '
                'lacks: windows (trait CUSTOM_LICENSED_WINDOWS)',
                'Removed': 2,
                'Left': 1,
                'Why': '2: aggregate windows is isolated and the request '
                'does not require trait CUSTOM_LICENSED_WINDOWS',
            },
            isolation,
        )
        status, output = self.explain_text('--flavor', flavor)
        self.assertEqual(0, status)
        self.assertIn(
            '1 of 3 hosts: 2 are isolated by aggregate windows (trait '
            'CUSTOM_LICENSED_WINDOWS)\n',
            output,
        )
        self.assertIn('not judged here: ComputeCapabilitiesFilter', output)
        image = self.image(props={f'trait:{WINDOWS}': 'required'})
        self.assertEqual(
            {f'trait {WINDOWS} required (image)': 1},
            self.removed('--flavor', flavor, '--image', image),
        )

    def test_order_is_the_schedulers(self):
        self.isolate('windows', ['host1'], WINDOWS)
        self.aggregate('az1', ['host1', 'host2'], zone='az1')
        group = self.group('anti-affinity')
        flavor = self.flavor(specs={f'trait:{VMX}': 'required'})
        name = self.admin_api.get_flavor(flavor)['name']
        rows = self.explain(
            '--flavor',
            flavor,
            '--availability-zone',
            'az1',
            '--requested-host',
            'host2',
            '--server-group',
            group,
        )
        self.assertEqual(
            [
                ('placement', 'a resource provider in placement'),
                ('resources', 'VCPU: 1'),
                ('resources', 'MEMORY_MB: 64'),
                ('traits', f'trait {VMX} required (flavor)'),
                ('traits', STATUS + 'nova-compute)'),
                ('host', 'host host2 requested'),
                ('aggregates', 'availability zone az1: aggregates az1'),
                (
                    'isolation',
                    'isolated aggregates whose traits the request lacks: '
                    f'windows (trait {WINDOWS})',
                ),
                ('placement', 'all of the above together'),
                ('host filter', 'ComputeFilter: nova-compute up and enabled'),
                (
                    'host filter',
                    'ServerGroupAntiAffinityFilter: server group group '
                    '(max_server_per_host=1)',
                ),
                (
                    'host filter',
                    f'AggregateInstanceTypeFilter: extra specs of flavor '
                    f'{name} (trait:{VMX}=required) and metadata of '
                    'aggregates',
                ),
                (
                    'host filter',
                    'IsolatedAggregatesFilter: isolated aggregates: windows '
                    f'(trait {WINDOWS})',
                ),
            ],
            [(row['Stage'], row['Constraint']) for row in rows],
        )

    def test_disabled_and_down(self):
        flavor = self.flavor()
        for host, body in (
            ('host1', {'status': 'disabled'}),
            ('host2', {'forced_down': True}),
        ):
            uuid = self.computes[host].service_ref.uuid
            self.admin_api.put_service(uuid, body)
        self.assertEqual(
            {'host1': 'traits', 'host2': 'host filter', 'host3': ''},
            self.results('--flavor', flavor),
        )

    def test_requested_and_forced_host(self):
        uuid = self.computes['host1'].service_ref.uuid
        self.admin_api.put_service(uuid, {'forced_down': True})
        flavor = self.flavor()
        requested = ('--flavor', flavor, '--requested-host', 'host1')
        self.assertEqual(
            {'host1': 'host filter', 'host2': 'host', 'host3': 'host'},
            self.results(*requested),
        )
        forced = ('--flavor', flavor, '--availability-zone', 'nova:host1')
        self.assertEqual(
            {'host1': '', 'host2': 'host', 'host3': 'host'},
            self.results(*forced),
        )
        self.assertIn(
            'nova runs no host filter', self.explain_text(*forced)[1]
        )
        node = ('--flavor', flavor, '--availability-zone', 'nova::host2')
        self.assertEqual('', self.results(*node)['host2'])

    def test_provider_is_missing(self):
        self.placement.delete(f'/resource_providers/{self.providers["host3"]}')
        self.assertEqual(
            {'a resource provider in placement': 1},
            self.removed('--flavor', self.flavor()),
        )

    def test_aggregate_that_is_not_mirrored(self):
        self.aggregate('az1', ['host1', 'host2'], zone='az1')
        self.set_provider_aggregates(self.providers['host1'], [])
        arguments = (
            *('--flavor', self.flavor()),
            *('--availability-zone', 'az1'),
        )
        rows = self.explain(*arguments, '--hosts')
        self.assertEqual(
            [
                'in az1 for nova, but its resource provider is not in the '
                'aggregate in placement (nova-manage placement '
                'sync_aggregates)',
                '',
                'not in any of az1',
            ],
            [row['Reason'] for row in rows],
        )

    def test_isolation_that_is_not_mirrored_is_the_host_filters(self):
        self.isolate('windows', ['host1', 'host2'], WINDOWS)
        self.set_provider_aggregates(self.providers['host1'], [])
        self.assertEqual(
            {'host1': 'host filter', 'host2': 'isolation', 'host3': ''},
            self.results('--flavor', self.flavor()),
        )

    def test_pinned_cpus_fall_back_to_vcpu(self):
        flavor = self.flavor(specs={'hw:cpu_policy': 'dedicated'})
        for disabled, expected in (('False', {}), ('True', {'PCPU: 1': 3})):
            option = f'workarounds.disable_fallback_pcpu_query={disabled}'
            self.assertEqual(
                expected,
                self.removed('--flavor', flavor, '--option', option),
            )

    def test_trait_that_placement_does_not_know(self):
        flavor = self.flavor(specs={'trait:CUSTOM_TYPO': 'required'})
        self.assertEqual(
            {'trait CUSTOM_TYPO required (flavor)': 3},
            self.removed('--flavor', flavor),
        )
        output = self.explain_text('--flavor', flavor)[1]
        self.assertIn('No such trait(s): CUSTOM_TYPO', output)

    def test_nested_providers_that_do_not_combine(self):
        self._create_trait('CUSTOM_FAST')
        self.create_resource_class('CUSTOM_FPGA')
        for name, total, traits in (
            ('slow', 2, []),
            ('fast', 1, ['CUSTOM_FAST']),
        ):
            self.create_provider(
                f'host1_{name}',
                self.providers['host1'],
                {'CUSTOM_FPGA': total},
                traits,
            )
        flavor = self.flavor(
            specs={
                'resources:CUSTOM_FPGA': '2',
                'trait:CUSTOM_FAST': 'required',
            }
        )
        self.assertEqual(
            {'CUSTOM_FPGA: 2': 2, 'all of the above together': 1},
            self.removed('--flavor', flavor),
        )

    def test_provider_that_hosts_share(self):
        self.create_resource_class('CUSTOM_POOL')
        aggregate = self.aggregate('rack', ['host2', 'host3'])
        pool = self.create_provider(
            'pool',
            inventories={'CUSTOM_POOL': 10},
            traits=['MISC_SHARES_VIA_AGGREGATE'],
        )
        flavor = self.flavor(specs={'resources:CUSTOM_POOL': '1'})
        self.assertEqual(
            {'CUSTOM_POOL: 1': 3}, self.removed('--flavor', flavor)
        )
        self.set_provider_aggregates(pool, [aggregate])
        self.assertEqual(
            {'host1': 'resources', 'host2': '', 'host3': ''},
            self.results('--flavor', flavor),
        )
        # A query for one tree leaves out what trees share.
        named = ('--flavor', flavor, '--requested-host', 'host2')
        self.assertEqual('placement', self.results(*named)['host2'])
        self.scheduled.clear()
        server = self.boot_or_fail(
            {
                'flavorRef': flavor,
                'imageRef': self.image(),
                'host': 'host2',
            }
        )
        self.assertEqual(('ERROR', []), (server['status'], self.scheduled))

    def test_zone_of_more_aggregates_than_one_query_takes(self):
        """A provider in the zone that hosts share brings none into it."""
        zone = [self.aggregate('az-0', ['host1'], zone='az')] + [
            self.aggregate(f'az-{i}', zone='az') for i in range(1, 21)
        ]
        rack = self.aggregate('rack', ['host2'])
        self.create_resource_class('CUSTOM_POOL')
        pool = self.create_provider(
            'pool',
            inventories={'CUSTOM_POOL': 10},
            traits=['MISC_SHARES_VIA_AGGREGATE'],
        )
        self.set_provider_aggregates(pool, [rack, zone[0]])
        flavor = self.flavor()
        self.assertEqual(
            {'host1': '', 'host2': 'aggregates', 'host3': 'aggregates'},
            self.results('--flavor', flavor, '--availability-zone', 'az'),
        )
        self.scheduled.clear()
        self.boot_or_fail(
            {
                'flavorRef': flavor,
                'imageRef': self.image(),
                'availability_zone': 'az',
            }
        )
        self.assertEqual([({'host1'}, {'host1'})], self.scheduled)

    def test_request_groups_without_a_policy(self):
        """Placement refuses the query, and nova finds no host."""
        specs = {
            'resources:VCPU': '0',
            'resources1:VCPU': '1',
            'resources2:MEMORY_MB': '64',
        }
        flavor = self.flavor(specs=specs)
        self.assertEqual(
            {'all of the above together': 3}, self.removed('--flavor', flavor)
        )
        self.assertIn('group_policy', self.explain_text('--flavor', flavor)[1])
        flavor = self.flavor(specs={**specs, 'group_policy': 'none'})
        self.assertEqual({}, self.removed('--flavor', flavor))

    def test_boot_from_volume(self):
        flavor = self._create_flavor(disk=5000, memory_mb=64, vcpu=1)
        self.assertIn('DISK_GB: 5010', self.removed('--flavor', flavor))
        self.assertEqual(
            {}, self.removed('--flavor', flavor, '--boot-from-volume')
        )

    def test_project(self):
        self.aggregate('tenant', ['host1'], filter_tenant_id='p' * 32)
        self.aggregate('other', ['host2'], filter_tenant_id='a' * 32)
        option = 'scheduler.limit_tenants_to_placement_aggregate=True'
        arguments = ('--flavor', self.flavor(), '--option', option)
        name = 'filter_tenant_id=' + 'a' * 32
        self.assertEqual(
            {f'{name}: aggregates other': 2},
            self.removed(*arguments, '--project', 'a' * 32),
        )
        self.assertEqual({}, self.removed(*arguments, '--project', 'b' * 32))
        required = 'scheduler.placement_aggregate_required_for_tenants=True'
        self.assertEqual(
            {'aggregates with filter_tenant_id=' + 'b' * 32 + ': none': 3},
            self.removed(
                *arguments, '--project', 'b' * 32, '--option', required
            ),
        )

    def test_anti_affinity(self):
        group = self.group('anti-affinity', max_server_per_host=1)
        server = self.boot_or_fail(
            {'flavorRef': self.flavor(), 'imageRef': self.image()},
            {'group': group},
        )
        host = self.host_of(server)
        arguments = ('--flavor', self.flavor())
        for named in (
            ('--server-group', 'group'),
            ('--server-group', group),
            ('--hint', f'group={group}'),
        ):
            self.assertEqual(
                'host filter', self.results(*arguments, *named)[host]
            )
        # The server itself may stay where it is.
        self.assertEqual('', self.results('--server', server['id'])[host])

    def test_affinity_is_not_judged(self):
        self.group('affinity')
        output = self.explain_text(
            *('--flavor', self.flavor(), '--server-group', 'group')
        )[1]
        self.assertIn(
            'not judged here: policy affinity of server group group', output
        )

    def test_more_hosts_than_placement_returns(self):
        option = ('--option', 'scheduler.max_placement_results=2')
        output = self.explain_text('--flavor', self.flavor(), *option)[1]
        self.assertIn('placement returns 2 of these 3 hosts', output)

    def test_nova_sets_no_limit_for_some_hints(self):
        self.flags(max_placement_results=2, group='scheduler')
        group = self.group('anti-affinity')
        other = self.boot_or_fail(
            {'flavorRef': self.flavor(), 'imageRef': self.image()}
        )['id']
        option = ('--option', 'scheduler.max_placement_results=2')
        for key, value, returned in (
            ('other', 'x', 2),
            ('group', group, 3),
            ('same_host', other, 3),
            ('different_host', other, 3),
        ):
            flavor = self.flavor()
            hint = ('--hint', f'{key}={value}')
            output = self.explain_text('--flavor', flavor, *hint, *option)[1]
            self.assertIs(returned == 3, 'placement returns' not in output)
            self.scheduled.clear()
            self.boot_or_fail(
                {'flavorRef': flavor, 'imageRef': self.image()}, {key: value}
            )
            ((from_placement, _),) = self.scheduled
            self.assertEqual(returned, len(from_placement), key)

    def test_image_properties_as_nova_reads_them(self):
        self.flags(image_metadata_prefilter=True, group='scheduler')
        self.add_traits('host3', 'HW_ARCH_X86_64')
        option = ('--option', 'scheduler.image_metadata_prefilter=True')
        for properties, expected in (
            ({'hw_architecture': 'AMD64'}, {'host3'}),
            ({'architecture': 'x86_64'}, {'host3'}),
            # nova knows no trait of this model, and asks for none at all.
            (
                {'hw_architecture': 'x86_64', 'hw_viommu_model': 'intel'},
                {'host1', 'host2', 'host3'},
            ),
        ):
            flavor, image = self.flavor(), self.image(props=properties)
            arguments = ('--flavor', flavor, '--image', image, *option)
            results = self.results(*arguments)
            self.assertEqual(
                expected, {host for host in results if not results[host]}
            )
            self.scheduled.clear()
            self.boot_or_fail({'flavorRef': flavor, 'imageRef': image})
            ((from_placement, _),) = self.scheduled
            self.assertEqual(expected, from_placement)
        self.assertIn(
            'not known: what nova derives from image hw_viommu_model=intel',
            self.explain_text(*arguments)[1],
        )

    def test_owner_trait_is_said(self):
        uuid = self.providers['host1']
        traits = set(self._get_provider_traits(uuid))
        if 'OWNER_NOVA' not in traits:
            self.skipTest('this nova does not report OWNER_NOVA')
        provider = self.placement.get(f'/resource_providers/{uuid}').body
        # nova's helper would keep the trait.
        self.placement.put(
            f'/resource_providers/{uuid}/traits',
            {
                'resource_provider_generation': provider['generation'],
                'traits': sorted(traits - {'OWNER_NOVA'}),
            },
            version='1.6',
        )
        output = self.explain_text('--flavor', self.flavor())[1]
        self.assertIn('not counted: 1 hosts lack trait OWNER_NOVA', output)

    def test_nothing_is_changed(self):
        sent = []
        send = requests.Session.send

        def recording(session, request, **kwargs):
            sent.append(request.method)
            return send(session, request, **kwargs)

        self.isolate('windows', ['host1'], WINDOWS)
        flavor, image = self.flavor(), self.image()
        self.stub_out('requests.Session.send', recording)
        self.removed('--flavor', flavor, '--image', image)
        self.assertEqual({'GET'}, set(sent))

    def group(self, policy, **rules):
        body = {'name': 'group', 'policy': policy}
        if rules:
            body['rules'] = rules
        return self.admin_api.post_server_groups(body)['id']
