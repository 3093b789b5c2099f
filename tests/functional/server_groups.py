# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of server groups."""

import fixtures
from nova.scheduler.filters import affinity_filter

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

    def post(self, group, **extra):
        return super().post({'group': group}, **extra)

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
