# SPDX-License-Identifier: Apache-2.0

"""Hosts that Blazar manages, through nova's API to the host.

The aggregates are those that Blazar 18 makes. The first host of ``weights``
is the one that the scheduler prefers, and the wrong one nearly everywhere.
"""

import random

import ddt
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.scheduler import utils
from nova.scheduler.client import report
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched.filters import blazar
from nova_ext_sched.queries import aggregates
from nova_ext_sched.request_filters import blazar as blazar_request_filter
from tests.functional import base
from tests.functional import reservations
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as request_base

CONF = nova.conf.CONF

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

    def member_of(self):
        """Return what the last query requires and forbids."""
        return sorted(self.queries[-1].get('member_of', []))


@ddt.ddt
class RequestsTestCase(BlazarTestCase):
    def test_who_lands_where(self):
        self.leases()
        self.assertBootsOn('plain')
        self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self.assertBootsOn('reserved', hints={'reservation': ['b', 'a']})
        for reservation in ('b', 'freepool', 'gone', ['b', 'gone']):
            self.queries.clear()
            server = self.assertNoValidHost(hints={'reservation': reservation})
            self.assertEqual([], self.queries)
            fault = server['fault']['message']
            self.assertIn('no reservation that project', fault)
            self.assertNotIn(reservations.OTHER_PROJECT, fault)
        self.assertIn(
            f"Blazar's pool b has blazar:owner={reservations.OTHER_PROJECT}",
            self.log,
        )

    def test_a_project_beside_the_owner(self):
        self.lease(
            'b',
            'other',
            owner=reservations.OTHER_PROJECT,
            **{self.api.project_id: 'blazar:project'},
        )
        self.assertBootsOn('other', hints={'reservation': 'b'})

    def test_a_lease_that_has_not_begun(self):
        self.lease('a')
        self.assertNoValidHost(hints={'reservation': 'a'})

    @ddt.data(('az', 'nova:{}'), ('host', '{}'))
    @ddt.unpack
    def test_forced_and_requested_hosts(self, name, form):
        """An administrator's choice opens no reserved host."""
        self.leases()
        for host in ('free', 'reserved', 'plain'):
            choice = {name: form.format(host)}
            if host == 'plain':
                self.assertBootsOn(host, **choice)
            else:
                self.assertNoValidHost(**choice)
        self.assertBootsOn(
            'reserved',
            hints={'reservation': 'a'},
            **{name: form.format('reserved')},
        )

    def test_preemptible(self):
        self.leases()
        flavor = self.flavor(specs=PREEMPTIBLE)
        self.assertBootsOn('plain', flavor=flavor)
        self.flags(group='blazar:physical:host', allow_preemptibles=True)
        self.assertBootsOn('free', flavor=flavor)
        self.assertBootsOn('plain')
        self.flags(group='blazar:physical:host', preemptible_aggregate='spot')
        server = self.assertNoValidHost(flavor=flavor)
        self.assertIn(
            'no aggregate spot takes preemptible', server['fault']['message']
        )
        self.aggregate('spot', ['plain', 'free'])
        self.assertBootsOn('plain', flavor=flavor)

    def test_instance_reservation(self):
        """Its own resource class decides, and stays where the pool is."""
        self.leases()
        self._create_resource_class('CUSTOM_RESERVATION_X')
        provider = self._get_provider_uuid_by_host('free')
        inventories = self._get_provider_inventory(provider)
        inventories['CUSTOM_RESERVATION_X'] = {'total': 2}
        self._update_inventory(
            provider,
            {
                'inventories': inventories,
                'resource_provider_generation': self._get_generation(provider),
            },
        )
        self.aggregate('x', ['free'], reservation='x')
        flavor = self.flavor(
            specs={
                'aggregate_instance_extra_specs:reservation': 'x',
                'resources:CUSTOM_RESERVATION_X': '1',
            }
        )
        self.assertBootsOn('free', flavor=flavor)
        self.assertEqual([], self.member_of())
        self.assertBootsOn('plain')

    def _get_generation(self, provider):
        return self.placement.get(f'/resource_providers/{provider}').body[
            'generation'
        ]

    def test_multi_create(self):
        self.leases()
        server = self._build_server(
            flavor_id=self.flavor(),
            image_uuid=self.image(),
            networks='none',
        )
        self.api.post_server(
            {
                'server': {**server, 'min_count': 3, 'max_count': 3},
                'os:scheduler_hints': {'reservation': 'a'},
            }
        )
        servers = [
            self._wait_for_state_change(one, 'ACTIVE')
            for one in self.api.get_servers()
        ]
        self.assertEqual(
            ['reserved'] * 3, [self.host_of(one) for one in servers]
        )

    def test_moves_and_rebuild(self):
        self.aggregate('freepool', ['free'])
        self.lease('a', 'reserved', 'other')
        server = self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self._migrate_server(server)
        self.assertEqual('other', self.host_of(server))
        self._confirm_resize(server)
        plain = self.assertBootsOn('plain')
        self.api.post_server_action(
            plain['id'], {'rebuild': {'imageRef': self.image()}}
        )
        self._wait_for_state_change(plain, 'ACTIVE')
        # Where it stands is Blazar's matter, not a rebuild's.
        self.admin_api.add_host_to_aggregate(
            self.aggregate_ids['freepool'], 'plain'
        )
        self.api.post_server_action(
            plain['id'], {'rebuild': {'imageRef': self.image()}}
        )
        self._wait_for_state_change(plain, 'ACTIVE')
        self.assertEqual('plain', self.host_of(plain))

    def test_bound(self):
        """The query has no room for two pools; the host filter judges."""
        self.flags(group='nova_ext_sched', max_forbidden_aggregates=1)
        self.leases()
        self.assertBootsOn('plain')
        (forbidden,) = self.member_of()
        self.assertNotIn(',', forbidden)
        self.assertIn('BlazarFilter checks the hosts of the other 2', self.log)

    def test_one_light_select(self):
        self.leases()
        statements = []
        engine = aggregates.api_db.context_manager.writer.get_engine()

        @sa.event.listens_for(engine, 'before_cursor_execute')
        def record(conn, cursor, statement, parameters, context, many):
            if statement.startswith('SELECT aggregates.uuid, aggregates.name'):
                self.assertNotIn('aggregate_hosts', statement)
                statements.append(statement)

        self.assertBootsOn('plain')
        self.assertEqual(1, len(statements))
        self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self.assertEqual(2, len(statements))
        sa.event.remove(engine, 'before_cursor_execute', record)

    def test_database_away(self):
        self.leases()
        with self.metadata_away():
            self.assertNoValidHost()
            self.assertNoValidHost(hints={'reservation': 'a'})
        self.assertEqual([], self.queries)
        self.assertIn('blazar_reservations cannot decide', self.log)
        self.assertBootsOn('plain')


