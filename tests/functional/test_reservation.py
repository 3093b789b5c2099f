# SPDX-License-Identifier: Apache-2.0

"""Reserved aggregates, through nova's API to the host: who lands where."""

from tests.functional import reservations

WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class StoryTestCase(reservations.ReservationTestCase):
    """The rows are in tests/unit/policy."""

    def test_who_lands_where(self):
        a, b = self.reserve('a', ['reserved']), self.reserve('b', ['other'])
        # An administrator's choice opens no reserved host.
        mine = self.consuming('a')
        self.assertNoValidHost(az='nova:other')
        self.assertNoValidHost(host='other', flavor=mine)
        self.assertBootsOn('reserved', flavor=mine, az='nova:reserved')
        self.assertBootsOn('plain', host='plain')
        for name in 'ab':
            self.add_host(name, 'plain')
        both = self.consuming('a', 'b')
        self.assertBootsOn('reserved', flavor=mine)
        # Two keys are ANDed.
        self.assertBootsOn('plain', flavor=both)
        required, forbidden = self.member_of()
        self.assertCountEqual([{a}, {b}], required)
        self.assertEqual(set(), forbidden)
        # Several aggregates with one key are ORed.
        rack = self.reserve('rack', ['other'], 'a')
        server = self.assertBootsOn('reserved', flavor=mine)
        self.assertEqual(([{a, rack}], set()), self.member_of())
        self._migrate_server(server)
        self.assertEqual('other', self.host_of(server))
        # A full reservation does not spill.
        self.reserve('empty', [])
        self.assertNoValidHost(flavor=self.consuming('empty'))
        self.id_that_no_aggregate_has()
        self.more_aggregates_than_the_query_names()

    def id_that_no_aggregate_has(self):
        self.reserve('gone-2', ['reserved'])
        self.queries.clear()
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

    def more_aggregates_than_the_query_names(self):
        most = self.reserve('c1', ['other', 'plain'], 'c')
        self.reserve('c2', ['reserved'], 'c')
        self.flags(max_forbidden_aggregates=1, group='nova_ext_sched')
        self.assertBootsOn('other', flavor=self.consuming('c'))
        self.assertEqual(([{most}], set()), self.member_of())

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
