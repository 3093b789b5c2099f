# SPDX-License-Identifier: Apache-2.0

"""Who may write the keys of reserved aggregates."""

from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova.tests.fixtures import cinder as cinder_fixture

from tests.functional import reservations


@ddt.ddt
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
        self.reserve('free', [])

    def key_in_image(self, *ids):
        return self.image(props={f'reservation:{i}': 'true' for i in ids})

    def test_users_reach_nothing_by_default(self):
        self.assertBootsOn('plain', image=self.key_in_image('a'))
        for hints in self.HINTS:
            self.assertBootsOn('plain', hints=hints)
        # Nor do they spoil what a flavor demands.
        self.assertBootsOn(
            'reserved',
            flavor=self.consuming('a'),
            image=self.key_in_image('b'),
            hints={'reservation': 'gone'},
        )

    def test_hint(self):
        self.flags(member_sources=['hint'], group='nova_ext_sched')
        for hints in self.HINTS:
            self.assertBootsOn('reserved', hints=hints)
        self.assertNoValidHost(hints={'reservation': 'b'})
        self.assertNoValidHost(hints={'reservation': ['a', 'b']})
        self.assertNoValidHost(hints={'reservation': 'gone'})
        self.assertNoValidHost(hints={'reservation': ''})
        self.assertBootsOn('plain', hints={'reserved': 'a'})
        self.assertBootsOn('plain', flavor=self.consuming('a'))

    def test_image(self):
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        self.assertBootsOn('reserved', image=self.key_in_image('a'))
        self.assertNoValidHost(image=self.key_in_image('b'))
        self.assertNoValidHost(image=self.key_in_image('gone'))
        self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.assertBootsOn('plain')

    def test_sources_are_anded(self):
        self.flags(
            member_sources=['flavor', 'image', 'hint'], group='nova_ext_sched'
        )
        self.reserve('c', ['reserved', 'other'])
        self.assertBootsOn(
            'reserved',
            flavor=self.consuming('c'),
            image=self.key_in_image('a'),
        )
        self.assertNoValidHost(
            flavor=self.consuming('c'), hints={'reservation': 'free'}
        )

    @ddt.data(
        nova_exception.GlanceConnectionFailed(server='glance', reason='down'),
        nova_exception.ImageNotFound(image_id='x'),
        RuntimeError('anything else'),
    )
    def test_glance_fails(self, error):
        self.flags(member_sources=['image'], group='nova_ext_sched')
        image = self.key_in_image('a')
        down = mock.Mock()
        down.API.return_value.get.side_effect = error
        # The scheduler's client alone: nova-api reads the image before.
        with fixtures.MonkeyPatch(
            'nova_ext_sched.queries.running_image.glance', down
        ):
            server = self.assertNoValidHost(image=image)
        self.assertEqual([], self.queries)
        fault = f'the properties of image {image} cannot be read'
        self.assertIn(fault, server['fault']['message'])
        self.assertIn(f'{fault} ({type(error).__name__}: ', self.log)
        self.assertNotIn(type(error).__name__, server['fault']['message'])
        self.assertBootsOn('reserved', image=image)

    def test_volume_backed_server_names_none(self):
        """nova knows no image of it, so none is read."""
        self.flags(member_sources=['image'], group='nova_ext_sched')
        server = self.boot_from_volume(
            cinder_fixture.CinderFixture.IMAGE_BACKED_VOL
        )
        self.assertEqual('plain', self.host_of(server))
