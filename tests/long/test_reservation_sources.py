# SPDX-License-Identifier: Apache-2.0

"""Who may write the keys of reserved aggregates."""

from unittest import mock

from nova import exception as nova_exception
from nova.tests.fixtures import cinder as cinder_fixture

from nova_ext_sched.queries import running_image
from tests.functional import reservations


class SourcesTestCase(reservations.ReservationTestCase):
    """Who may write keys."""

    HINTS = [
        {'reservation': 'a'},
        {'reservation': ['a']},
        {'reservation:a': 'anything'},
    ]

    def setUp(self):
        super().setUp()
        self.reserve('a', ['reserved'], filter_tenant_id=self.api.project_id)
        self.reserve(
            'b', ['other'], filter_tenant_id=reservations.OTHER_PROJECT
        )

    def key_in_image(self, *ids):
        return self.image(props={f'reservation:{i}': 'true' for i in ids})

    def test_sources(self):
        self.users_reach_nothing_by_default()
        for sources, check in (
            (['image'], self.glance_fails),
            (['image'], self.volume_backed_server_names_none),
            (['flavor', 'image', 'hint'], self.hints_and_images),
            (['image'], self.image_that_is_deleted),
        ):
            self.flags(member_sources=sources, group='nova_ext_sched')
            self.queries.clear()
            check()

    def users_reach_nothing_by_default(self):
        # Nor do they spoil what a flavor demands.
        image, hints = self.key_in_image('b'), {'reservation': 'gone'}
        self.assertBootsOn('plain', image=image, hints=hints)
        self.assertBootsOn(
            'reserved', flavor=self.consuming('a'), image=image, hints=hints
        )

    def hints_and_images(self):
        self.reserve('c', ['reserved', 'other'])
        for hints in self.HINTS:
            self.assertBootsOn('reserved', hints=hints)
        self.assertNoValidHost(hints={'reservation': ['a', 'b']})
        self.assertNoValidHost(image=self.key_in_image('b'))
        self.assertBootsOn(
            'reserved',
            flavor=self.consuming('c'),
            image=self.key_in_image('a'),
        )

    def glance_fails(self):
        image = self.key_in_image('a')
        down = mock.Mock()
        down.API.return_value.get.side_effect = (
            nova_exception.GlanceConnectionFailed(server='glance', reason='x')
        )
        # The scheduler's client alone: nova-api reads the image before.
        with mock.patch.object(running_image, 'glance', down):
            server = self.assertNoValidHost(image=image)
        self.assertEqual([], self.queries)
        fault = f'the properties of image {image} cannot be read'
        self.assertIn(fault, server['fault']['message'])
        self.assertIn(f'{fault} (GlanceConnectionFailed: ', self.log)
        self.assertNotIn('GlanceConnection', server['fault']['message'])

    def image_that_is_deleted(self):
        """nova's copy says by what the server was placed."""
        servers = {}
        for host, ids in {'reserved': ['c'], 'plain': []}.items():
            image = self.key_in_image(*ids)
            servers[host] = self.assertBootsOn(host, image=image)
            self.glance.images.pop(image)
        keyed = servers['reserved']
        # It must be in a c still.
        self.set_metadata('c', {'reservation:c': None})
        self.migrate_in_vain(keyed)
        self.set_metadata('c', {'reservation:c': 'true'})
        self.evacuation(keyed, 'other')
        self.refused_rebuild(keyed)
        for name in 'bc':
            self.set_metadata(name, {f'reservation:{name}': None})
        self.evacuation(servers['plain'], 'other')

    def refused_rebuild(self, server):
        """The copy is of the other image then, which names no c."""
        running = server['image']['id']
        server = self.rebuild_server(server, self.plain_image, 'ERROR')
        self.assertEqual(running, server['image']['id'])
        self.reset_state(server, 'active')
        self.migrate_in_vain(server)
        self.assertIn(
            f'the properties of image {running} cannot be read '
            '(ImageNotFound: ',
            self.log,
        )

    def evacuation(self, server, host):
        self.lose(self.host_of(server))
        self._evacuate_server(server, expected_host=host)

    def migrate_in_vain(self, server):
        host = self.host_of(server)
        server = self._migrate_server(server, expected_state='ACTIVE')
        self.assertEqual(host, self.host_of(server))

    def volume_backed_server_names_none(self):
        """nova knows no image of it, so none is read."""
        server = self.boot_from_volume(
            cinder_fixture.CinderFixture.IMAGE_BACKED_VOL
        )
        self.assertEqual('plain', self.host_of(server))
