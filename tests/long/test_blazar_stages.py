# SPDX-License-Identifier: Apache-2.0

"""Both stages of Blazar's reservations give one answer."""

import random

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import utils
from nova.scheduler.client import report

from nova_ext_sched import exception
from nova_ext_sched.filters import blazar
from nova_ext_sched.request_filters import blazar as blazar_request_filter
from tests.functional import base
from tests.functional import reservations
from tests.functional import test_blazar
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as request_base


class StagesTestCase(base.CloudTestCase):
    """Stage 1 asks placement for what stage 2 lets pass, on random clouds.

    nova-api and placement are real. A request is one of random hint, flavor
    and project. Placement must answer with each host that BlazarFilter lets
    pass, and with no other but one in several of the pools that the request
    names: there the first decides, which no query can say.
    """

    host_filters = ('BlazarFilter',)
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
                extra_specs=rng.choice([{}, {}, test_blazar.PREEMPTIBLE])
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
