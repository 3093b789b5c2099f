# SPDX-License-Identifier: Apache-2.0

"""Hosts that Blazar manages, through nova's API to the host.

The aggregates are those that Blazar 18 makes. The first host of ``weights``
is the one that the scheduler prefers, and the wrong one nearly everywhere.
"""

from tests.functional import base
from tests.functional import reservations

PREEMPTIBLE = {'blazar:preemptible': 'True'}


class BlazarTestCase(base.CloudTestCase):
    host_filters = ('BlazarFilter',)
    weights = {'free': 100, 'reserved': 75, 'other': 50, 'plain': 1}

    def lease(self, name, *hosts, owner=None, **metadata):
        """Make the aggregate of a host reservation, as Blazar does."""
        return self.aggregate(
            name,
            hosts,
            zone=f'blazar_{name}',
            metadata={
                'blazar:owner': owner or self.api.project_id,
                **metadata,
            },
        )

    def leases(self):
        self.aggregate('freepool', ['free'])
        self.lease('a', 'reserved')
        self.lease('b', 'other', owner=reservations.OTHER_PROJECT)


class RequestsTestCase(BlazarTestCase):
    def test_boots(self):
        self.leases()
        self.who_lands_where()
        self.an_administrators_choice_opens_no_reserved_host()
        self.instance_reservation()
        self.database_away()
        self.preemptible()

    def who_lands_where(self):
        self.assertBootsOn('plain')
        self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self.assertBootsOn('reserved', hints={'reservation': ['b', 'a']})
        self.queries.clear()
        server = self.assertNoValidHost(hints={'reservation': ['b', 'gone']})
        self.assertEqual([], self.queries)
        fault = server['fault']['message']
        self.assertIn('no reservation that project', fault)
        self.assertNotIn(reservations.OTHER_PROJECT, fault)
        self.assertIn(
            f"Blazar's pool b has blazar:owner={reservations.OTHER_PROJECT}",
            self.log,
        )

    def an_administrators_choice_opens_no_reserved_host(self):
        for choice in ({'az': 'nova:free'}, {'host': 'reserved'}):
            self.assertNoValidHost(**choice)
        self.assertBootsOn(
            'reserved', hints={'reservation': 'a'}, az='nova:reserved'
        )

    def preemptible(self):
        flavor = self.flavor(specs=PREEMPTIBLE)
        self.assertBootsOn('plain', flavor=flavor)
        self.flags(group='blazar:physical:host', allow_preemptibles=True)
        self.assertBootsOn('free', flavor=flavor)
        self.flags(group='blazar:physical:host', preemptible_aggregate='spot')
        server = self.assertNoValidHost(flavor=flavor)
        self.assertIn(
            'no aggregate spot takes preemptible', server['fault']['message']
        )
        self.aggregate('spot', ['plain', 'free'])
        self.assertBootsOn('plain', flavor=flavor)

    def instance_reservation(self):
        """Its own resource class decides, and stays where the pool is."""
        self._create_resource_class('CUSTOM_RESERVATION_X')
        self.limit('free', 'CUSTOM_RESERVATION_X', total=2)
        self.aggregate('x', ['free'], reservation='x')
        flavor = self.flavor(
            specs={
                'aggregate_instance_extra_specs:reservation': 'x',
                'resources:CUSTOM_RESERVATION_X': '1',
            }
        )
        self.assertBootsOn('free', flavor=flavor)
        self.assertEqual([], self.queries[-1].get('member_of', []))

    def test_moves_and_rebuild(self):
        self.aggregate('freepool', ['free'])
        self.lease('a', 'reserved', 'other')
        server = self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self._migrate_server(server)
        self.assertEqual('other', self.host_of(server))
        self._confirm_resize(server)
        plain = self.assertBootsOn('plain')
        # Where it stands is Blazar's matter, not a rebuild's.
        self.add_host('freepool', 'plain')
        self.rebuild_server(plain, self.image())
        self.assertEqual('plain', self.host_of(plain))

    def database_away(self):
        self.queries.clear()
        with self.metadata_away():
            self.assertNoValidHost()
            self.assertNoValidHost(hints={'reservation': 'a'})
        self.assertEqual([], self.queries)
        self.assertIn('blazar_reservations cannot decide', self.log)
