# SPDX-License-Identifier: Apache-2.0

"""Reserved aggregates, through nova's API to the host: who lands where."""

import sqlalchemy as sa

from nova_ext_sched.queries import sources
from tests.functional import reservations

WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class StoryTestCase(reservations.ReservationTestCase):
    """The rows are in tests/unit/policy."""

    def test_who_lands_where(self):
        a = self.reserve('a', ['reserved', 'plain'])
        b = self.reserve('b', ['other', 'plain'])
        both = self.consuming('a', 'b')
        self.assertBootsOn('reserved', flavor=self.consuming('a'))
        # Two keys are ANDed.
        self.assertBootsOn('plain', flavor=both)
        required, forbidden = self.member_of()
        self.assertCountEqual([{a}, {b}], required)
        self.assertEqual(set(), forbidden)
        # Several aggregates with one key are ORed.
        rack = self.reserve('rack', ['other'], 'a')
        server = self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.assertEqual(([{a, rack}], set()), self.member_of())
        self._migrate_server(server)
        self.assertEqual('other', self.host_of(server))
        # A full reservation does not spill.
        self.reserve('empty', [])
        self.assertNoValidHost(flavor=self.consuming('empty'))

    def test_id_that_no_aggregate_has(self):
        self.reserve('gone-2', ['reserved'])
        server = self.assertNoValidHost(flavor=self.consuming('gone'))
        self.assertEqual([], self.queries)
        self.assertIn(
            f'no aggregate that project {self.api.project_id} may use has '
            'the metadata key reservation:gone',
            server['fault']['message'],
        )
        # One line: what the owner reads, and why.
        (line,) = [
            line
            for line in self.log.splitlines()
            if 'reservation:gone' in line and '[nova_ext_sched.' in line
        ]
        self.assertRegex(
            line,
            'INFO .*reserved_aggregates: no host for request req-.*'
            r'\(no aggregate has the metadata key reservation:gone, which the '
            f'request of project {self.api.project_id} requires',
        )

    def test_an_administrators_choice_opens_no_reserved_host(self):
        self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        mine = self.consuming('a')
        for choice in ({'az': 'nova:other'}, {'host': 'other'}):
            self.assertNoValidHost(**choice)
            self.assertNoValidHost(flavor=mine, **choice)
        self.assertBootsOn('reserved', flavor=mine, az='nova:reserved')
        self.assertBootsOn('plain', host='plain')

    def test_projects(self):
        self.reserve(
            'x', ['reserved'], 'a', filter_tenant_id=reservations.OTHER_PROJECT
        )
        flavor = self.consuming('a')
        with self.metadata_away():
            self.assertNoValidHost()
            self.assertNoValidHost(flavor=flavor)
        self.assertEqual([], self.queries)
        refusals = [
            line
            for line in self.log.splitlines()
            if 'reserved_aggregates cannot decide' in line
            and '[nova_ext_sched.' in line
        ]
        self.assertEqual(1, len(refusals))
        server = self.assertNoValidHost(flavor=flavor)
        self.assertEqual([], self.queries)
        mine = self.api.project_id
        self.assertIn(
            f'project {mine} may not use reservation:a: aggregate x has '
            f'filter_tenant_id={reservations.OTHER_PROJECT}',
            self.log,
        )
        # What the user reads tells nothing of the other project.
        fault = server['fault']['message']
        self.assertIn(f'no aggregate that project {mine} may use has', fault)
        self.assertNotIn(reservations.OTHER_PROJECT, fault)
        # The aggregates of others drop out.
        uuid = self.reserve('y', ['other'], 'a', filter_tenant_id=mine)
        self.assertBootsOn('other', flavor=flavor)
        self.assertEqual(([{uuid}], set()), self.member_of())


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
        windows = self.isolate('windows', ['h1'], WINDOWS)
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

        self.add_traits('h5', WINDOWS)
        self.assertBootsOn(
            'h1',
            az='az1',
            flavor=self.consuming('a'),
            image=self.image(props={f'trait:{WINDOWS}': 'required'}),
        )

    def test_one_light_select_a_filter(self):
        self.isolate('windows', ['h1'], WINDOWS)
        self.reserve('a', ['h2'])
        statements = []
        engine = sources.api_db.context_manager.writer.get_engine()

        @sa.event.listens_for(engine, 'before_cursor_execute')
        def record(conn, cursor, statement, parameters, context, many):
            # Ours take names and keys of the metadata and no hosts.
            if statement.startswith('SELECT aggregates.uuid, aggregates.name'):
                self.assertNotIn('aggregate_hosts', statement)
                statements.append(
                    [text for text in parameters if isinstance(text, str)]
                )

        self.assertBootsOn('h3')
        self.assertEqual([['trait:'], ['reservation:']], statements)
        # Projects matter only to a request that names a reservation.
        self.assertBootsOn('h2', flavor=self.consuming('a'))
        self.assertEqual(
            [['trait:'], ['reservation:', 'filter_tenant_id']], statements[2:]
        )
        sa.event.remove(engine, 'before_cursor_execute', record)
        # Required by its key, forbidden by its trait: no host.
        uuid = self.isolate('c', ['h4'], WINDOWS)
        self.set_metadata('c', {'reservation:c': '1'})
        self.assertNoValidHost(flavor=self.consuming('c'))
        required, forbidden = self.member_of()
        self.assertEqual([{uuid}], required)
        self.assertIn(uuid, forbidden)