class OffTestCase(BlazarTestCase):
    host_filters = ()

    def test_names_of_aggregates_mean_nothing(self):
        self.leases()
        self.assertBootsOn('free')
        self.assertBootsOn('free', hints={'reservation': 'b'})
        self.assertEqual([], self.member_of())


class StagesTestCase(BlazarTestCase):
    """Stage 1 asks placement for what stage 2 lets pass, on random clouds.

    nova-api and placement are real. A request is one of random hint, flavor
    and project. Placement must answer with each host that BlazarFilter lets
    pass, and with no other but one in several of the pools that the request
    names: there the first decides, which no query can say.
    """

    weights = {f'host{number}': 1 for number in range(6)}
    REQUESTS = 150

    def setUp(self):
        super().setUp()
        self.ctxt = nova_context.get_admin_context()
        self.projects = (self.api.project_id, reservations.OTHER_PROJECT)

    def build_cloud(self, rng):
        names = rng.sample(['a', 'b', 'c', 'spot', 'freepool', 'plain'], 5)
        zones = ['blazar_a', 'blazar_b', 'blazar_c', 'nova-1', None, None]
        zone_of = {}
        for name in names:
            zone = rng.choice(zones)
            metadata = {}
            if rng.random() < 0.7:
                metadata['blazar:owner'] = rng.choice(self.projects)
            if rng.random() < 0.3:
                metadata[rng.choice(self.projects)] = 'blazar:project'
            hosts = []
            for host in rng.sample(sorted(self.weights), rng.randint(0, 4)):
                # nova has a host in one zone only.
                if zone is None or zone_of.setdefault(host, zone) == zone:
                    hosts.append(host)
            self.aggregate(name, hosts, zone=zone, metadata=metadata)

    def random_spec(self, rng):
        names = ['a', 'b', 'c', 'freepool', 'gone']
        return request_base.request_spec(
            flavor=request_base.flavor(
                extra_specs=rng.choice([{}, {}, PREEMPTIBLE])
            ),
            scheduler_hints=rng.choice(
                [{}, {'reservation': rng.choices(names, k=rng.randint(1, 3))}]
            ),
            project_id=rng.choice(self.projects),
        )

    def candidates(self, spec):
        """Return the hosts that placement answers with after stage 1."""
        try:
            blazar_request_filter.blazar_reservations(self.ctxt, spec)
        except nova_exception.RequestFilterFailed as exc:
            self.assertIsInstance(exc.__cause__, exception.RequestRefused)
            return set()
        resources = utils.resources_from_request_spec(self.ctxt, spec, None)
        client = report.report_client_singleton()
        _, summaries, _ = client.get_allocation_candidates(
            self.ctxt, resources
        )
        return {self.hosts_by_uuid[uuid] for uuid in summaries}

    def test_stages(self):
        self.hosts_by_uuid = {
            self._get_provider_uuid_by_host(host): host
            for host in self.weights
        }
        rng = random.Random(25)
        several = refused = landed = 0
        for _ in range(3):
            self.build_cloud(rng)
            everything = objects.AggregateList.get_all(self.ctxt)
            states = [
                filters_base.host_state(
                    host, *(agg for agg in everything if host in agg.hosts)
                )
                for host in self.weights
            ]
            for _ in range(self.REQUESTS // 3):
                self.flags(
                    group='blazar:physical:host',
                    allow_preemptibles=rng.choice([True, False]),
                    preemptible_aggregate=rng.choice(['freepool', 'spot']),
                )
                spec = self.random_spec(rng)
                passing = {
                    state.host
                    for state in blazar.BlazarFilter().filter_all(states, spec)
                }
                found = self.candidates(spec)
                self.assertLessEqual(passing, found, spec)
                named = set(spec.scheduler_hints.get('reservation', ()))
                for host in found - passing:
                    mine = {a.name for a in everything if host in a.hosts}
                    self.assertLess(1, len(mine & named), (host, spec))
                    several += 1
                refused += not found
                landed += 0 < len(found) < len(states)
            for aggregate in everything:
                for host in aggregate.hosts:
                    self.admin_api.api_post(
                        f'/os-aggregates/{aggregate.id}/action',
                        {'remove_host': {'host': host}},
                    )
                self.admin_api.delete_aggregate(aggregate.id)
        # The requests were of all kinds.
        self.assertLess(20, refused)
        self.assertLess(20, landed)
        self.assertLess(several, 10)
