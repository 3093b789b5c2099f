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
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': self.flavor()}}
        )
        return self._wait_for_state_change(server, expected_state)


class PlainServerTestCase(RefusedRebuildTestCase):
    weights = {'host1': 1000, 'host2': 500, 'host3': 1}
    isolated = ('host1',)

    def setUp(self):
        super().setUp()
        self.server = self.refuse_rebuild(
            self.assertBootsOn('host2', image=self.plain), self.licensed
        )

    def test_its_owner_cannot_bring_it_into_the_aggregate(self):
        self.its_image_is_gone()
        self.assertEqual('host3', self.host_of(self.resize(self.server)))
        self.assertRegex(
            self.log,
            f'INFO .*Server {self.server["id"]} runs image {self.plain}, '
            f'but its request spec has image {self.licensed} of a rebuild '
            'that was refused',
        )
        self._confirm_resize(self.server)
        self._live_migrate(self.server)
        self.assertEqual('host2', self.host_of(self.server))
        self._shelve_server(self.server, expected_state='SHELVED_OFFLOADED')
        self._unshelve_server(self.server)
        self.assertEqual('host2', self.host_of(self.server))
        # A rebuild that is allowed ends it.
        self.rebuild_server(self.server, self.image(), 'ACTIVE')
        before = self.log
        self._migrate_server(self.server)
        self.assertEqual('host3', self.host_of(self.server))
        self.assertNotIn('runs image', self.log.removeprefix(before))
        self._confirm_resize(self.server)
        self._delete_server(self.server)
        self.evacuation()

    def its_image_is_gone(self):
        image = self.glance.images.pop(self.plain)
        server = self.resize(self.server, 'ACTIVE')
        self.assertEqual('host2', self.host_of(server))
        self.assertIn(
            f'the properties of image {self.plain} cannot be read '
            '(ImageNotFound: ',
            self.log,
        )
        # Where nothing isolates, the image does not matter.
        self.set_metadata('windows', {f'trait:{WINDOWS}': 'forbidden'})
        self._revert_resize(self.resize(self.server))
        self.set_metadata('windows', {f'trait:{WINDOWS}': 'required'})
        self.glance.images[self.plain] = image

    def evacuation(self):
        """Of another server, which has moved nowhere."""
        server = self.refuse_rebuild(
            self.assertBootsOn('host2', image=self.plain), self.licensed
        )
        self.lose('host2')
        self._evacuate_server(server, expected_host='host3')


class LicensedServerTestCase(RefusedRebuildTestCase):
    weights = {'host1': 1000, 'host2': 500, 'host3': 1}
    isolated = ('host1', 'host3')

    def test_it_stays_on_licensed_hosts(self):
        server = self.assertBootsOn('host1', image=self.licensed)
        server = self.refuse_rebuild(server, self.plain)
        self.assertEqual('host3', self.host_of(self.resize(server)))
