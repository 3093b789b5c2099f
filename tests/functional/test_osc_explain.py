#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""openstack scheduler explain against a real nova and placement."""

import ddt
from nova.api import auth
from nova.tests.fixtures import cinder as cinder_fixture
import requests
import webob.exc

from nova_ext_sched.osc import explain_facts
from tests.functional import explain
from tests.functional import openstackclient

VMX = 'HW_CPU_X86_VMX'
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
COMMAND = ('scheduler', 'explain')
STATUS = 'trait COMPUTE_STATUS_DISABLED forbidden (nova, for disabled '


class ExplainTestCase(explain.ExplainTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        self.record_scheduler()
        self.providers = {
            host: self._get_provider_uuid_by_host(host)
            for host in self.weights
        }

    def results(self, *arguments):
        """Return the stage that removes each host, empty where none does."""
        rows = self.explain(*arguments, '--hosts')
        return {row['Host']: row['Stage'] for row in rows}


class FunnelTestCase(ExplainTestCase):
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


class ViewsTestCase(ExplainTestCase):
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


class ServerTestCase(ExplainTestCase):
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

    def serve_volume(self, volume):
        # nova's functional tests have no block storage API: the answer of
        # one stands in for it.
        read = explain_facts.read

        def reading(proxy, path, microversion=None):
            if path == f'/volumes/{volume["id"]}':
                return {'volume': volume}
            return read(proxy, path, microversion)

        self.stub_out('nova_ext_sched.osc.explain_facts.read', reading)


@ddt.ddt
class ErrorsTestCase(ExplainTestCase):
    def assertFails(self, *arguments, said):
        status, output = self.explain_text(*arguments)
        self.assertEqual(1, status, output)
        for words in said:
            self.assertIn(words, output)
        self.assertNotIn('Traceback', output)

    def test_unknown_flavor(self):
        self.assertFails('--flavor', 'none', said=['No Flavor found for none'])

    def test_unknown_image(self):
        self.assertFails(
            *('--flavor', self.flavor(), '--image', 'none'),
            said=['No Image found for none'],
        )

    def test_name_of_two_images(self):
        self.image()
        self.image()
        self.assertFails(
            *('--flavor', self.flavor(), '--image', 'image'),
            said=["More than one Image exists with the name 'image'"],
        )

    def test_unknown_server_group_and_zone(self):
        flavor = self.flavor()
        self.assertFails(
            *('--flavor', flavor, '--server-group', 'none'),
            said=['No ServerGroup found for none'],
        )
        self.assertFails(
            *('--flavor', flavor, '--availability-zone', 'none'),
            said=["availability zone: expected one of nova, got 'none'"],
        )

    @ddt.data(
        ((), 'expected --flavor or --server'),
        (('--flavor', 'f', '--hint', 'x'), "expected KEY=VALUE, got 'x'"),
        (('--flavor', 'f', '--option', 'none=1'), '--option: expected'),
        (('--flavor', 'f', '--nova-conf', '/none'), '--nova-conf: expected'),
        (
            ('--flavor', 'f', '--availability-zone', 'a:b:c:d'),
            'expected ZONE, ZONE:HOST',
        ),
    )
    @ddt.unpack
    def test_arguments(self, arguments, said):
        flavor = self.flavor()
        self.assertFails(
            *(flavor if word == 'f' else word for word in arguments),
            said=[said],
        )

    @ddt.data(openstackclient.READER, openstackclient.MEMBER)
    def test_without_admin_rights(self, user):
        flavor = self.flavor()
        self.osc.user = user
        self.assertFails(
            *('--flavor', flavor),
            said=['does not allow this to the user', 'status 403'],
        )

    def test_flavor_without_its_extra_specs(self):
        flavor = self.flavor()
        self.policy.set_rules(
            {'os_compute_api:os-flavor-extra-specs:index': '!'},
            overwrite=False,
        )
        self.assertFails('--flavor', flavor, said=['expected extra specs'])

    def test_expired_token(self):
        create_context = auth.NovaKeystoneContext._create_context

        def refusing(env, **kwargs):
            # As keystonemiddleware answers, which nova's fixture replaces.
            if self.osc.user is openstackclient.EXPIRED:
                raise webob.exc.HTTPUnauthorized()
            return create_context(env, **kwargs)

        self.stub_out(
            'nova.api.auth.NovaKeystoneContext._create_context', refusing
        )
        flavor = self.flavor()
        self.osc.user = openstackclient.EXPIRED
        self.assertFails(
            *('--flavor', flavor),
            said=['does not accept the token, which may have expired'],
        )

    def test_placement_is_down(self):
        flavor = self.flavor()
        self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.base_url,
                {'placement': 'http://127.0.0.1:1/placement'},
            )
        )
        self.assertFails(
            *('--flavor', flavor), said=['no connection to placement']
        )
