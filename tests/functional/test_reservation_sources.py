# SPDX-License-Identifier: Apache-2.0

"""Who may write the keys of reserved aggregates."""

from unittest import mock

import fixtures
from nova import exception as nova_exception
from nova.tests.fixtures import cinder as cinder_fixture

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
        with fixtures.MonkeyPatch(
            'nova_ext_sched.queries.running_image.glance', down
        ):
            server = self.assertNoValidHost(image=image)
        self.assertEqual([], self.queries)
        fault = f'the properties of image {image} cannot be read'
        self.assertIn(fault, server['fault']['message'])
        self.assertIn(f'{fault} (GlanceConnectionFailed: ', self.log)
        self.assertNotIn('GlanceConnection', server['fault']['message'])

    def volume_backed_server_names_none(self):
        """nova knows no image of it, so none is read."""
        server = self.boot_from_volume(
            cinder_fixture.CinderFixture.IMAGE_BACKED_VOL
        )
        self.assertEqual('plain', self.host_of(server))
