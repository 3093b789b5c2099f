# SPDX-License-Identifier: Apache-2.0

"""Moves of a server that was refused a rebuild."""

from tests.functional import base

WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class RefusedRebuildTestCase(base.CloudTestCase):
    """nova leaves the refused image in the request spec.

    A server that is judged by it goes to the host of greatest weight.
    """

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        self.isolate('windows', self.isolated, WINDOWS)
        self.plain = self.image()
        self.licensed = self.image(props={f'trait:{WINDOWS}': 'required'})

    def refuse_rebuild(self, server, image):
        """Rebuild and go on with the old image, as the owner may."""
        running = server['image']['id']
        server = self.rebuild_server(server, image, 'ERROR')
        self.assertEqual(running, server['image']['id'])
        server = self.rebuild_server(server, running, 'ACTIVE')
        # Without this the tests prove nothing: nova has mended it.
        self.assertEqual(image, self.stored_spec(server).image.id)
        return server

    def resize(self, server, expected_state='VERIFY_RESIZE'):
        return self.act(
            server, 'resize', expected_state, flavorRef=self.flavor()
        )


class LicensedServerTestCase(RefusedRebuildTestCase):
    weights = {'host1': 1000, 'host2': 500, 'host3': 1}
    isolated = ('host1', 'host3')

    def test_it_stays_on_licensed_hosts(self):
        server = self.assertBootsOn('host1', image=self.licensed)
        server = self.refuse_rebuild(server, self.plain)
        self.assertEqual('host3', self.host_of(self.resize(server)))
