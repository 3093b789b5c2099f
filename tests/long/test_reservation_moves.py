# SPDX-License-Identifier: Apache-2.0

"""Rebuild and moves: each stays inside of its reservation, or is refused."""

from tests.functional import reservations


class MoveTestCase(reservations.ReservationTestCase):
    """Each stays inside, or is refused."""

    weights = {'plain': 100, 'b1': 90, 'a1': 50, 'a2': 1}

    def setUp(self):
        super().setUp()
        self.flags(allow_resize_to_same_host=False)
        self.reserve('a', ['a1', 'a2'])
        self.reserve('b', ['b1'])
        self.server = self.assertBootsOn('a1', flavor=self.consuming('a'))

    def assertOn(self, host):
        self.assertEqual(host, self.host_of(self.server))

    def test_moves_stay_inside(self):
        self._live_migrate(self.server)
        self.assertOn('a2')
        self._migrate_server(self.server)
        self.assertOn('a1')
        self._confirm_resize(self.server)
        self._resize_server(self.server, self.consuming('a'))
        self.assertOn('a2')
        self._confirm_resize(self.server)
        self._shelve_server(self.server)
        self.remove_host('a', 'a2')
        self._unshelve_server(self.server)
        self.assertOn('a1')
        self._resize_server(self.server, self.consuming('b'))
        self.assertOn('b1')
        self._confirm_resize(self.server)
        self._resize_server(self.server, self.flavor())
        self.assertOn('plain')

    def test_evacuations(self):
        other = self.assertBootsOn('a1', flavor=self.consuming('a'))
        self.lose('a1')
        self._evacuate_server(other, expected_host='a2')
        self.remove_host('a', 'a2')
        self._evacuate_server(
            self.server,
            expected_state='ERROR',
            expected_host='a1',
            expected_migration_status='error',
        )


class ImageMoveTestCase(reservations.ReservationTestCase):
    """A server that its image put there."""

    options = {
        **reservations.ReservationTestCase.options,
        'member_sources': ['image'],
    }
    weights = {'plain': 100, 'a1': 50, 'a2': 1}

    def test_moves(self):
        self.flags(shelved_offload_time=0)
        self.reserve('a', ['a1', 'a2'])
        image = self.image(props={'reservation:a': 'true'})
        server = self.assertBootsOn('a1', image=image)
        self._live_migrate(server)
        self.assertEqual('a2', self.host_of(server))
        # The snapshot has the properties of the image.
        self._shelve_server(server)
        self._unshelve_server(server)
        self.assertEqual('a1', self.host_of(server))


class RebuildTestCase(reservations.ReservationTestCase):
    """nova runs no request filter on rebuild; the host filter judges."""

    def setUp(self):
        super().setUp()
        self.reserve('a', ['reserved'])

    def test_rebuilds(self):
        self.host_that_was_reserved_since()
        self.keys_of_the_new_image_do_not_count()
        self.reservation_that_passed_to_another_project()

    def host_that_was_reserved_since(self):
        server = self.assertBootsOn('other', host='other')
        self.reserve('b', ['other'])
        server = self.rebuild_server(server, self.image(), 'ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        self.assertIn(
            'IsolatedAggregatesFilter rejected 1 of 1 host: 1 because '
            'aggregate b is reserved by reservation:b=true and the request '
            f'of project {self.api.project_id} has no key with that prefix',
            self.log,
        )

    def reservation_that_passed_to_another_project(self):
        server = self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.rebuild_server(server, self.image(), 'ACTIVE')
        self.set_metadata(
            'a', {'filter_tenant_id': reservations.OTHER_PROJECT}
        )
        self.rebuild_server(server, self.image(), 'ERROR')
        self.assertIn(
            f'may not use reservation:a: aggregate a has filter_tenant_id='
            f'{reservations.OTHER_PROJECT}',
            self.log,
        )

    def keys_of_the_new_image_do_not_count(self):
        """A host filter cannot ask Glance, so it opens nothing."""
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        image = self.image(props={'reservation:a': 'true'})
        again = self.image(props={'reservation:a': 'true'})
        server = self.assertBootsOn('reserved', image=image)
        # The same image is no matter of the scheduler.
        self.rebuild_server(server, image, 'ACTIVE')
        for other in (self.image(), again):
            server = self.rebuild_server(server, other, 'ERROR')
            self.assertEqual(image, server['image']['id'])
        # Where nothing is reserved there is nothing to guard.
        server = self.assertBootsOn('plain', host='plain')
        self.rebuild_server(server, again, 'ACTIVE')
