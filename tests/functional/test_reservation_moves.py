# SPDX-License-Identifier: Apache-2.0

"""Rebuild and moves: each stays inside of its reservation, or is refused."""

from tests.functional import reservations


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
