# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of openstack scheduler explain."""

import collections

import fixtures
from nova.scheduler import host_manager
from oslo_utils import uuidutils

from tests.functional import base
from tests.functional import image_api
from tests.functional import openstackclient


class ExplainTestCase(base.CloudTestCase):
    """A cloud, the OpenStackClient, and what the scheduler saw."""

    def setUp(self):
        super().setUp()
        self.osc = self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.base_url,
                {
                    'placement': self.placement.fixture.endpoint,
                    'image': self.useFixture(
                        image_api.ImageAPI(self.glance)
                    ).endpoint,
                },
            )
        )
        #: Of each scheduled request, the names of the hosts that came from
        #: placement and of those that the host filters left.
        self.scheduled = []

    def explain(self, *arguments):
        """Return the rows of the command's table."""
        return self.osc.json('scheduler', 'explain', *arguments)

    def explain_text(self, *arguments):
        """Return the status and the whole output of the command."""
        return self.osc.run('scheduler', 'explain', *arguments)

    def removed(self, *arguments):
        """Return the number of hosts by the constraint that removes them."""
        counts = collections.Counter()
        for row in self.explain(*arguments):
            if row['Removed']:
                counts[row['Constraint']] += row['Removed']
        return counts

    def record_scheduler(self):
        get_filtered_hosts = host_manager.HostManager.get_filtered_hosts

        def recording(manager, hosts, spec_obj, index=0):
            hosts = list(hosts)
            left = list(get_filtered_hosts(manager, hosts, spec_obj, index))
            self.scheduled.append(
                ({h.host for h in hosts}, {h.host for h in left})
            )
            return left

        self.stub_out(
            'nova.scheduler.host_manager.HostManager.get_filtered_hosts',
            recording,
        )

    def boot_or_fail(self, server, hints=None):
        """Create a server of a body; return it, ACTIVE or ERROR."""
        body = {
            'server': {'name': 'proof', 'networks': 'none', **server},
        }
        if hints:
            body['os:scheduler_hints'] = hints
        created = self.admin_api.post_server(body)
        return self._wait_for_server_parameter(
            created, {'OS-EXT-STS:task_state': None}
        )

    def delete(self, *servers):
        for server in servers:
            self.admin_api.delete_server(server['id'])
        for server in servers:
            self._wait_until_deleted(server)

    def allocate(self, consumer, provider, resources):
        """Let a consumer have these amounts of a provider, and no other."""
        if not resources:
            self.placement.delete(f'/allocations/{consumer}')
            return
        current = self.placement.get(
            f'/allocations/{consumer}', version='1.28'
        ).body
        response = self.placement.put(
            f'/allocations/{consumer}',
            {
                'allocations': {provider: {'resources': resources}},
                'project_id': uuidutils.generate_uuid(),
                'user_id': uuidutils.generate_uuid(),
                'consumer_generation': current.get('consumer_generation'),
            },
            version='1.28',
        )
        self.assertEqual(204, response.status, response.body)

    def create_resource_class(self, name):
        response = self.placement.put(
            f'/resource_classes/{name}', None, version='1.7'
        )
        self.assertIn(response.status, (201, 204), response.body)

    def create_provider(self, name, parent=None, inventories=(), traits=()):
        """Create a provider; return its UUID."""
        uuid = uuidutils.generate_uuid()
        body = {'name': name, 'uuid': uuid}
        if parent:
            body['parent_provider_uuid'] = parent
        self.placement.post('/resource_providers', body, version='1.20')
        response = self.placement.put(
            f'/resource_providers/{uuid}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {
                    resource_class: {'total': total}
                    for resource_class, total in dict(inventories).items()
                },
            },
            version='1.26',
        )
        self.assertEqual(200, response.status, response.body)
        self._set_provider_traits(uuid, sorted(traits))
        return uuid

    def set_provider_aggregates(self, provider, aggregates):
        """Put a provider into aggregates in placement alone."""
        path = f'/resource_providers/{provider}/aggregates'
        current = self.placement.get(path, version='1.19').body
        response = self.placement.put(
            path,
            {
                'aggregates': aggregates,
                'resource_provider_generation': current[
                    'resource_provider_generation'
                ],
            },
            version='1.19',
        )
        self.assertEqual(200, response.status)

    def nova_conf(self, **sections):
        """Write a nova.conf; return its path."""
        path = f'{self.useFixture(fixtures.TempDir()).path}/nova.conf'
        with open(path, 'w') as stream:
            for section, options in sections.items():
                stream.write(f'[{section}]\n')
                for name, value in options.items():
                    if isinstance(value, list):
                        value = ','.join(value)
                    stream.write(f'{name} = {value}\n')
        return path


class ThreeHostsTestCase(ExplainTestCase):
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
