# SPDX-License-Identifier: Apache-2.0

"""Moves after a refused rebuild: of a plain server, and from volumes."""

from unittest import mock

import fixtures
from nova.tests.fixtures import cinder as cinder_fixture
from nova.volume import cinder

from tests.functional import explain
from tests.functional import test_running_image

CINDER = cinder_fixture.CinderFixture


class PlainServerTestCase(test_running_image.RefusedRebuildTestCase):
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
        self.set_metadata(
            'windows', {f'trait:{test_running_image.WINDOWS}': 'forbidden'}
        )
        self._revert_resize(self.resize(self.server))
        self.set_metadata(
            'windows', {f'trait:{test_running_image.WINDOWS}': 'required'}
        )
        self.glance.images[self.plain] = image

    def evacuation(self):
        """Of another server, which has moved nowhere."""
        server = self.refuse_rebuild(
            self.assertBootsOn('host2', image=self.plain), self.licensed
        )
        self.lose('host2')
        self._evacuate_server(server, expected_host='host3')


class VolumeTestCase(test_running_image.RefusedRebuildTestCase):
    """Servers that boot from a volume; Cinder is nova's fixture."""

    weights = {'host1': 1000, 'host2': 500, 'host3': 1}
    isolated = ('host1',)

    def refuse_rebuild(self, server, image):
        """Rebuild, and have an administrator reset the server's state."""
        self.rebuild_server(server, image, 'ERROR')
        self.reset_state(server, 'active')
        self.assertEqual(image, self.stored_spec(server).image.id)
        return self._wait_for_state_change(server, 'ACTIVE')

    def boot_refused(self, volume):
        server = self.boot_from_volume(volume)
        self.assertEqual('host2', self.host_of(server))
        return self.refuse_rebuild(server, self.licensed)

    def test_explain_reads_the_volume_as_nova_s_own_user(self):
        server = self.boot_refused(CINDER.IMAGE_BACKED_VOL)
        get = cinder.API.get
        users = []

        def get_noted(api, ctxt, *args, **kwargs):
            with mock.patch.object(
                cinder, '_load_auth_plugin', return_value='of [cinder]'
            ):
                users.append(cinder._get_auth(ctxt))
            return get(ctxt, *args, **kwargs)

        with fixtures.MonkeyPatch('nova.volume.cinder.API.get', get_noted):
            answer = explain.of_server(server, 'migrate')
        self.assertEqual(['host3'], answer.order)
        self.assertEqual({'of [cinder]'}, {*users})
        self.assertEqual('host3', self.host_of(self.resize(server)))
        self.assertRegex(self.log, f'INFO .*Server {server["id"]} runs image ')

    def test_rebuild_that_is_allowed_ends_it(self):
        """The instance then has the image of before the refused one."""
        volume = CINDER.IMAGE_BACKED_VOL
        server = self.boot_refused(volume)
        get = cinder.API.get

        def get_renewed(api, *args, **kwargs):
            return {
                **get(*args, **kwargs),
                'volume_image_metadata': {'image_id': self.plain},
            }

        def reimage(api, ctxt, volume_id, image_id, **kwargs):
            self.assertEqual((volume, self.plain), (volume_id, image_id))
            event = {
                'name': 'volume-reimaged',
                'status': 'completed',
                'server_uuid': server['id'],
                'tag': volume_id,
            }
            self.admin_api.api_post(
                '/os-server-external-events', {'events': [event]}
            )

        with mock.patch.object(cinder.API, 'reimage_volume', reimage):
            self.rebuild_server(server, self.plain, 'ACTIVE')
        before = self.log
        with fixtures.MonkeyPatch('nova.volume.cinder.API.get', get_renewed):
            server = self.resize(server)
        self.assertEqual('host3', self.host_of(server))
        self.assertNotIn('runs image', self.log.removeprefix(before))
