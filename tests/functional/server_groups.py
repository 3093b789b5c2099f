# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of server groups."""

import fixtures
from nova import context as nova_context
from nova import objects
from nova.scheduler.filters import affinity_filter
from oslo_utils import uuidutils

from tests.functional import base


class AntiAffinityTestCase(base.CloudTestCase):
    """Two hosts, of which the scheduler prefers host1.

    nova's own filter is made to raise: a pass proves that ours acted.
    """

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    started = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MockPatchObject(
                affinity_filter._GroupAntiAffinityFilter,
                'host_passes',
                side_effect=AssertionError("nova's filter was called"),
            )
        )

    def create_group(self, rules=None, policy='anti-affinity'):
        group = {'name': 'test', 'policy': policy}
        if rules is not None:
            group['rules'] = rules
        return self.api.post_server_groups(group)

    def post(self, group, **extra):
        server = {**self._build_server(networks='none'), **extra}
        return self.api.post_server(
            {'server': server, 'os:scheduler_hints': {'group': group['id']}}
        )

    def boot(self, group, expected='ACTIVE'):
        server = self._wait_for_state_change(self.post(group), expected)
        if expected == 'ERROR':
            self.assertIn('No valid host', server['fault']['message'])
        return server

    def hosts(self, *servers):
        return [
            self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
            for server in servers
        ]


class UnderWayTestCase(AntiAffinityTestCase):
    """Members that another scheduler is deciding, or has just placed."""

    def setUp(self):
        super().setUp()
        self.ctxt = nova_context.get_admin_context()

    def start_member(self, group, host=None):
        """Add a member that another scheduler is deciding or has placed."""
        member = uuidutils.generate_uuid()
        objects.InstanceMapping(
            self.ctxt,
            instance_uuid=member,
            project_id=self.api.project_id,
            cell_mapping=None,
            queued_for_delete=False,
        ).create()
        objects.InstanceGroup.add_members(self.ctxt, group['id'], [member])
        if host:
            self.placement.put(
                f'/allocations/{member}',
                {
                    'allocations': {
                        self._get_provider_uuid_by_host(host): {
                            'resources': {'VCPU': 1}
                        }
                    },
                    'project_id': self.api.project_id,
                    'user_id': 'user',
                    'consumer_generation': None,
                    'consumer_type': 'INSTANCE',
                },
                version='1.38',
            )
        return member
