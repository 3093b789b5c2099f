# SPDX-License-Identifier: Apache-2.0

"""Reservations together with the other policies."""

import sqlalchemy as sa

from tests.functional import reservations
from tests.functional import test_reservation


class TogetherTestCase(reservations.ReservationTestCase):
    """With zone, tenant isolation and trait isolation, all at once."""

    options = {
        **reservations.ReservationTestCase.options,
        'enable_isolated_aggregate_filtering': True,
    }
    weights = {'h1': 100, 'h2': 90, 'h3': 80, 'h4': 70, 'h5': 1}

    def setUp(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        super().setUp()

    def test_each_constraint_once(self):
        windows = self.isolate('windows', ['h1'], test_reservation.WINDOWS)
        tenant = self.aggregate(
            'tenant',
            ['h1', 'h3', 'h4', 'h5'],
            filter_tenant_id=self.api.project_id,
        )
        zone = self.aggregate('zone', ['h1', 'h2', 'h4', 'h5'], zone='az1')
        a = self.reserve('a', ['h1', 'h2', 'h3', 'h5'])
        b = self.reserve('b', ['h4'])

        self.assertBootsOn('h5', flavor=self.consuming('a'), az='az1')
        required, forbidden = self.member_of()
        self.assertCountEqual([{tenant}, {zone}, {a}], required)
        self.assertEqual({windows}, forbidden)

        self.assertNoValidHost(az='az1')
        required, forbidden = self.member_of()
        self.assertCountEqual([{tenant}, {zone}], required)
        self.assertEqual({windows, a, b}, forbidden)

        self.add_traits('h5', test_reservation.WINDOWS)
        self.assertBootsOn(
            'h1',
            az='az1',
            flavor=self.consuming('a'),
            image=self.image(
                props={f'trait:{test_reservation.WINDOWS}': 'required'}
            ),
        )

    def test_one_light_select_a_filter(self):
        self.isolate('windows', ['h1'], test_reservation.WINDOWS)
        self.reserve('a', ['h2'])
        statements = []
        engine = self.api_engine()

        @sa.event.listens_for(engine, 'before_cursor_execute')
        def record(conn, cursor, statement, parameters, context, many):
            # Ours take names and keys of the metadata and no hosts.
            if statement.startswith('SELECT aggregates.uuid, aggregates.name'):
                self.assertNotIn('aggregate_hosts', statement)
                statements.append(
                    [text for text in parameters if isinstance(text, str)]
                )

        self.assertBootsOn('h3')
        self.assertEqual([['trait'], ['reservation']], statements)
        # Projects matter only to a request that names a reservation.
        self.assertBootsOn('h2', flavor=self.consuming('a'))
        self.assertEqual(
            [['trait'], ['reservation', 'filter_tenant_id']], statements[2:]
        )
        sa.event.remove(engine, 'before_cursor_execute', record)
        # Required by its key, forbidden by its trait: no host.
        uuid = self.isolate('c', ['h4'], test_reservation.WINDOWS)
        self.set_metadata('c', {'reservation:c': '1'})
        self.assertNoValidHost(flavor=self.consuming('c'))
        required, forbidden = self.member_of()
        self.assertEqual([{uuid}], required)
        self.assertIn(uuid, forbidden)
